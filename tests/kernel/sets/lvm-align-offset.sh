# The first extent at 1 MiB and 3584 bytes, as on a drive with an XP jumper.
# disks: 8M
pvcreate --dataalignment 1m --dataalignmentoffset 7s "$@"
vgcreate -s 64k vg "$@"
lvcreate -y -n lin -L 2M vg
fill /dev/vg/lin
