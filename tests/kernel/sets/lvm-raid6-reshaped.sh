# raid6 grown from three data stripes to four by a reshape that has ended.
# disks: 16M 16M 16M 16M 16M 16M
vgcreate -s 64k vg "$@"
lvcreate -y -n lv --type raid6 -i 3 -I 64k -L 6M vg "$1" "$2" "$3" "$4" "$5"
synced
fill /dev/vg/lv
lvconvert -y --stripes 4 vg/lv
synced
# The kernel gives the volume its new size when it is activated anew.
vgchange -an vg
vgchange -ay vg
