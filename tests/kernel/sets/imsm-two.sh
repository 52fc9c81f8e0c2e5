# IMSM, two volumes on two disks: RAID1 in front of RAID0.
# disks: 24M 24M
container imsm "$@"
volume r --level=1 --raid-devices=2 --size=4M
volume s --level=0 --raid-devices=2 --chunk=32
fill /dev/md/r
fill /dev/md/s
