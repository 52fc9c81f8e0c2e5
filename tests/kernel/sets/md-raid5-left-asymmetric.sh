# RAID5, left-asymmetric, four members, chunks of 64 KiB.
# disks: 8M 8M 8M 8M
create r --level=5 --raid-devices=4 --layout=left-asymmetric --chunk=64 "$@"
fill /dev/md/r
