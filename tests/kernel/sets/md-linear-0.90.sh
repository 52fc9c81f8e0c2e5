# Linear of two members, superblock 0.90.
# disks: 8M 6M
create r --metadata=0.90 --level=linear --raid-devices=2 "$@"
fill /dev/md/r
