# raid5 that grows from two data stripes to three, stopped on the way.
# disks: 40M 40M 40M 40M
vgcreate -s 64k vg "$@"
lvcreate -y -n lv --type raid5 -i 2 -I 64k -L 64M vg "$1" "$2" "$3"
synced
fill /dev/vg/lv
# In KiB a second: whatever a volume says, the kernel keeps up its own least speed.
echo 50 >/proc/sys/dev/raid/speed_limit_min
lvchange -y --maxrecoveryrate 50k vg/lv
lvconvert -y --stripes 3 vg/lv
usleep 3000000
dmsetup status vg-lv
