# raid5 grown from two data stripes to three by a reshape that has ended: its images keep the room that took.
# disks: 16M 16M 16M 16M
vgcreate -s 64k vg "$@"
lvcreate -y -n lv --type raid5 -i 2 -I 64k -L 4M vg "$1" "$2" "$3"
synced
fill /dev/vg/lv
lvconvert -y --stripes 3 vg/lv
synced
# The kernel gives the volume its new size when it is activated anew.
vgchange -an vg
vgchange -ay vg
