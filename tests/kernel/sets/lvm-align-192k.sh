# The first extent at 192 KiB and extents of 64 KiB.
# disks: 8M 8M
pvcreate --dataalignment 192k "$@"
vgcreate -s 64k vg "$@"
lvcreate -y -n lin -l 100%FREE vg
fill /dev/vg/lin
