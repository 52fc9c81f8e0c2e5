# RAID5 with a journal (write-through), the last disk.
# disks: 8M 8M 8M 16M
mdadm --create /dev/md/r --run --homehost=oracle --name=r --level=5 --raid-devices=3 --chunk=64 \
    --write-journal "$4" "$1" "$2" "$3"
synced
fill /dev/md/r
