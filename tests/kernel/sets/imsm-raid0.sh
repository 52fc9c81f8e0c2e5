# IMSM RAID0 of three disks, chunks of 64 KiB.
# disks: 16M 16M 16M
container imsm "$@"
volume r --level=0 --raid-devices=3 --chunk=64
fill /dev/md/r
