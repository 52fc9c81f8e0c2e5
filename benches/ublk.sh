#!/bin/sh
# ublk.sh [ROUNDS [PROCESSORS]]: one provider of memory as a block device, three ways, in a guest.
#
# `trueline serve --ublk` against a loop device on the file of --fuse and against the kernel's nbd driver on a Unix socket, all three of
# one server; in turns, by the reads of `trueline bench` past the page cache: 4 KiB anywhere at depths 1 and 32, 1 MiB one after another.
# The figure is the median of the rounds' ratios. Bound: no slower than either.
#
# In a guest that QEMU emulates in software, because few kernels have the driver, and on one processor unless PROCESSORS says more: the
# ratios are of instructions. Of waking another processor nothing is said, which in a guest is a matter of the host.
# TRUELINE_GUEST_ROOT=DIRECTORY: an unpacked package of a kernel with CONFIG_BLK_DEV_UBLK, as for tests/kernel/boot.sh.
set -eu
cd "$(dirname "$0")/.."
. benches/lib.sh
need ublk qemu-system-x86_64=qemu-system-x86 busybox=busybox cpio=cpio nbd-client=nbd-client losetup=mount
tree=${TRUELINE_GUEST_ROOT:-}
found=
for module in "$tree"/lib/modules/*/kernel/drivers/block/ublk_drv.ko*; do [ ! -e "$module" ] || found=$module; done
[ -n "$found" ] || { echo "ublk: skipped, no kernel with ublk_drv: TRUELINE_GUEST_ROOT=DIRECTORY of an unpacked linux-image package" >&2; exit 0; }
trueline_binary
rounds=${1:-5} processors=${2:-1}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

cat >"$work/measure" <<'END'
set -eu
trueline=$1 losetup=$2 client=$3 rounds=$4
mkdir -p /files
$trueline serve md:128m --no-counters --ublk --fuse /files --nbd unix:/socket &
server=$!
until dd if=/dev/ublkb0 of=/dev/null count=1 2>/dev/null && [ -S /socket ] && [ -e /files/disk ]; do usleep 100000; done
loop=$($losetup --find --show --direct-io=on /files/disk)
$client -unix /socket /dev/nbd0
# Pages that are not there cost nothing to read.
dd if=/dev/urandom of=/dev/ublkb0 bs=1048576 count=128 2>/dev/null
# measure ROUND NAME DEVICE WHAT WORKLOAD OPTION...
measure() {
    round=$1 name=$2 device=$3 what=$4
    shift 4
    $trueline bench "$@" "$device" --offset 0 --runs 1 --warmup 0 --seconds 2 --json |
        awk -v said="$round $name $what" '/"seconds":/ { s = $2 + 0 } /"ops":/ { n = $2 + 0 } END { print said, n / s }' >&3
}
round=0
while [ $round -lt "$rounds" ]; do
    for way in ublk=/dev/ublkb0 loop=$loop nbd=/dev/nbd0; do
        name=${way%%=*} device=${way#*=}
        measure $round $name $device 4k-depth-1 random-read --bs 4k --qd 1
        measure $round $name $device 4k-depth-32 random-read --bs 4k --qd 32
        measure $round $name $device 1m-sequential dd --bs 1m
    done
    round=$((round + 1))
done
$client -d /dev/nbd0
$losetup --detach "$loop"
kill $server
wait $server
END

# In the guest programs lie where they lie here.
client=$(command -v nbd-client) losetup=$(command -v losetup)
TRUELINE_GUEST_SECONDS=${TRUELINE_GUEST_SECONDS:-$((120 + rounds * 60))} tests/kernel/boot.sh -c "$processors" -m ublk_drv -m loop -m fuse -m nbd \
    -p "$trueline" -p nbd-client -p losetup -r "cat >/measure <<'SCRIPT'
$(cat "$work/measure")
SCRIPT" -r "set +x; sh /measure $trueline $losetup $client $rounds" >"$work/figures"
awk '
    function median(list, count,    i, j, swap) {
        for (i = 1; i < count; i++)
            for (j = i + 1; j <= count; j++) if (list[j] < list[i]) { swap = list[i]; list[i] = list[j]; list[j] = swap }
        return count % 2 ? list[(count + 1) / 2] : (list[count / 2] + list[count / 2 + 1]) / 2
    }
    NF == 4 { rate[$3, $2, $1 + 1] = $4; if ($1 + 1 > n) n = $1 + 1 }
    END {
        whats = split("4k-depth-1 4k-depth-32 1m-sequential", what, " ")
        names = split("ublk loop nbd", name, " ")
        for (w = 1; w <= whats; w++)
            for (i = 1; i <= names; i++) {
                for (r = 1; r <= n; r++) { own[r] = rate[what[w], name[i], r]; ratio[r] = own[r] ? rate[what[w], "ublk", r] / own[r] : 0 }
                printf "%-14s %-5s %9.0f a second", what[w], name[i], median(own, n)
                if (i > 1) { m = median(ratio, n); printf "; ublk is %.2f times as fast", m; if (m < 1) slow = 1 }
                printf "\n"
            }
        exit slow
    }' "$work/figures" || { echo "ublk: slower than another way" >&2; exit 1; }
