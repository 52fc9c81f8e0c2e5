# RAID0 of three members, superblock 0.90.
# disks: 8M 8M 8M
create r --metadata=0.90 --level=0 --raid-devices=3 --chunk=64 "$@"
fill /dev/md/r
