# A thin pool with chunks of 192 KiB whose data lie in two stripes; a snapshot of a snapshot, and a
# volume that was removed.
# disks: 16M 16M
vgcreate -s 64k vg "$@"
lvcreate -y -n pool --type thin-pool -i 2 -I 64k -L 12M --chunksize 192k --poolmetadatasize 2M vg
lvcreate -y -n one --thinpool pool -V 8M vg
lvcreate -y -n gone --thinpool pool -V 8M vg
fill /dev/vg/one first 0 3000
fill /dev/vg/gone first 0 3000
lvcreate -y -s -n snap1 -kn vg/one
lvremove -y vg/gone
lvcreate -y -s -n snap2 -kn vg/snap1
forget /dev/vg/one
fill /dev/vg/one second
expect /dev/vg/snap1 "$name vg/one first" 0 3000
fill /dev/vg/snap2 third 100 50
expect /dev/vg/snap2 "$name vg/one first" 0 100
expect /dev/vg/snap2 "$name vg/one first" 150 2850
forget /dev/vg/gone
