# dm-integrity in a partition, blocks of 4096 bytes, several areas, and ext4 in it.
# disks: 48M
printf 'label: gpt\ntype=linux\n' | sfdisk -q "$1"
blockdev --rereadpt "$1" || :
integrity r "$1"1 "block_size:4096 interleave_sectors:16384 fix_padding internal_hash:crc32c"
mkfs.ext4 -q -L tagged /dev/mapper/r
written /dev/mapper/r
sum /dev/mapper/r
