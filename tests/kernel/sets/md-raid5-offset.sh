# RAID5 whose data begin at 1028 KiB of each member.
# disks: 8M 8M 8M
create r --level=5 --raid-devices=3 --chunk=64 --data-offset=1028K "$@"
fill /dev/md/r
