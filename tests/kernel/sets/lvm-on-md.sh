# LVM on an RAID5 of four members: the first extent follows the array, one volume is on it alone.
# disks: 8M 8M 8M 8M
create r5 --level=5 --raid-devices=4 --chunk=64 "$@"
vgcreate vg /dev/md/r5
lvcreate -y -n lin -L 8M vg
fill /dev/vg/lin
