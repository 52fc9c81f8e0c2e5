# IMSM RAID0 of three disks in order, chunks of 64 KiB, with ext4 laid out for another set.
# disks: 16M 16M 16M
container imsm "$@"
volume r --level=0 --raid-devices=3 --chunk=64 "$@"
mkfs.ext4 -q -b 4096 -E stride=8,stripe_width=24 /dev/md/r
written /dev/md/r
sum /dev/md/r
