# An RAID5 of four members with a GPT on it, and ext4 in its one partition.
# disks: 12M 12M 12M 12M
create r --level=5 --raid-devices=4 --chunk=64 "$@"
printf 'label: gpt\nstart=2048,type=linux\n' | sfdisk -q /dev/md/r
array=$(readlink -f /dev/md/r)
blockdev --rereadpt "$array" || :
mkfs.ext4 -q "${array}p1"
sum "${array}p1"
