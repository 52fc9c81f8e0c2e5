# RAID5 of three members, superblock 1.0 at their ends, members of unequal length.
# disks: 8M 9M 10M
create r --metadata=1.0 --level=5 --raid-devices=3 --chunk=64 "$@"
fill /dev/md/r
