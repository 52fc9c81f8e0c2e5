# raid1 of two copies with tags of dm-integrity on volumes of their own, and raid5 with them.
# disks: 48M 48M 48M
vgcreate vg "$@"
lvcreate -y -n r1 --type raid1 -m 1 --raidintegrity y -L 8M vg
lvcreate -y -n r5 --type raid5 -i 2 -I 64k --raidintegrity y --raidintegritymode bitmap -L 8M vg
synced
fill /dev/vg/r1
fill /dev/vg/r5
