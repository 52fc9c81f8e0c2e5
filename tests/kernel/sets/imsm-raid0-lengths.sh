# IMSM RAID0 of three disks of different lengths, chunks of 16 KiB.
# disks: 16M 20M 18M
container imsm "$@"
volume r --level=0 --raid-devices=3 --chunk=16
fill /dev/md/r
