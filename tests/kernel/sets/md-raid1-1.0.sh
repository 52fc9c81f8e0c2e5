# RAID1 of two members, superblock 1.0.
# disks: 8M 8M
create r --metadata=1.0 --level=1 --raid-devices=2 "$@"
fill /dev/md/r
