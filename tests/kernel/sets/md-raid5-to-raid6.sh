# RAID5 of four members becoming RAID6 of five, stopped half-way.
# disks: 12M 12M 12M 12M 12M
create r --level=5 --raid-devices=4 --chunk=64 --size=8M "$1" "$2" "$3" "$4"
mdadm /dev/md/r --add "$5"
fill /dev/md/r
slowly
mdadm --grow /dev/md/r --level=6 --raid-devices=5 --backup-file=/tmp/backup
reached 4096
