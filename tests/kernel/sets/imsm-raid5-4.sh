# IMSM RAID5 of four disks, chunks of 128 KiB.
# disks: 16M 16M 16M 16M
container imsm "$@"
volume r --level=5 --raid-devices=4 --chunk=128
fill /dev/md/r
