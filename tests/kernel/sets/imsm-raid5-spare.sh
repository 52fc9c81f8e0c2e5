# IMSM RAID5 of three disks, and a spare.
# disks: 16M 16M 16M 16M
container imsm "$1" "$2" "$3"
volume r --level=5 --raid-devices=3 --chunk=64
mdadm /dev/md/c --add "$4"
fill /dev/md/r
