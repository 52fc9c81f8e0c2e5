# RAID0 of unequal members whose superblock does not say the layout (as before Linux 5.4); the
# kernel is told alternate.
# disks: 8M 13M 10M 13M
echo 2 >/sys/module/raid0/parameters/default_layout
create r --level=0 --raid-devices=4 --chunk=64 --layout=dangerous "$@"
fill /dev/md/r
checked
echo 0 >/sys/module/raid0/parameters/default_layout
