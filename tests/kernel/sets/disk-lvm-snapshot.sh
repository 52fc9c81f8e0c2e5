# ext4 and an old snapshot of it: both were written since.
# disks: 16M
vgcreate -s 64k vg "$1"
lvcreate -y -n origin -L 6M vg
mkfs.ext4 -q -L origin /dev/vg/origin
lvcreate -y -s -n snap -L 4M -c 4k vg/origin
written /dev/vg/origin
written /dev/vg/snap
sum /dev/vg/origin /dev/vg/snap
