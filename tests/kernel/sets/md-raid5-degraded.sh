# RAID5 whose second member failed and is stale: what it has is old.
# disks: 8M 8M 8M 8M
create r --level=5 --raid-devices=4 --chunk=64 "$@"
fill /dev/md/r old
mdadm /dev/md/r --fail "$2"
fill /dev/md/r new
