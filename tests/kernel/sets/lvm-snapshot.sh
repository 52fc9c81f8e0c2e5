# The old copy-on-write snapshot, chunks of 4 KiB; origin and snapshot both written since.
# disks: 8M 8M
vgcreate -s 64k vg "$@"
lvcreate -y -n origin -L 4M vg
fill /dev/vg/origin
lvcreate -y -s -n snap -L 2M -c 4k vg/origin
forget /dev/vg/origin
fill /dev/vg/origin second 100 301
fill /dev/vg/origin second 4096 64
expect /dev/vg/origin "$name vg/origin" 0 100
expect /dev/vg/origin "$name vg/origin" 401 3695
expect /dev/vg/origin "$name vg/origin" 4160 4032
fill /dev/vg/snap third 390 30
fill /dev/vg/snap third 8000 8
expect /dev/vg/snap "$name vg/origin" 0 390
expect /dev/vg/snap "$name vg/origin" 420 7580
expect /dev/vg/snap "$name vg/origin" 8008 184
