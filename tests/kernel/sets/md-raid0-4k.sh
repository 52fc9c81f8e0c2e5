# RAID0, four members, chunks of 4 KiB.
# disks: 8M 8M 8M 8M
create r --level=0 --raid-devices=4 --chunk=4 "$@"
fill /dev/md/r
