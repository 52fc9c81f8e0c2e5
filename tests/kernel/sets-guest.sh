#!/bin/busybox sh
# sets-guest.sh RESULTS NAME DISK...
#
# One recipe of sets/, in the guest that sets.sh booted. What it finds goes to RESULTS/NAME/.
#
# A recipe is shell. It finds its empty disks as "$@", and besides the guest's programs:
#
#   create NAME OPTION...     mdadm --create of /dev/md/NAME, nothing to resync: all is zero
#   container FORMAT DISK...  mdadm --create of /dev/md/c, a container of firmware RAID
#   volume NAME OPTION... [DISK...]   and of /dev/md/NAME in it; mdadm picks its order of disks, if
#                             none are named
#   fill DEVICE [TAG [FIRST COUNT]]   writes a pattern that names its own address, in sectors of
#                             512 bytes, and expects to find it again
#   expect DEVICE TAG FIRST COUNT     expects it without writing; TAG - for zeros
#   forget DEVICE             expects nothing of a device any more
#   cryptsetup open --key-file "$results/key" DISK crypt-NAME     is closed after it
#   sum DEVICE...             keeps the checksum of what is no pattern
#   small_xfs OPTION... DEVICE        mkfs.xfs of a small device
#   written DEVICE            puts a file with the pattern into the file system there
#   integrity NAME DEVICE OPTIONS [MODE]   dm-integrity's volume /dev/mapper/NAME of a blank device,
#                             with its tags made
#   cached BACKING CACHE OPTION...   /dev/bcache0 of both; uncached stops it
#   synced                    waits until no array or volume is being synchronised
#   slowly; COMMAND; reached SECTORS  stops the resync, recovery or reshape of /dev/md/r that the
#                             command begins, at this sector of the members
#
# After it, everything is described and stopped.
set -eu
results=$1/$2 name=$2
shift 2
mkdir -p "$results"
# Of a firmware's RAID, without that firmware, on disks without serial numbers.
export IMSM_NO_PLATFORM=1 IMSM_DEVNAME_AS_SERIAL=1
export MDADM_NO_UDEV=1 DM_DISABLE_UDEV=1 LVM_SYSTEM_DIR="/run/lvm/$name" LVM_SUPPRESS_FD_WARNINGS=1
: >"$results/expect.txt"
echo 200000 >/proc/sys/dev/raid/speed_limit_max
echo 1000 >/proc/sys/dev/raid/speed_limit_min

# Only this recipe's disks: those of others, in the same guest, have sets of the same names.
mkdir -p "$LVM_SYSTEM_DIR" /run/lock/lvm /run/mdadm /run/cryptsetup
{
    echo 'devices { use_devicesfile=0 obtain_device_list_from_udev=0 scan_lvs=1 scan=["/dev"]'
    echo 'filter=['
    for disk; do echo "\"a|^${disk}[0-9]*\$|\","; done
    echo '"a|^/dev/md|", "a|^/dev/outer/|", "r|.*|"] }'
    echo 'activation { udev_sync=0 udev_rules=0 monitoring=0 thin_pool_autoextend_threshold=100 }'
    echo 'backup { backup=0 archive=0 }'
    echo 'global { event_activation=0 thin_check_executable="" cache_check_executable="" }'
} >"$LVM_SYSTEM_DIR/lvm.conf"
for command in pvs pvcreate pvmove vgs vgcreate vgchange vgrename vgcfgbackup \
    lvs lvcreate lvchange lvconvert lvextend lvremove lvrename; do
    eval "$command() { lvm $command \"\$@\"; }"
done

create() {
    array=$1
    shift
    mdadm --create "/dev/md/$array" --run --assume-clean --homehost=oracle --name="$array" "$@"
}

container() {
    format=$1
    shift
    mdadm --create /dev/md/c --run --metadata="$format" --raid-devices=$# "$@"
}

