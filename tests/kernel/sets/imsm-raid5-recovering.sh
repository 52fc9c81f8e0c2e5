# IMSM RAID5 whose second disk failed, and is being made anew on a fourth, stopped half-way.
# disks: 16M 16M 16M 16M
container imsm "$1" "$2" "$3"
volume r --level=5 --raid-devices=3 --chunk=64
fill /dev/md/r
mdadm /dev/md/r --fail "$2"
slowly
mdadm /dev/md/c --add "$4"
reached 4096
