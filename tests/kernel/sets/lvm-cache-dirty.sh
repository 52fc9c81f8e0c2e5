# dm-cache, writeback, chunks of 64 KiB: most of what it has is in the cache alone.
# disks: 16M 16M
vgcreate -s 64k vg "$@"
lvcreate -y -n lv -L 12M vg "$1"
lvcreate -y -n fast --type cache-pool --cachemode writeback --chunksize 64k \
    -L 6M --poolmetadatasize 2M vg "$2"
lvconvert -y --type cache --cachepool vg/fast --cachemode writeback vg/lv
fill /dev/vg/lv
fill /dev/vg/lv second
# Nothing moves from here on, in either direction.
dmsetup message vg-lv 0 migration_threshold 0
fill /dev/vg/lv third
dmsetup status vg-lv
