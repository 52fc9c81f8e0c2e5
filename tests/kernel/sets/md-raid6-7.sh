# RAID6 of seven members, chunks of 16 KiB.
# disks: 5M 5M 5M 5M 5M 5M 5M
create r --level=6 --raid-devices=7 --chunk=16 "$@"
fill /dev/md/r
