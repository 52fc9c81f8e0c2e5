# Linear, three members of unequal length: they follow one another, rounded to 64 KiB.
# disks: 8M 12M 10M
create r --level=linear --raid-devices=3 --rounding=64 "$@"
fill /dev/md/r
