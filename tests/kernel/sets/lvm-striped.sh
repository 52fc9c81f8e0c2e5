# Three stripes of 64 KiB, extents of 4 MiB, and a linear volume behind them.
# disks: 16M 16M 16M
vgcreate vg "$@"
lvcreate -y -n stripe -i 3 -I 64k -L 24M vg
lvcreate -y -n lin -L 4M vg
fill /dev/vg/stripe
fill /dev/vg/lin
