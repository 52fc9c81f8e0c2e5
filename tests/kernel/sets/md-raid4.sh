# RAID4, four members, chunks of 64 KiB.
# disks: 8M 8M 8M 8M
create r --level=4 --raid-devices=4 --chunk=64 "$@"
fill /dev/md/r
