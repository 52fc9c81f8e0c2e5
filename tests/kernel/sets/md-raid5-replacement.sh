# RAID5 whose second member is being replaced, stopped half-way.
# disks: 12M 12M 12M 12M
create r --level=5 --raid-devices=3 --chunk=64 "$1" "$2" "$3"
fill /dev/md/r
mdadm /dev/md/r --add "$4"
slowly
mdadm /dev/md/r --replace "$2" --with "$4"
reached 4096
