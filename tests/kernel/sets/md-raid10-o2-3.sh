# RAID10, 2 offset copies on 3 members, chunks of 64 KiB.
# disks: 8M 8M 8M
create r --level=10 --raid-devices=3 --layout=o2 --chunk=64 "$@"
fill /dev/md/r
