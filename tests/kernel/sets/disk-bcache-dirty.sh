# bcache in writeback mode, stopped before its cache was written back: the backing device, the first disk, is old.
# disks: 32M 96M
cached "$1" "$2" --writeback
echo 0 >/sys/block/bcache0/bcache/sequential_cutoff
echo 0 >/sys/block/bcache0/bcache/writeback_running
mkfs.ext4 -q -L cached /dev/bcache0
sync
uncached
