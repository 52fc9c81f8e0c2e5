# RAID5 shrinking from five to four members, stopped half-way: it goes backwards.
# disks: 12M 12M 12M 12M 12M
create r --level=5 --raid-devices=5 --chunk=64 --size=8M "$@"
mdadm --grow /dev/md/r --array-size=24M
fill /dev/md/r
slowly
mdadm --grow /dev/md/r --raid-devices=4 --backup-file=/tmp/backup
reached 4096
