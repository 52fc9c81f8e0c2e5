# A VG whose PV is a volume of another VG.
# disks: 12M 12M
vgcreate -s 64k outer "$@"
lvcreate -y -n pv -i 2 -I 64k -L 12M outer
vgcreate -s 64k inner /dev/outer/pv
lvcreate -y -n lin -L 8M inner
fill /dev/inner/lin
