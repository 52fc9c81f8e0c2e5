# A VG of three PVs of which the third is a blank disk now: one volume is whole, one has a hole, a
# raid1 has a copy left.
# disks: 8M 8M 8M
vgcreate -s 64k vg "$@"
lvcreate -y -n whole -L 3M vg "$1"
lvcreate -y -n hole -i 3 -I 64k -L 3M vg
lvcreate -y -n r1 --type raid1 -m 1 -L 2M vg "$2" "$3"
synced
fill /dev/vg/whole
fill /dev/vg/hole
fill /dev/vg/r1
checked
forget /dev/vg/hole
vgchange -an vg
dd if=/dev/zero of="$3" bs=1M count=2 conv=fsync
vgchange -ay --activationmode degraded vg || :
