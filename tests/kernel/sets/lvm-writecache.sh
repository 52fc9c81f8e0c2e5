# dm-writecache, blocks of 4 KiB; part of what was written is in the cache alone.
# disks: 16M 16M
vgcreate -s 64k vg "$@"
lvcreate -y -n lv -L 12M vg "$1"
lvcreate -y -n fast -L 8M vg "$2"
lvchange -an vg/fast
lvconvert -y --type writecache --cachevol fast vg/lv
fill /dev/vg/lv
