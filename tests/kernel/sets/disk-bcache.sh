# bcache in writethrough mode: all that was written is on the backing device, the first disk.
# disks: 32M 96M
cached "$1" "$2" --data-offset 2048
mkfs.ext4 -q -L cached /dev/bcache0
written /dev/bcache0
dmsetup create --noudevsync --noudevrules all --table "0 $(blockdev --getsz /dev/bcache0) linear /dev/bcache0 0"
dmsetup mknodes all
sum /dev/mapper/all
dmsetup remove --noudevsync --noudevrules all
uncached
