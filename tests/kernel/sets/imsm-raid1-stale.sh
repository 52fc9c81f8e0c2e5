# IMSM RAID1 whose first disk failed: what it has is old.
# disks: 16M 16M
container imsm "$@"
volume r --level=1 --raid-devices=2
fill /dev/md/r old
mdadm /dev/md/r --fail "$1"
fill /dev/md/r new
