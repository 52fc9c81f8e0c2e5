# RAID5, left-symmetric, four members, chunks of 64 KiB.
# disks: 8M 8M 8M 8M
create r --level=5 --raid-devices=4 --layout=left-symmetric --chunk=64 "$@"
fill /dev/md/r
