# dm-cache of the newer kind, one volume for the cache and its metadata.
# disks: 16M 16M
vgcreate -s 64k vg "$@"
lvcreate -y -n lv -L 12M vg "$1"
lvcreate -y -n fast -L 8M vg "$2"
lvconvert -y --type cache --cachevol vg/fast --chunksize 64k --cachemode writethrough vg/lv
fill /dev/vg/lv
