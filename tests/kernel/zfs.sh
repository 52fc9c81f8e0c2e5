#!/bin/sh
# zfs.sh MODULES USERLAND [CASE...]
#
# Writes to stdout what OpenZFS asks of a disk for each request of zfs/CASE.txt (all of them if none is named), in the
# Debian kernel that is installed here, booted by boot.sh. crates/lab/tests/layers/zfs.txt is its output.
#
#   MODULES   a directory with spl.ko and zfs.ko, built for that kernel
#   USERLAND  a directory with sbin/ and lib/x86_64-linux-gnu/ of zpool, zfs, zinject and their libraries
#
# Both come from Debian's contrib: zfs-dkms, zfsutils-linux, zfs-test, libzfs*linux, libzpool*linux, libnvpair3linux,
# libuutil3linux, unpacked with `dpkg -x`. The modules are built in the sources of zfs-dkms, and lose their debug information:
#
#   ./configure --with-config=kernel --with-linux=HEADERS-common --with-linux-obj=HEADERS-amd64 && make
#   strip -g module/spl.ko module/zfs.ko
#
# The pool has a disk for data and one for metadata (`special`), so that all that the first is asked is of data, the intent
# log and labels. Nothing is joined, nothing is read ahead, and a transaction group ends when it is told to. Commits are
# recorded on a disk that is slow (zinject): on one that writes a block of the log before the next is sent, each has its own
# flush.
#
# Exit status: 0, 1 if the guest failed, 2 if something is missing.
set -eu
PATH="$PATH:/usr/sbin:/sbin"
here=$(cd "$(dirname "$0")" && pwd)
missing() {
    echo "zfs.sh: $*" >&2
    exit 2
}

[ $# -ge 2 ] || missing "usage: $(sed -n '2s/^# //p' "$0")"
modules=$1 userland=$(cd "$2" && pwd)
shift 2
[ $# -gt 0 ] || set -- $(cd "$here/zfs" && ls ./*.txt | sed 's,^\./,,; s,\.txt$,,')
for program in cc depmod sfdisk; do command -v $program >/dev/null || missing "no $program"; done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

kernel=$(ls /boot/vmlinuz-* | sort -V | tail -n 1)
release=${kernel#/boot/vmlinuz-}
mkdir -p "$work/tree/boot" "$work/tree/lib/modules/$release"
cp "$kernel" "$work/tree/boot"
cp -r "/lib/modules/$release/." "$work/tree/lib/modules/$release"
mkdir -p "$work/tree/lib/modules/$release/extra"
cp "$modules/spl.ko" "$modules/zfs.ko" "$work/tree/lib/modules/$release/extra"
depmod -b "$work/tree" "$release"

cc -O2 -o "$work/zfs-requests" "$here/zfs-requests.c" || missing "cc cannot build zfs-requests.c"
for disk in data metadata; do
    truncate -s 1G "$work/$disk.img"
    echo 'start=2048' | sfdisk -q -X gpt "$work/$disk.img"
done
export LD_LIBRARY_PATH="$userland/lib/x86_64-linux-gnu:$userland/usr/lib/x86_64-linux-gnu"
export PATH="$userland/sbin:$PATH"

# A line is a request and what the disk for data was asked for it: R reads, W writes, L writes of labels, each with the bytes
# and, where several in a row are alike, their number before it; F flushes.
cat >"$work/asked.awk" <<'AWK'
/tracing_mark_write: / {
    line()
    sub(/.*tracing_mark_write: /, "")
    request = $0
    if (/^# end/) {
        request = sprintf("%s; metadata: %d reads, %d bytes, %d writes, %d bytes",
            $0, many["R"], bytes["R"], many["W"], bytes["W"])
    }
    if (/^#/) { split("", many); split("", bytes) }
    next
}
/block_bio_queue: / {
    sub(/.*block_bio_queue: /, "")
    split($1, device, ",")
    if (device[1] != major) next
    op = $2 ~ /^F?R/ ? "R" : $2 ~ /^F/ && $5 == 0 ? "F" : "W"
    offset = ($3 - 2048) * 512; length_ = $5 * 512
    # 16 minor numbers a disk.
    if (int(device[2] / 16) == 1) { many[op]++; bytes[op] += length_; next }
    # Two labels and the boot block before the data, two labels behind them.
    if (op == "W" && (offset < 4194304 || offset >= size - 524288)) op = "L"
    add(op == "F" ? "F" : op length_)
}
END { line() }
function add(word) {
    if (word != last) { flush(); last = word }
    count++
}
function flush() {
    if (count) asked = asked " " (count > 1 ? count : "") last
    count = 0; last = ""
}
function line() {
    flush()
    if (request ~ /^# layer/) within = 1
    # What makes the pool ready is left out.
    if (within || request ~ /^#/) print request (asked == "" || !within ? "" : " >" asked)
    if (request ~ /^# end/) within = 0
    request = ""; asked = ""
}
AWK
cat >"$work/guest" <<GUEST
#!/bin/sh
set -eu
export LD_LIBRARY_PATH=$LD_LIBRARY_PATH PATH=$userland/sbin:\$PATH
mkdir -p /etc; ln -sf /proc/self/mounts /etc/mtab
mount -t tracefs tracefs /sys/kernel/tracing
for disk in vda vdb; do echo 2 >/sys/block/\$disk/queue/nomerges; done
cd /sys/module/zfs/parameters
echo 0 >zfs_vdev_aggregation_limit
echo 0 >zfs_vdev_aggregation_limit_non_rotating
echo 1 >zfs_prefetch_disable
echo 0 >zvol_prefetch_bytes
echo 36000 >zfs_txg_timeout
echo 201326592 >zfs_arc_max
echo 134217728 >zfs_dirty_data_max
echo 90 >zfs_dirty_data_sync_percent
cd /sys/kernel/tracing
echo 30000 >buffer_size_kb
zpool create -f -o ashift=12 -O compression=off -O atime=off -O mountpoint=none pool /dev/vda1 special /dev/vdb1
echo 1 >events/block/block_bio_queue/enable
for name in $*; do
    $work/zfs-requests trace_marker pool <$work/cases/\$name
done
echo 0 >events/block/block_bio_queue/enable
if grep -q LOST trace; then exit 1; fi
{
    size=\$((\$(cat /sys/block/vda/vda1/size) * 512))
    echo "# Linux \$(uname -r), ZFS \$(cat /sys/module/zfs/version), \$size bytes"
    awk -v size=\$size -v major=\$(cut -d: -f1 /sys/block/vda/dev) -f $work/asked.awk trace
} >&3
zpool destroy pool
GUEST
mkdir -p "$work/cases"
for name; do cp "$here/zfs/$name.txt" "$work/cases/$name"; done
chmod +x "$work/guest" "$work/asked.awk" "$work"/cases/*
set -- $(for name; do echo "$work/cases/$name"; done)
arguments=
for file in "$work/guest" "$work/asked.awk" "$work/zfs-requests" "$@" zpool zfs zinject; do arguments="$arguments -p $file"; done
# What it says of disks at its end is left out.
TRUELINE_GUEST_ROOT=$work/tree "$here/boot.sh" -m zfs $arguments -r "$work/guest" \
    "$work/data.img,rw" "$work/metadata.img,rw" >"$work/recording"
grep -v '^{' "$work/recording"
