#!/bin/sh
# check-vs-blkid.sh: `trueline check` against `blkid -p` on the same warm image: one in use, one of 1 TiB, sparse, and one with LVM
# as RHEL's installer makes it.
#
# blkid looks at the disk alone; check looks into every partition as well. Bounds, for each image: 3 times the time of
# blkid, 1 MiB read, 16 MiB of memory.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=benches/lib.sh
. benches/lib.sh
need check-vs-blkid hyperfine=hyperfine jq=jq strace=strace /usr/bin/time=time blkid=util-linux sfdisk=fdisk \
    mkfs.ext4=e2fsprogs mkfs.vfat=dosfstools
trueline_binary
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
status=0

# ratio IMAGE: the median of seven rounds, in each of which both programs have their turn.
ratio() {
    for _ in 1 2 3 4 5 6 7; do
        hyperfine -N --ignore-failure --warmup 5 --runs 40 --style none --export-json "$scratch/round.json" \
            "$trueline check $1" "blkid -p $1" >/dev/null 2>&1
        jq -r '[.results[].median] | "\(.[0] / .[1]) \(.[0] * 1000) \(.[1] * 1000)"' "$scratch/round.json"
    done | sort -n | sed -n 4p
}

# bytes_read IMAGE COMMAND...: what its reads of the image returned.
bytes_read() {
    image=$1
    shift
    strace -f -y -o "$scratch/trace" -e trace=read,pread64,readv,preadv,preadv2,mmap,io_uring_enter "$@" >/dev/null || true
    if grep -q "mmap(.*<$image>" "$scratch/trace" || grep -q io_uring_enter "$scratch/trace"; then
        echo "check-vs-blkid: $1 reads in ways that are not counted" >&2
        return 1
    fi
    grep "<$image>" "$scratch/trace" | awk '{ sum += $NF } END { print sum + 0 }'
}

# peak COMMAND...: KiB.
peak() {
    /usr/bin/time -q -o "$scratch/peak" -f %M "$@" >/dev/null 2>&1 || true
    tail -n 1 "$scratch/peak"
}

# bound WHAT VALUE MOST
bound() {
    awk -v v="$2" -v most="$3" 'BEGIN { exit !(v <= most) }' || { echo "check-vs-blkid: $1 is $2, bound $3" >&2; status=1; }
}

printf '%-8s %8s %12s %10s %12s %12s %10s %10s\n' image ratio 'trueline ms' 'blkid ms' 'bytes read' 'by blkid' 'peak KiB' 'of blkid'
for name in small large rhel; do
    image=$scratch/$name.img
    "${name}_image" "$image" || { echo "check-vs-blkid: $name skipped, it needs root, a loop device and LVM (lvm2)" >&2; continue; }
    times=$(ratio "$image")
    read_ours=$(bytes_read "$image" "$trueline" check "$image")
    read_theirs=$(bytes_read "$image" blkid -p "$image")
    peak_ours=$(peak "$trueline" check "$image")
    echo "$name $times $read_ours $read_theirs $peak_ours $(peak blkid -p "$image")" |
        awk '{ printf "%-8s %8.2f %12.2f %10.2f %12d %12d %10d %10d\n", $1, $2, $3, $4, $5, $6, $7, $8 }'
    bound "$name: the ratio of times" "${times%% *}" 3.0
    bound "$name: bytes read" "$read_ours" 1048576
    bound "$name: peak memory in KiB" "$peak_ours" 16384
done
exit "$status"
