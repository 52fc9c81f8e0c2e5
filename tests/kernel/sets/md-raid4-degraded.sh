# RAID4 whose parity failed, then was removed.
# disks: 8M 8M 8M 8M
create r --level=4 --raid-devices=4 --chunk=64 "$@"
fill /dev/md/r old
mdadm /dev/md/r --fail "$4"
mdadm /dev/md/r --remove "$4"
fill /dev/md/r new
