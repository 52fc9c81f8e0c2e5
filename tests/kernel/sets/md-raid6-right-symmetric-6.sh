# RAID6, right-symmetric-6, five members, chunks of 64 KiB.
# disks: 8M 8M 8M 8M 8M
create r --level=6 --raid-devices=5 --layout=right-symmetric-6 --chunk=64 "$@"
fill /dev/md/r
