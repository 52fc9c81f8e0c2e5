# raid0 of three sub-volumes, stripes of 64 KiB; and raid0_meta.
# disks: 8M 8M 8M
vgcreate -s 64k vg "$@"
lvcreate -y -n r0 --type raid0 -i 3 -I 64k -L 6M vg
lvcreate -y -n r0m --type raid0_meta -i 3 -I 16k -L 3M vg
fill /dev/vg/r0
fill /dev/vg/r0m
