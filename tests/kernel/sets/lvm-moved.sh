# A volume in several segments: grown in turns with another, and part of it moved by pvmove.
# disks: 8M 8M
vgcreate -s 64k vg "$@"
lvcreate -y -n a -L 512k vg "$1"
lvcreate -y -n b -L 512k vg "$1"
for i in 1 2 3; do
    lvextend -y -L +320k vg/a "$1"
    lvextend -y -L +192k vg/b "$1"
done
pvmove -i 1 "$1":8-15 "$2"
fill /dev/vg/a
fill /dev/vg/b
