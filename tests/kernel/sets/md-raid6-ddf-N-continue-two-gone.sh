# RAID6, ddf-N-continue, two members failed.
# disks: 8M 8M 8M 8M 8M
create r --level=6 --raid-devices=5 --layout=ddf-N-continue --chunk=64 "$@"
mdadm /dev/md/r --fail "$1"
mdadm /dev/md/r --fail "$3"
fill /dev/md/r
