# raid5 whose stripes a reshape made twice as long.
# disks: 16M 16M 16M 16M
vgcreate -s 64k vg "$@"
lvcreate -y -n lv --type raid5 -i 3 -I 64k -L 6M vg
synced
fill /dev/vg/lv
lvconvert -y --stripesize 128k vg/lv
synced
