# RAID6, ddf-zero-restart, five members, chunks of 64 KiB.
# disks: 8M 8M 8M 8M 8M
create r --level=6 --raid-devices=5 --layout=ddf-zero-restart --chunk=64 "$@"
fill /dev/md/r
