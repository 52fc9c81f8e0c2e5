# raid10 grown from two data stripes to three by a reshape that has ended.
# disks: 16M 16M 16M 16M 16M 16M
vgcreate -s 64k vg "$@"
lvcreate -y -n lv --type raid10 -i 2 -I 64k -L 4M vg "$1" "$2" "$3" "$4"
synced
fill /dev/vg/lv
lvconvert -y --stripes 3 vg/lv
synced
# The kernel gives the volume its new size when it is activated anew.
vgchange -an vg
vgchange -ay vg
