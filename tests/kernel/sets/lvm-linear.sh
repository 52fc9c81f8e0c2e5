# A linear volume over two PVs, extents of 4 MiB.
# disks: 16M 16M
vgcreate vg "$@"
lvcreate -y -n lin -L 20M vg
fill /dev/vg/lin
