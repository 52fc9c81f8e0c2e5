# Extents of 64 KiB, two stripes of 4 KiB; extended by a segment of one stripe, then by one of
# three of 16 KiB.
# disks: 8M 8M 8M
vgcreate -s 64k vg "$@"
lvcreate -y -n lv -i 2 -I 4k -L 3M vg "$1" "$2"
lvextend -y -i 1 -L +1M vg/lv "$3"
lvextend -y -i 3 -I 16k -L +1536k vg/lv
fill /dev/vg/lv
