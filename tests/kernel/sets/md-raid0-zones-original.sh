# RAID0 of unequal members in three zones, original layout, which the superblock says.
# disks: 8M 13M 10M 13M
create r --level=0 --raid-devices=4 --chunk=64 --layout=original "$@"
fill /dev/md/r
