# IMSM RAID5 of three disks, chunks of 64 KiB.
# disks: 16M 16M 16M
container imsm "$@"
volume r --level=5 --raid-devices=3 --chunk=64
fill /dev/md/r
