# raid1 of three copies; the first one failed, and the volume was written without it.
# disks: 8M 8M 8M
vgcreate -s 64k vg "$@"
lvcreate -y -n lv --type raid1 -m 2 -L 4M vg
synced
fill /dev/vg/lv old
for part in rimage_0 rmeta_0; do
    sectors=$(blockdev --getsz "/dev/mapper/vg-lv_$part")
    dmsetup load "vg-lv_$part" --table "0 $sectors error"
    dmsetup suspend --noflush --nolockfs "vg-lv_$part"
    dmsetup resume --noudevsync "vg-lv_$part"
done
fill /dev/vg/lv new
