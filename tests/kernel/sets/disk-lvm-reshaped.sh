# raid5 grown from two data stripes to three by a reshape that has ended: its data begin elsewhere on the images.
# disks: 16M 16M 16M 16M
vgcreate -s 64k vg "$@"
lvcreate -y -n lv --type raid5 -i 2 -I 64k -L 4M vg "$1" "$2" "$3"
synced
lvconvert -y --stripes 3 vg/lv
synced
lvchange --refresh vg/lv
sum /dev/vg/lv
