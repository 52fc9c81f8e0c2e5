# RAID6, left-asymmetric, five members, chunks of 64 KiB.
# disks: 8M 8M 8M 8M 8M
create r --level=6 --raid-devices=5 --layout=left-asymmetric --chunk=64 "$@"
fill /dev/md/r
