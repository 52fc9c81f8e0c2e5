# RAID5 with a partial parity log.
# disks: 8M 8M 8M
create r --level=5 --raid-devices=3 --chunk=64 --consistency-policy=ppl "$@"
fill /dev/md/r
