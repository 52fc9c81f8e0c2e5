# RAID1 of two members, the second write-mostly, with a bitmap.
# disks: 8M 8M
create r --level=1 --raid-devices=2 --bitmap=internal "$1" --write-mostly "$2"
fill /dev/md/r
