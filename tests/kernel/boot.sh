#!/bin/sh
# boot.sh [-n] [-c N] [-m 'MODULE [PARAMETER...]']... [-p PROGRAM]... [-r COMMAND]... [DISK[,KEY=VALUE...]]...
#
# Boots the Debian kernel that is installed here under QEMU, in software, with the given images as its disks (vda, vdb, ...
# in that order), runs the commands, and prints what they write to descriptor 3, and then what that kernel's sysfs says: one
# JSON object a line for every disk and partition, all sizes in bytes. About five seconds. Nothing of the host is touched; a
# disk is written only with `rw`. A disk may be the URI of an NBD export.
#
#   keys    lbs= pbs= min= opt=   logical and physical block, minimum and optimal I/O size, in bytes
#           rw                    what the guest writes goes to the image
#   -n      gives the guest a network with this host alone on it, which it finds at 10.0.2.2
#   -c      gives the guest so many processors instead of one
#   -m      loads a module with its dependencies before the commands: -m 'scsi_debug physblk_exp=3 lowest_aligned=7'
#   -p      copies a program of the host, with its libraries, into the guest
#   -r      runs a command in the guest; all of them in order, by `sh -eux`
#
# TRUELINE_GUEST_ROOT=DIRECTORY takes the kernel under its boot/ and lib/modules/ instead: a package of another kernel, unpacked.
#
# Exit status: 0, 1 if the guest failed (its console is printed), 2 if something to boot it with is missing.
set -eu
PATH="$PATH:/usr/sbin:/sbin"
missing() {
    echo "boot.sh: $*" >&2
    exit 2
}

for program in qemu-system-x86_64 busybox cpio modprobe ldd; do
    command -v $program >/dev/null || missing "no $program"
done
tree=${TRUELINE_GUEST_ROOT:-}
kernel=
for image in "$tree"/boot/vmlinuz-*; do
    if [ -r "$image" ] && [ -d "$tree/lib/modules/${image#"$tree"/boot/vmlinuz-}" ]; then kernel=$image; fi
done
[ -n "$kernel" ] || missing "no kernel with modules under $tree/boot and $tree/lib/modules (package linux-image-amd64)"
release=${kernel#"$tree"/boot/vmlinuz-}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
root=$work/root
mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/run" "$root/tmp" "$root/modules"
program_sh=$(dirname "$0")/program.sh
"$program_sh" "$root" busybox /bin/busybox

# add_module NAME [PARAMETER...]: copies it and what it needs, and appends them to the list in loading order.
add_module() {
    name=$1
    shift
    modprobe -d "$tree/" -S "$release" --show-depends "$name" >"$work/depends" 2>&1 || missing "module $name: $(cat "$work/depends")"
    while read -r kind path _; do
        [ "$kind" = insmod ] || continue # built in
        file=$(basename "$path")
        file=${file%.xz} file=${file%.zst}
        [ ! -e "$root/modules/$file" ] || continue
        case $path in
            *.xz) xz -dc "$path" >"$root/modules/$file" ;;
            *.zst) zstd -qdc "$path" >"$root/modules/$file" ;;
            *) cp "$path" "$root/modules/$file" ;;
        esac
        case $(echo "${file%.ko}" | tr - _) in
            "$name") echo "$file $*" ;;
            *) echo "$file" ;;
        esac >>"$root/modules/list"
    done <"$work/depends"
}

: >"$root/modules/list"
: >"$root/commands"
add_module virtio_pci
add_module virtio_blk
network=none
processors=1
while getopts nc:m:p:r: option; do
    case $option in
        n)
            network='user,model=virtio-net-pci'
            add_module virtio_net
            ;;
        c) processors=$OPTARG ;;
        # The parameters are words of their own.
        m) add_module $OPTARG ;;
        p) "$program_sh" "$root" "$OPTARG" ;;
        r) echo "$OPTARG" >>"$root/commands" ;;
        *) sed -n '2s/^# //p' "$0" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
# scsi_debug only makes the bus; its disks come with sd_mod.
! grep -q ^scsi_debug "$root/modules/list" || add_module sd_mod

