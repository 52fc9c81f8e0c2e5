# A disk of a hypervisor: LVM in a partition at 1 MiB, a thin pool, and in it a guest's disk with a
# GPT and ext4 of its own.
# disks: 64M
printf 'label: gpt\ntype=lvm\n' | sfdisk -q "$1"
blockdev --rereadpt "$1" || :
vgcreate pve "$1"1
lvcreate -y -n data --type thin-pool -L 40M --chunksize 64k --poolmetadatasize 4M pve
lvcreate -y -n vm-100-disk-0 --thinpool data -V 64M pve
printf 'label: gpt\ntype=linux\n' | sfdisk -q --no-reread --no-tell-kernel /dev/pve/vm-100-disk-0
dmsetup create --noudevsync --noudevrules inside \
    --table "0 126976 linear /dev/pve/vm-100-disk-0 2048"
dmsetup mknodes inside
mkfs.ext4 -q -L vm /dev/mapper/inside
written /dev/mapper/inside
sum /dev/mapper/inside
dmsetup remove --noudevsync --noudevrules inside
sum /dev/pve/vm-100-disk-0
