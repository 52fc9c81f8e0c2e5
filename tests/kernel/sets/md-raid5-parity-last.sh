# RAID5, parity-last, four members, chunks of 64 KiB.
# disks: 8M 8M 8M 8M
create r --level=5 --raid-devices=4 --layout=parity-last --chunk=64 "$@"
fill /dev/md/r
