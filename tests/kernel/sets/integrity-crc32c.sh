# Tags of 4 bytes to sectors of 512, areas of 1 MiB, as the kernel pads them now: 4 KiB.
# disks: 24M
integrity r "$1" "interleave_sectors:2048 fix_padding internal_hash:crc32c"
fill /dev/mapper/r