cat >"$root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs run /run
while read -r file parameters; do insmod "/modules/$file" $parameters || echo "insmod $file failed"; done </modules/list
# Disks and partitions appear by themselves: wait until the list has stayed the same.
before= now=x
while [ "$now" != "$before" ]; do
    before=$now
    usleep 300000
    now=$(echo /sys/block/* /sys/block/*/*/start)
done
# QEMU's user network gives the first guest this address.
[ ! -e /sys/class/net/eth0 ] || { ip address add 10.0.2.15/24 dev eth0; ip link set eth0 up; }
stty -F /dev/ttyS1 raw
exec 3>/dev/ttyS1
limits() {
    for limit in logical_block_size physical_block_size minimum_io_size optimal_io_size; do
        printf '"%s":%s,' $limit "$(cat "$1/queue/$limit")"
    done
}
report() { # its sysfs directory, the disk's
    start=0
    [ ! -e "$1/start" ] || start=$(($(cat "$1/start") * 512))
    printf '{"name":"%s","disk":"%s",' "${1##*/}" "${2##*/}"
    limits "$2"
    printf '"start":%s,"length":%s,"alignment_offset":%s}\n' "$start" $(($(cat "$1/size") * 512)) "$(cat "$1/alignment_offset")"
}
if sh -eux /commands; then
    for disk in /sys/block/vd* /sys/block/sd*; do
        [ -e "$disk" ] || continue
        report "$disk" "$disk"
        for partition in "$disk"/*/partition; do
            [ ! -e "$partition" ] || report "${partition%/partition}" "$disk"
        done
    done >&3
    sync
    echo end >&3
fi
# The serial port sends behind our back: to set it anew waits until it has (tcsetattr(3), TCSADRAIN).
stty -F /dev/ttyS1 raw
poweroff -f
INIT
chmod +x "$root/init"
(cd "$root" && find . | cpio --quiet -o -H newc) >"$work/initrd"

number=0
for disk; do
    file=${disk%%,*} device= snapshot=on locking=,file.locking=off
    case $file in
        nbd:* | nbd+unix:*) locking= ;;
        *) [ -r "$file" ] || missing "cannot read $file" ;;
    esac
    for key in $(echo "$disk" | cut -s -d, -f2- | tr , ' '); do
        case $key in
            lbs=*) device="$device,logical_block_size=${key#*=}" ;;
            pbs=*) device="$device,physical_block_size=${key#*=}" ;;
            min=*) device="$device,min_io_size=${key#*=}" ;;
            opt=*) device="$device,opt_io_size=${key#*=}" ;;
            rw) snapshot=off ;;
            *) missing "unknown key $key" ;;
        esac
    done
    number=$((number + 1))
    echo "-drive if=none,id=disk$number,format=raw,snapshot=$snapshot$locking,file=$file"
    echo "-device virtio-blk-pci,drive=disk$number$device"
done >"$work/arguments"

# No word of the arguments has a space in it, so they are split by the shell. Without `gpt` on its command line, Linux does
# not look at the backup of a GPT whose primary header is damaged.
# Without `no_timer_check` it may panic on a busy host, where the emulated timer is late. Its tests of its own ciphers take a second.
timeout -k 5 "${TRUELINE_GUEST_SECONDS:-1800}" qemu-system-x86_64 -machine pc,usb=off -accel tcg -cpu max -smp "$processors" -m 512 -nodefaults -nographic -no-reboot \
    -nic "$network" \
    -kernel "$kernel" -initrd "$work/initrd" -append "console=ttyS0 quiet panic=-1 mitigations=off nokaslr no_timer_check gpt cryptomgr.notests" \
    -serial "file:$work/console" -serial "file:$work/out" $(cat "$work/arguments") </dev/null >"$work/qemu" 2>&1 || :
if [ "$(tail -n 1 "$work/out" 2>/dev/null)" != end ]; then
    echo "boot.sh: the guest did not get to its end" >&2
    cat "$work/qemu" "$work/console" >&2
    exit 1
fi
sed '$d' "$work/out"
