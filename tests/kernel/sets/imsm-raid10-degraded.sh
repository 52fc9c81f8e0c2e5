# IMSM RAID10 whose third disk failed: what it has is old.
# disks: 16M 16M 16M 16M
container imsm "$@"
volume r --level=10 --raid-devices=4 --chunk=64
fill /dev/md/r old
mdadm /dev/md/r --fail "$3"
fill /dev/md/r new
