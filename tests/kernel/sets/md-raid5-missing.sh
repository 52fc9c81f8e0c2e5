# RAID5 created with a member missing; the third disk is blank.
# disks: 8M 8M 8M
mdadm --create /dev/md/r --run --homehost=oracle --name=r --level=5 --raid-devices=3 --chunk=64 \
    "$1" missing "$2"
fill /dev/md/r
