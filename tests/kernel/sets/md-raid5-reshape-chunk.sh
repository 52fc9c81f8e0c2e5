# RAID5 whose chunks change from 64 to 128 KiB, stopped half-way.
# disks: 12M 12M 12M 12M
create r --level=5 --raid-devices=4 --chunk=64 --size=8M "$@"
fill /dev/md/r
slowly
mdadm --grow /dev/md/r --chunk=128
reached 4096
