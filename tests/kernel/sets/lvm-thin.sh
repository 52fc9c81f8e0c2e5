# A thin pool with chunks of 64 KiB, two thin volumes partly provisioned and a snapshot that has
# diverged.
# disks: 16M 16M
vgcreate -s 64k vg "$@"
lvcreate -y -n pool --type thin-pool -L 12M --chunksize 64k --poolmetadatasize 2M vg
lvcreate -y -n one --thinpool pool -V 16M vg
lvcreate -y -n two --thinpool pool -V 64M vg
# A volume of its own age in turns, so that neither lies in one piece.
fill /dev/vg/one first 0 1024
fill /dev/vg/two first 4096 512
fill /dev/vg/one first 8192 2048
fill /dev/vg/two first 131000 72
lvcreate -y -s -n snap -kn vg/one
# What both have stays shared; what either writes anew is its own.
forget /dev/vg/one
fill /dev/vg/one second 512 200
expect /dev/vg/one "$name vg/one first" 0 512
expect /dev/vg/one "$name vg/one first" 712 312
expect /dev/vg/one - 1024 7168
expect /dev/vg/one "$name vg/one first" 8192 2048
fill /dev/vg/one second 20480 256
expect /dev/vg/one - 10240 10240
expect /dev/vg/snap "$name vg/one first" 0 1024
expect /dev/vg/snap "$name vg/one first" 8192 1024
fill /dev/vg/snap third 9216 100
expect /dev/vg/snap "$name vg/one first" 9316 924
expect /dev/vg/snap - 10240 22528
fill /dev/vg/snap third 1024 1
expect /dev/vg/two - 0 4096
expect /dev/vg/two - 4608 126392
