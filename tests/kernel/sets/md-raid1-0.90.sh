# RAID1 of two members, superblock 0.90.
# disks: 8M 8M
create r --metadata=0.90 --level=1 --raid-devices=2 "$@"
fill /dev/md/r
