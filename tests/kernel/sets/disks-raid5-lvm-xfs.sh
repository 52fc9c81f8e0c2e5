# Four members of an RAID5 with chunks of 64 KiB, LVM on it, and on that: XFS as mkfs makes it
# here, XFS with su and sw of another array, ext4 as mkfs makes it here.
# disks: 40M 40M 40M 40M
create r5 --level=5 --raid-devices=4 --chunk=64 "$@"
vgcreate vg /dev/md/r5
lvcreate -y -n data -L 36M vg
lvcreate -y -n wrong -L 36M vg
lvcreate -y -n ext -L 24M vg
small_xfs -q -L data /dev/vg/data
small_xfs -q -L wrong -d su=32k,sw=4 /dev/vg/wrong
mkfs.ext4 -q -L ext /dev/vg/ext
written /dev/vg/data
written /dev/vg/ext
sum /dev/vg/data /dev/vg/wrong /dev/vg/ext
