# IMSM RAID5 of three disks in order, chunks of 64 KiB, with a GPT and ext4 that knows of them.
# disks: 16M 16M 16M
container imsm "$@"
volume r --level=5 --raid-devices=3 --chunk=64 "$@"
printf 'label: gpt\nstart=2048,type=linux\n' | sfdisk -q /dev/md/r
device=$(readlink -f /dev/md/r)p1
mkfs.ext4 -q -b 4096 -E stride=16,stripe_width=32 "$device"
written "$device"
sum "$device"
