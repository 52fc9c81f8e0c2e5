# RAID5, three members, chunks of 512 KiB (mdadm's default).
# disks: 8M 8M 8M
create r --level=5 --raid-devices=3 "$@"
fill /dev/md/r
