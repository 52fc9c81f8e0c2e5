# A server's disk: GPT with an ESP, XFS as /boot, and LVM with root (ext4), home (XFS) and swap.
# disks: 192M
sfdisk -q "$1" <<TABLE
label: gpt
size=8M, type=uefi
size=32M, type=linux
type=lvm
TABLE
blockdev --rereadpt "$1" || :
mkfs.vfat -n ESP "$1"1
small_xfs -q -L boot "$1"2
vgcreate vg "$1"3
lvcreate -y -n root -L 48M vg
lvcreate -y -n home -L 48M vg
lvcreate -y -n swap -L 16M vg
mkfs.ext4 -q -L root /dev/vg/root
small_xfs -q -L home /dev/vg/home
/usr/sbin/mkswap /dev/vg/swap
written /dev/vg/root
written /dev/vg/home
written "$1"2
sum "$1"1 "$1"2 /dev/vg/root /dev/vg/home /dev/vg/swap
