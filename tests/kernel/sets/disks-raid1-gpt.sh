# Two disks, each with a GPT: /boot on a RAID1 of the second partitions (superblock 1.0), LVM on a
# RAID1 of the third ones (1.2).
# disks: 80M 80M
for disk; do
    sfdisk -q "$disk" <<TABLE
label: gpt
size=4M, type=uefi
size=24M, type=raid
type=raid
TABLE
    blockdev --rereadpt "$disk" || :
done
create boot --metadata=1.0 --level=1 --raid-devices=2 "$1"2 "$2"2
create pv --level=1 --raid-devices=2 --bitmap=internal "$1"3 "$2"3
mkfs.ext4 -q -L boot /dev/md/boot
vgcreate vg /dev/md/pv
lvcreate -y -n root -L 32M vg
mkfs.ext4 -q -L root /dev/vg/root
written /dev/md/boot
written /dev/vg/root
sum /dev/md/boot /dev/vg/root
