# DDF RAID5 of three disks, chunks of 64 KiB: named with level, chunk and members, and not followed.
# disks: 64M 64M 64M
container ddf "$@"
volume r --level=5 --raid-devices=3 --chunk=64
