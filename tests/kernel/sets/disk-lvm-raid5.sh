# A raid5 volume with ext4 as mkfs makes it here.
# disks: 8M 8M 8M 8M
vgcreate -s 64k vg "$@"
lvcreate -y -n lv --type raid5 -i 3 -I 64k -L 6M vg
synced
mkfs.ext4 -q -L raid /dev/vg/lv
written /dev/vg/lv
sum /dev/vg/lv
