# A mapping tree of several levels: a thin volume of 1 GiB of whose chunks of 64 KiB every second
# one is provisioned, as far as the pool goes.
# disks: 80M
vgcreate -s 64k vg "$@"
lvcreate -y -n pool --type thin-pool -L 70M --chunksize 64k --poolmetadatasize 4M vg
lvcreate -y -n big --thinpool pool -V 1G vg
i=0
while [ $i -lt 800 ]; do
    pattern fill /dev/vg/big "$name vg/big" $((i * 256)) 1
    expect /dev/vg/big "$name vg/big" $((i * 256)) 1
    i=$((i + 1))
done
