# raid1 of three copies, extents of 4 MiB.
# disks: 20M 20M 20M
vgcreate vg "$@"
lvcreate -y -n r1 --type raid1 -m 2 -L 8M vg
synced
fill /dev/vg/r1
