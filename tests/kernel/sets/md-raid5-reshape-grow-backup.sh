# RAID5 growing from three to four members, stopped half-way; the data offset stays, the first rows
# were backed up to a file.
# disks: 12M 12M 12M 12M
create r --level=5 --raid-devices=3 --chunk=64 --size=8M "$1" "$2" "$3"
mdadm /dev/md/r --add "$4"
fill /dev/md/r
slowly
mdadm --grow /dev/md/r --raid-devices=4 --backup-file=/tmp/backup
reached 4096
