#!/bin/sh
# mkfs-ufs.sh: `trueline mkfs ufs` on 90 GiB, sparse, against mke2fs for the same size, its inode tables lazy and not.
#
# Each makes a file system where none was, and ends when it is on the medium: both sync, and strace counts how often. UFS2 writes
# the first inodes of every group with a random generation each, so it has more to write; the bytes are printed.
# Bound: the time of lazy mke2fs, which is missed as yet, and memory that does not grow from 1 GiB to 15 TiB.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=benches/lib.sh
. benches/lib.sh
need mkfs-ufs hyperfine=hyperfine jq=jq strace=strace /usr/bin/time=time mke2fs=e2fsprogs
trueline_binary
scratch=$(mktemp -d -p "${TMPDIR:-/var/tmp}")
trap 'rm -rf "$scratch"' EXIT
status=0
ours=$scratch/ufs.img theirs=$scratch/ext4.img
lazy="mke2fs -q -F -t ext4 -E lazy_itable_init=1 $theirs"
full="mke2fs -q -F -t ext4 -E lazy_itable_init=0 $theirs"

# ratio: the median of seven rounds, in each of which all have their turn: against lazy, against not, and milliseconds.
ratio() {
    for _ in 1 2 3 4 5 6 7; do
        hyperfine -N --warmup 1 --runs 10 --style none --export-json "$scratch/round.json" \
            --prepare "sh -c 'rm -f $ours $theirs; truncate -s 90G $ours $theirs; sync -f $scratch'" \
            "$trueline mkfs ufs $ours" "$lazy" "$full" >/dev/null 2>&1
        jq -r '[.results[].median] | "\(.[0] / .[1]) \(.[0] / .[2]) \(.[0] * 1000) \(.[1] * 1000) \(.[2] * 1000)"' "$scratch/round.json"
    done | sort -n | sed -n 4p
}

# traced COMMAND...: bytes that its writes of the image took, and its syncs.
traced() {
    rm -f "$ours" "$theirs"
    truncate -s 90G "$ours" "$theirs"
    strace -f -y -o "$scratch/trace" -e trace=pwrite64,write,fsync,fdatasync "$@" >/dev/null
    grep '\.img>' "$scratch/trace" | awk '/sync\(/ { syncs++ } /write/ { sum += $NF } END { print sum + 0, syncs + 0 }'
}

# peak SIZE: KiB.
peak() {
    rm -f "$ours"
    truncate -s "$1" "$ours" 2>/dev/null || { echo -; return; }
    /usr/bin/time -q -o "$scratch/peak" -f %M "$trueline" mkfs ufs "$ours" >/dev/null
    tail -n 1 "$scratch/peak"
}

times=$(ratio)
echo "$times" | awk '{ printf "ratio to mke2fs: %.2f (lazy), %.2f (not)   ms: %.1f, mke2fs %.1f and %.1f\n", $1, $2, $3, $4, $5 }'
# shellcheck disable=SC2086 # the words of a command
echo "bytes written, syncs: $(traced "$trueline" mkfs ufs "$ours"); mke2fs $(traced $lazy)"
small=$(peak 1G) large=$(peak 15T)
echo "peak KiB: $small for 1 GiB, $large for 15 TiB"
awk -v v="${times%% *}" 'BEGIN { exit !(v <= 1.0) }' || { echo "mkfs-ufs: the ratio of times is ${times%% *}, bound 1" >&2; status=1; }
[ "$large" = - ] || [ "$large" -le $((small + 1024)) ] || { echo "mkfs-ufs: peak memory grows with the size" >&2; status=1; }
exit "$status"
