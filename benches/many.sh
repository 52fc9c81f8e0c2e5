#!/bin/sh
# many.sh [IMAGES]: 1000 images in one call of `trueline check`, on all cores and on one, against a shell loop of blkid.
#
# The images are warm, so what is measured is the program. Each is tried three times; the best counts.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=benches/lib.sh
. benches/lib.sh
need many taskset=util-linux blkid=util-linux sfdisk=fdisk mkfs.ext4=e2fsprogs mkfs.vfat=dosfstools
trueline_binary
images=${1:-1000}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

small_image "$scratch/0.img"
n=1
while [ "$n" -lt "$images" ]; do
    cp --sparse=always "$scratch/0.img" "$scratch/$n.img"
    n=$((n + 1))
done

loop_of_blkid() {
    for image in "$scratch"/*.img; do
        blkid -p "$image"
    done
}

one_core() {
    taskset --cpu-list "$(taskset --cpu-list --pid $$ | sed 's/.*: *//; s/[-,].*//')" "$trueline" check "$scratch"/*.img
}

all_cores() {
    "$trueline" check "$scratch"/*.img
}

# rate COMMAND: images per second, the best of three.
rate() {
    for _ in 1 2 3; do
        from=$(date +%s%N)
        # Findings are no failure here; a usage error is.
        "$1" >"$scratch/out" 2>&1 || [ $? = 1 ] || { cat "$scratch/out" >&2; return 2; }
        echo $(($(date +%s%N) - from))
    done | sort -n | awk -v images="$images" 'NR == 1 { printf "%.0f", images * 1e9 / $1 }'
}

# The first look warms the cache.
loop_of_blkid >/dev/null
blkid_rate=$(rate loop_of_blkid)
one=$(rate one_core)
all=$(rate all_cores)
printf '%-28s %10s\n' "$images images" images/s 'blkid, one call each' "$blkid_rate" 'trueline, one core' "$one" "trueline, $(nproc) cores" "$all"
awk -v one="$one" -v all="$all" -v blkid="$blkid_rate" \
    'BEGIN { printf "all cores / one core: %.2f; one core / blkid: %.2f\n", all / one, one / blkid }'
