# RAID5 with a spare.
# disks: 8M 8M 8M 8M
create r --level=5 --raid-devices=3 --spare-devices=1 --chunk=64 "$@"
fill /dev/md/r
