# IMSM RAID1 of two disks.
# disks: 16M 16M
container imsm "$@"
volume r --level=1 --raid-devices=2
fill /dev/md/r
