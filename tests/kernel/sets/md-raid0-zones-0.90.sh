# RAID0 of unequal members, superblock 0.90, which has no room to say the layout: the kernel is
# told original.
# disks: 8M 13M 10M
echo 1 >/sys/module/raid0/parameters/default_layout
create r --metadata=0.90 --level=0 --raid-devices=3 --chunk=64 --layout=dangerous "$@"
fill /dev/md/r
checked
echo 0 >/sys/module/raid0/parameters/default_layout
