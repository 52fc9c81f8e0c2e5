# IMSM RAID10 of four disks, chunks of 64 KiB.
# disks: 16M 16M 16M 16M
container imsm "$@"
volume r --level=10 --raid-devices=4 --chunk=64
fill /dev/md/r
