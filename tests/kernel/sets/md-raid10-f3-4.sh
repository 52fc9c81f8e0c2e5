# RAID10, 3 far copies on 4 members, chunks of 64 KiB.
# disks: 8M 8M 8M 8M
create r --level=10 --raid-devices=4 --layout=f3 --chunk=64 "$@"
fill /dev/md/r
