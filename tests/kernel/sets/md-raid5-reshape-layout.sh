# RAID5 whose layout changes from left-symmetric to right-asymmetric, stopped half-way.
# disks: 12M 12M 12M 12M
create r --level=5 --raid-devices=4 --chunk=64 --size=8M "$@"
fill /dev/md/r
slowly
mdadm --grow /dev/md/r --layout=right-asymmetric
reached 4096
