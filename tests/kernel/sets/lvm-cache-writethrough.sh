# dm-cache, writethrough, chunks of 64 KiB.
# disks: 16M 16M
vgcreate -s 64k vg "$@"
lvcreate -y -n lv -L 12M vg "$1"
lvcreate -y -n fast --type cache-pool --cachemode writethrough --chunksize 64k \
    -L 6M --poolmetadatasize 2M vg "$2"
lvconvert -y --type cache --cachepool vg/fast --cachemode writethrough vg/lv
fill /dev/vg/lv
fill /dev/vg/lv second
