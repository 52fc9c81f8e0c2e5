# An old snapshot that is being merged into its origin, which was in use when that was asked for.
# disks: 16M
vgcreate -s 64k vg "$@"
lvcreate -y -n lv -L 4M vg
fill /dev/vg/lv old
lvcreate -y -n snap -s -L 2M vg/lv
fill /dev/vg/lv new 0 1024
exec 3</dev/vg/lv
lvconvert -y --merge vg/snap
exec 3<&-
forget /dev/vg/lv
