# RAID6, right-symmetric, five members, chunks of 64 KiB.
# disks: 8M 8M 8M 8M 8M
create r --level=6 --raid-devices=5 --layout=right-symmetric --chunk=64 "$@"
fill /dev/md/r
