# RAID6 growing from four to six members, stopped half-way.
# disks: 12M 12M 12M 12M 12M 12M
create r --level=6 --raid-devices=4 --chunk=64 --size=8M "$1" "$2" "$3" "$4"
mdadm /dev/md/r --add "$5" "$6"
fill /dev/md/r
slowly
mdadm --grow /dev/md/r --raid-devices=6
reached 4096
