# LVM as it comes on an RAID5 of four disks: extents of 4 MiB, of which no full stripe of 192 KiB is a part, so that the
# second volume begins off one.
# disks: 40M 40M 40M 40M
create r5 --level=5 --raid-devices=4 --chunk=64 "$@"
vgcreate vg /dev/md/r5
lvcreate -y -n one -L 32M vg
lvcreate -y -n two -L 40M vg
mkfs.ext4 -q -b 4096 -E stride=16,stripe_width=48 -L one /dev/vg/one
mkfs.ext4 -q -b 4096 -E stride=16,stripe_width=48 -L two /dev/vg/two
written /dev/vg/two
sum /dev/vg/one /dev/vg/two
