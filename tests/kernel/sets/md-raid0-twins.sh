# RAID0 of three members of which two are equal and the third is longer: two zones, in the default
# layout.
# disks: 8M 8M 12M
create r --level=0 --raid-devices=3 --chunk=64 "$@"
fill /dev/md/r
