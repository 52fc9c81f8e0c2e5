# RAID5 rebuilding onto its spare, stopped half-way: what lies past the recovery offset of the
# spare is nothing yet.
# disks: 12M 12M 12M 12M
create r --level=5 --raid-devices=3 --chunk=64 "$1" "$2" "$3"
fill /dev/md/r old
mdadm /dev/md/r --fail "$2"
fill /dev/md/r new
slowly
mdadm /dev/md/r --add "$4"
reached 4096
