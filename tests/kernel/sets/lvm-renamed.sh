# Many generations in the circular text area: it has wrapped around, and the VG and an LV were
# renamed at the end.
# disks: 8M
pvcreate --metadatasize 64k "$1"
vgcreate -s 64k first "$1"
lvcreate -y -n lin -L 2M first
i=0
while [ $i -lt 60 ]; do
    lvchange --addtag "generation$i" --deltag "generation$((i - 5))" first/lin
    i=$((i + 1))
done
vgrename first vg
lvrename vg lin last
fill /dev/vg/last
