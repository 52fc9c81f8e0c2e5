# Two arrays of one name made on two hosts, each of two members.
# disks: 8M 8M 8M 8M
create r --level=1 --raid-devices=2 "$1" "$2"
fill /dev/md/r
checked
mdadm --stop /dev/md/r
forget /dev/md/r
mdadm --create /dev/md/s --run --assume-clean --homehost=elsewhere --name=r \
    --level=1 --raid-devices=2 "$3" "$4"
fill /dev/md/s