volume() {
    array=$1
    shift
    case $* in */dev/*) ;; *) set -- "$@" /dev/md/c ;; esac
    mdadm --create "/dev/md/$array" --run --assume-clean "$@"
}

# Devices keep their names when they are stopped: /dev/md/NAME, /dev/VG/LV.
forget() {
    grep -v "^$1 " "$results/expect.txt" >"$results/expect.new" || :
    mv "$results/expect.new" "$results/expect.txt"
}

expect() {
    echo "$1 $3 $4 $2" >>"$results/expect.txt"
}

fill() {
    tag="$name ${1#/dev/}${2:+ $2}"
    if [ $# -lt 3 ]; then
        forget "$1"
        set -- "$1" "" 0 "$(blockdev --getsz "$1")"
    fi
    pattern fill "$1" "$tag" "$3" "$4"
    expect "$1" "$tag" "$3" "$4"
}

sum() {
    for device; do
        echo "$(sha256sum <"$device" | cut -d' ' -f1) $(blockdev --getsize64 "$device") $device"
    done >>"$results/sums.txt"
}

# Below 300 MiB, mkfs.xfs works for its own tests alone.
small_xfs() {
    TEST_DIR=/ TEST_DEV=/ QA_CHECK_FS=true mkfs.xfs "$@"
}

written() {
    mkdir -p /tmp/mounted
    mount "$1" /tmp/mounted
    truncate -s 1M /tmp/mounted/pattern
    pattern fill /tmp/mounted/pattern "$name ${1#/dev/} file" 0 2048
    umount /tmp/mounted
}

# The kernel makes the superblock of a blank device, and says how long the volume is once a short one
# of it stands.
integrity() {
    # shellcheck disable=SC2086 # words
    set -- "$1" "integrity $2 0 - ${4:-J} $(set -- $3 && echo $#) $3"
    mapped="dmsetup create --noudevsync --noudevrules $1 --table"
    $mapped "0 8 $2"
    length=$(dmsetup status "$1" | cut -d' ' -f5)
    dmsetup remove --noudevsync --noudevrules "$1"
    $mapped "0 $length $2"
    dmsetup mknodes "$1"
    cat /dev/zero >"/dev/mapper/$1" 2>/dev/null || :
}

# A recipe has the only one of its boot, which stops it.
cached() {
    backing=$1 cache=$2
    shift 2
    make-bcache "$@" --bucket 64k --wipe-bcache -B "$backing" -C "$cache" >/dev/null
    for registered in "$cache" "$backing"; do echo "$registered" >/sys/fs/bcache/register; done
    until [ -b /dev/bcache0 ]; do usleep 50000; done
}

uncached() {
    sync
    echo 1 >/sys/block/bcache0/bcache/stop
    for set in /sys/fs/bcache/*-*; do echo 1 >"$set/stop"; done
    while [ -e /sys/block/bcache0 ] || ls -d /sys/fs/bcache/*-* >/dev/null 2>&1; do usleep 50000; done
}

# The kernel takes no lower sync_max while it runs, so it is frozen in between. To leave it frozen
# would not do: what is read from where an interrupted reshape has been last is never answered.
slowly() {
    echo 500 >/proc/sys/dev/raid/speed_limit_min
    echo 500 >/proc/sys/dev/raid/speed_limit_max
}

come() {
    tries=0
    until [ "$(cut -d' ' -f1 "$array/sync_completed" | sed s/none/0/)" -ge "$1" ]; do
        tries=$((tries + 1))
        [ $tries -lt 600 ]
        usleep 50000
    done
}

reached() {
    array=/sys/block/$(basename "$(readlink -f /dev/md/r)")/md
    come 1
    echo frozen >"$array/sync_action"
    while [ "$(cat "$array/sync_completed")" != none ]; do usleep 50000; done
    echo "$1" >"$array/sync_max"
    echo idle >"$array/sync_action"
    echo 200000 >/proc/sys/dev/raid/speed_limit_max
    come "$1"
}

synced() {
    while grep -q 'resync\|recovery' /proc/mdstat; do usleep 200000; done
    while lvs -a --noheadings -o sync_percent | grep '[0-9]' | grep -qv 100.00; do
        usleep 200000
    done
}

checked() {
    while read -r device first count tag; do
        pattern check "$device" "$tag" "$first" "$count" || return 1
    done <"$results/expect.txt"
}

# One line a value, FILE:VALUE. Files that have no value now cannot be read, which is no fault.
attributes() {
    cd /sys/block
    grep -s '' md*/md/* md*/md/dev-*/* md*/md/bitmap/* dm-*/dm/* \
        md*/queue/* md*/size md*/alignment_offset \
        dm-*/queue/* dm-*/size dm-*/alignment_offset || :
    cd /
}

