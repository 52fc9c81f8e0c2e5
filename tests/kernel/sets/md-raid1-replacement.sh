# RAID1 whose first member is being replaced, stopped half-way.
# disks: 12M 12M 12M
create r --level=1 --raid-devices=2 "$1" "$2"
fill /dev/md/r
mdadm /dev/md/r --add "$3"
slowly
mdadm /dev/md/r --replace "$1" --with "$3"
reached 4096
