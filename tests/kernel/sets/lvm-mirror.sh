# The old mirror segment, two legs and a log on the third PV.
# disks: 16M 16M 16M
vgcreate vg "$@"
lvcreate -y -n mir --type mirror -m 1 -L 8M vg
synced
fill /dev/vg/mir
