# Blocks of 4096 bytes with tags of 32, areas of 16 MiB, tags padded to 128 KiB as they once were.
# disks: 64M
integrity r "$1" "block_size:4096 internal_hash:sha256"
fill /dev/mapper/r
