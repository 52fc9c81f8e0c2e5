#!/bin/sh
# zones.sh DIRECTORY
#
# Records what a host-managed disk of Linux's scsi_debug answers to a seeded sequence of reads, writes and resets, with the
# Debian kernel that is installed here, booted by boot.sh: DIRECTORY/scsi-debug-VERSION.txt, with which the zones of
# simulated drives are compared (crates/sim/src/drive/zones/tests.rs). Commands go around the block layer (SG_IO), which would
# refuse some of them itself.
#
# Exit status: 0, 1 if the guest failed, 2 if something to boot with is missing.
set -eu
PATH="$PATH:/usr/sbin:/sbin"
here=$(cd "$(dirname "$0")" && pwd)
missing() {
    echo "zones.sh: $*" >&2
    exit 2
}

[ $# = 1 ] || missing "usage: $(sed -n '2s/^# //p' "$0")"
command -v cc >/dev/null || missing "no cc"
out=$1
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
mkdir "$work/list"
cc -O2 -static -o "$work/list/zones" "$here/zones.c" || missing "cc cannot build zones.c"

# 16 zones of 2048 blocks, the first four conventional. Where a write goes is drawn: to the write pointer as this script follows
# it, beside it, or anywhere; over the end of a zone, to its end, or within it.
# Conventional zones are not reset: they have no write pointer.
awk -v seed=1 -v count=2000 '
function below(n) { seed = seed * 16807 % 2147483647; return seed % n }
BEGIN {
    zone = 2048; zones = 16; conventional = 4
    for (nth = conventional; nth < zones; nth++) pointer[nth] = nth * zone
    while (made < count) {
        nth = below(zones); kind = below(100); blocks = 8 * (1 + below(32))
        start = nth * zone; end = start + zone
        if (kind < 3 && nth >= conventional) { print "z", start, zone; made++; pointer[nth] = start; continue }
        if (kind < 4 && below(4) == 0) { print "z", 0, 0; made++; for (n = conventional; n < zones; n++) pointer[n] = n * zone; continue }
        if (kind < 14) lba = start + below(zone)
        else if (kind < 20) lba = end - 1 - below(blocks)
        else if (kind < 26 && nth >= conventional) lba = pointer[nth] + 8 - 16 * below(2)
        else lba = nth >= conventional ? pointer[nth] : start + below(zone)
        if (kind > 90 && nth >= conventional && pointer[nth] < end) blocks = end - pointer[nth]
        if (kind > 96) blocks += 8
        # Parts of a physical block, for which this disk does not ask.
        if (kind == 50 || kind == 51) blocks = 1 + below(7)
        if (lba < 0) lba = 0
        if (lba + blocks > zones * zone) blocks = zones * zone - lba
        if (blocks < 1 || blocks > 2048) continue
        op = below(5) == 0 ? "r" : "w"
        print op, lba, blocks
        made++
        if (op == "w" && nth >= conventional && lba == pointer[nth] && lba + blocks <= end) pointer[nth] = lba + blocks
    }
}' >"$work/list/commands"
tar -C "$work" -cf "$work/list.tar" list

parameters='zbc=managed zone_size_mb=1 zone_nr_conv=4 dev_size_mb=16 sector_size=512 physblk_exp=3'
"$here/boot.sh" -m "scsi_debug $parameters" -r 'tar -xf /dev/vda -C /' \
    -r 'uname -r | sed "s/^/# kernel /" >&3' -r 'disk=$(basename /sys/block/sd*) && /list/zones /dev/$disk </list/commands >&3' \
    "$work/list.tar" >"$work/said"
version=$(sed -n 's/^# kernel \([0-9]*\.[0-9]*\).*/\1/p' "$work/said")
{
    echo "# scsi_debug $parameters"
    grep -e '^# kernel' -e '^[rwz] ' "$work/said"
} >"$out/scsi-debug-$version.txt"
