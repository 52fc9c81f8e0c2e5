# Two metadata areas on each PV, the second at its end; one PV without any.
# disks: 8M 8M 8M
pvcreate --pvmetadatacopies 2 "$1" "$2"
pvcreate --pvmetadatacopies 0 "$3"
vgcreate -s 64k vg "$@"
lvcreate -y -n lin -l 100%FREE vg
fill /dev/vg/lin
