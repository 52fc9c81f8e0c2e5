# RAID5, right-asymmetric, four members, chunks of 64 KiB.
# disks: 8M 8M 8M 8M
create r --level=5 --raid-devices=4 --layout=right-asymmetric --chunk=64 "$@"
fill /dev/md/r
