# RAID6, right-asymmetric, five members, chunks of 64 KiB.
# disks: 8M 8M 8M 8M 8M
create r --level=6 --raid-devices=5 --layout=right-asymmetric --chunk=64 "$@"
fill /dev/md/r
