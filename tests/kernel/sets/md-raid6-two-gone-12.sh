# RAID6 whose members 1 and 2 failed one after the other: both are stale.
# disks: 8M 8M 8M 8M 8M
create r --level=6 --raid-devices=5 --chunk=64 "$@"
fill /dev/md/r oldest
mdadm /dev/md/r --fail "$1"
fill /dev/md/r old
mdadm /dev/md/r --fail "$2"
fill /dev/md/r new
