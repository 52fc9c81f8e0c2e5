# raid5_n: 3 data stripes of 64k, extents of 64 KiB.
# disks: 8M 8M 8M 8M
vgcreate -s 64k vg "$@"
lvcreate -y -n lv --type raid5_n -i 3 -I 64k -L 6M vg
synced
fill /dev/vg/lv
