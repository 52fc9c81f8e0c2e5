# RAID0, three equal members, chunks of 64 KiB.
# disks: 8M 8M 8M
create r --level=0 --raid-devices=3 --chunk=64 "$@"
fill /dev/md/r
