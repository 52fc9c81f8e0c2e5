# DDF RAID1 and RAID0 on the same two disks: named, and not followed.
# disks: 64M 64M
container ddf "$@"
volume a --level=1 --raid-devices=2 --size=8M
volume b --level=0 --raid-devices=2 --chunk=32
