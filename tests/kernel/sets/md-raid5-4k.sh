# RAID5, seven members, chunks of 4 KiB.
# disks: 5M 5M 5M 5M 5M 5M 5M
create r --level=5 --raid-devices=7 --chunk=4 "$@"
fill /dev/md/r
