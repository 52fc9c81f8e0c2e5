# RAID0, three members, chunks of 96 KiB: no power of two.
# disks: 8M 8M 8M
create r --level=0 --raid-devices=3 --chunk=96 "$@"
fill /dev/md/r
