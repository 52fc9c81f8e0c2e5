# RAID6, right-asymmetric-6, five members, chunks of 64 KiB.
# disks: 8M 8M 8M 8M 8M
create r --level=6 --raid-devices=5 --layout=right-asymmetric-6 --chunk=64 "$@"
fill /dev/md/r
