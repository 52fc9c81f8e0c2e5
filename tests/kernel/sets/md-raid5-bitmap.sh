# RAID5 with an internal write-intent bitmap.
# disks: 8M 8M 8M
create r --level=5 --raid-devices=3 --chunk=64 --bitmap=internal --bitmap-chunk=64K "$@"
fill /dev/md/r
