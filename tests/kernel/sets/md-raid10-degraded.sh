# RAID10, two near copies on four members, of which the third failed and is stale.
# disks: 8M 8M 8M 8M
create r --level=10 --raid-devices=4 --layout=n2 --chunk=64 "$@"
fill /dev/md/r old
mdadm /dev/md/r --fail "$3"
fill /dev/md/r new
