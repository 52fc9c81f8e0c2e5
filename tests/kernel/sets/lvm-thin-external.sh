# A thin volume over an origin outside of its pool, and longer than that: what was never written to
# it is in the origin, and past the end of that zero.
# disks: 16M 16M
vgcreate -s 64k vg "$@"
lvcreate -y -n base -L 3M vg
fill /dev/vg/base
lvchange -an vg/base
lvchange -pr vg/base
lvcreate -y -n pool --type thin-pool -L 8M --chunksize 64k --poolmetadatasize 2M vg
lvcreate -y -s -n clone --thinpool pool vg/base
lvchange -ay -K vg/clone
lvextend -L 5M vg/clone
forget /dev/vg/base
expect /dev/vg/clone "$name vg/base" 0 1000
fill /dev/vg/clone second 1000 300
expect /dev/vg/clone "$name vg/base" 1300 4844
expect /dev/vg/clone - 6144 1000
fill /dev/vg/clone second 7144 10
expect /dev/vg/clone - 7154 3086
