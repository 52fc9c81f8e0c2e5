# RAID5 of four members, superblock 0.90.
# disks: 8M 8M 8M 8M
create r --metadata=0.90 --level=5 --raid-devices=4 --chunk=64 "$@"
fill /dev/md/r
