# RAID1 whose first member failed and is stale: what it has is old.
# disks: 8M 8M 8M
create r --level=1 --raid-devices=3 "$@"
fill /dev/md/r old
mdadm /dev/md/r --fail "$1"
fill /dev/md/r new
