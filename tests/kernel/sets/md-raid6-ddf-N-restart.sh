# RAID6, ddf-N-restart, five members, chunks of 64 KiB.
# disks: 8M 8M 8M 8M 8M
create r --level=6 --raid-devices=5 --layout=ddf-N-restart --chunk=64 "$@"
fill /dev/md/r