reported() {
    report='--units s --nosuffix --reportformat json'
    # shellcheck disable=SC2086 # words
    {
        pvs -o all $report >"$results/pvs.json"
        pvs --segments -o pv_name,pvseg_all,lv_name,segtype,seg_start_pe,seg_size_pe \
            $report >"$results/pvsegs.json"
        vgs -o all $report >"$results/vgs.json"
        lvs -a --segments -o all $report >"$results/lvs.json"
    }
    # A VG with a PV missing is not backed up.
    vgcfgbackup -f "$results/%s.vg" || :
}

described() {
    uname -r >"$results/kernel.txt"
    for disk; do
        echo "$disk $(cat "/sys/block/${disk##*/}/dev")"
    done >"$results/disks.txt"
    cat /proc/mdstat >"$results/mdstat.txt"
    attributes >"$results/sysfs.txt"
    lsblk -OJb "$@" >"$results/lsblk.json"
    dmsetup table >"$results/dmtable.txt"
    dmsetup status >"$results/dmstatus.txt"
    dmsetup info -c >"$results/dminfo.txt"
    for array in /dev/md/*; do
        [ ! -b "$array" ] || mdadm --detail "$array" || :
    done >"$results/detail.txt"
    [ -z "$(vgs --noheadings 2>/dev/null)" ] || reported
}

# Arrays lie beneath volumes and volumes beneath arrays, so two rounds. An array that is stopped may
# stay in /sys for a while, `clear`.
stopped() {
    sync
    for _ in 1 2; do
        vgchange -an || :
        for volume in /dev/mapper/crypt-*; do
            [ ! -e "$volume" ] || cryptsetup close "${volume##*/}" || :
        done
        dmsetup ls --target integrity 2>/dev/null | while read -r mapped _; do
            [ "$mapped" = No ] || dmsetup remove --noudevsync --noudevrules "$mapped" || :
        done
        for state in /sys/block/md*/md/array_state; do
            if grep -qsv clear "$state"; then
                mdadm --stop "/dev/$(basename "${state%/md/array_state}")" || :
            fi
        done
    done
    rm -rf /dev/md
    [ -z "$(grep -sv clear /sys/block/md*/md/array_state)$(ls -d /sys/block/dm-* 2>/dev/null)" ]
}

# What the superblocks on the members say once the arrays are stopped.
examined() {
    # A member is a disk or a partition of it; others have no superblock, and mdadm says so.
    for member in $(for disk; do echo "$disk"*; done); do
        mdadm --examine "$member" || :
        mdadm --examine-bitmap "$member" || :
    done >"$results/examine.txt" 2>&1
}

# The mapping trees of thin pools and caches, once nothing writes them any more. Their volumes are
# read-only by themselves.
dumped() {
    for volume in $(lvs -a --noheadings -o lv_full_name | tr -d '[] ' | grep -E '_[tc]meta$'); do
        case $volume in
            *_tmeta) tool=thin_dump ;;
            *) tool=cache_dump ;;
        esac
        lvchange -ay -y "$volume"
        $tool "/dev/$volume" >"$results/$(echo "$volume" | tr / -).xml"
        lvchange -an "$volume"
    done
}

# shellcheck disable=SC1090
run() (
    set -eux
    . "/oracle/sets/$name.sh"
    set +x
    checked
    described "$@"
)

# `set -e` holds in `run` only where its status is not asked for at once. The console is printed if
# the guest hangs.
set +e
{
    run "$@"
    echo $? >"$results/status"
} 2>&1 | tee /dev/console >"$results/log.txt"
stopped >>"$results/log.txt" 2>&1 || {
    echo "not everything could be stopped" >>"$results/log.txt"
    echo 1 >"$results/status"
}
examined "$@"
dumped >>"$results/log.txt" 2>&1
