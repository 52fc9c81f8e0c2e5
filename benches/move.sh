#!/bin/sh
# move.sh: a partition of 1 GiB moved in an image, against `sfdisk --move-data` and `dd`, in turns.
#
# near: from sector 63 to 2048. Every byte is in a journal before it is overwritten; sfdisk has none, and flushes nothing. Bound: 0.9 times
#   its speed.
# far: 120 MiB further, onto itself. Bound: sfdisk's speed.
# apart: to a place that does not overlap, against dd bs=1M conv=fsync of the same bytes. Bound: 0.9 times its speed.
# MOVE_DIR: directory of the image, with room for 4 GiB; by default the build directory. In /dev/shm nothing is flushed to a medium.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=benches/lib.sh
. benches/lib.sh
need move sfdisk=fdisk openssl=openssl
trueline_binary
where=${MOVE_DIR:-$(realpath "${CARGO_TARGET_DIR:-target}")}
rounds=${MOVE_ROUNDS:-5}
scratch=$(mktemp -d "$where/move.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

gib=2097152 # sectors
openssl enc -aes-128-ctr -K 00 -iv 00 </dev/zero 2>/dev/null | head -c 1G >contents
# image START: a disk of 2200 MiB with the partition at sector START.
image() {
    rm -f disk
    truncate -s 2300M disk
    printf 'label: dos\nstart=%d, size=%d, type=83\n' "$1" $gib | sfdisk -q --force disk >/dev/null 2>&1
    dd if=contents of=disk bs=512 seek="$1" conv=notrunc,fsync status=none 2>/dev/null
}
# seconds COMMAND: seconds that a shell takes for it.
seconds() {
    from=$(date +%s%N)
    sh -c "$1" >/dev/null 2>&1
    to=$(date +%s%N)
    echo "$from $to" | awk '{ printf "%.3f", ($2 - $1) / 1e9 }'
}
# turns NAME START TO OTHER: both in turns; then the medians, the ratio of speeds and whether the bytes are there.
turns() {
    : >times
    for _ in $(seq "$rounds"); do
        for tool in ours other; do
            image "$2"
            if [ $tool = ours ]; then command="$trueline move --to ${3}s 'disk#s1'"; else command=$4; fi
            echo "$tool $(seconds "$command")" >>times
            dd if=disk bs=1M iflag=skip_bytes,count_bytes skip=$(($3 * 512)) count=1G status=none | cmp -s - contents ||
                echo "move: $1: $tool has other bytes" >&2
        done
    done
    sort -k1,1 -k2,2n times | awk -v name="$1" -v rounds="$rounds" '
        { t[$1, ++n[$1]] = $2 }
        END {
            m = int((rounds + 1) / 2)
            printf "%-6s trueline %.2f s, other %.2f s: %.2f times its speed\n", name, t["ours", m], t["other", m], t["other", m] / t["ours", m]
        }'
}
moved() { echo "echo 'start=$1' | sfdisk --move-data --no-reread --no-tell-kernel --force -q -N 1 disk"; }
turns near 63 2048 "$(moved 2048)"
turns far 63 245760 "$(moved 245760)"
turns apart 63 2101248 "dd if=disk of=disk bs=1M iflag=skip_bytes,count_bytes oflag=seek_bytes skip=32256 seek=$((2101248 * 512)) count=1G conv=notrunc,fsync"
