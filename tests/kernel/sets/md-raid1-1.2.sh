# RAID1 of two members, superblock 1.2.
# disks: 8M 8M
create r --metadata=1.2 --level=1 --raid-devices=2 "$@"
fill /dev/md/r
