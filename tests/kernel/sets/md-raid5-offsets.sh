# RAID5 whose data begin elsewhere on each member.
# disks: 8M 8M 8M
disk1=$1 disk2=$2 disk3=$3
create r --level=5 --raid-devices=3 --chunk=64 --size=4M --data-offset=variable \
    "$disk1:2048s" "$disk2:3072s" "$disk3:2056s"
fill /dev/md/r
