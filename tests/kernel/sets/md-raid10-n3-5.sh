# RAID10, 3 near copies on 5 members, chunks of 64 KiB.
# disks: 8M 8M 8M 8M 8M
create r --level=10 --raid-devices=5 --layout=n3 --chunk=64 "$@"
fill /dev/md/r
