# The old mirror segment, three legs, its log in memory alone.
# disks: 8M 8M 8M
vgcreate -s 64k vg "$@"
lvcreate -y -n mir --type mirror -m 2 --mirrorlog core -L 3M vg
synced
fill /dev/vg/mir
