#!/bin/sh
# others.sh: one check of the same warm image by the programs of docs/comparison.md, each from its start to its end: times as
# multiples of `trueline check`'s in the same rounds. Nothing is bounded: they do different work.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=benches/lib.sh
. benches/lib.sh
need others hyperfine=hyperfine jq=jq parted=parted sfdisk=fdisk mkfs.ext4=e2fsprogs mkfs.vfat=dosfstools
trueline_binary
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
small_image "$scratch/disk.img"
for _ in 1 2 3 4 5 6 7; do
    hyperfine -N --ignore-failure --warmup 3 --runs 20 --style none --export-json "$scratch/round.json" \
        "$trueline check $scratch/disk.img" "parted -s $scratch/disk.img align-check optimal 1" \
        "sfdisk -l $scratch/disk.img" "sfdisk -V $scratch/disk.img" >/dev/null 2>&1
    jq -r '.results[0].median as $own | .results | to_entries[] |
        "\(.key) \(.value.median / $own) \(.value.median * 1000)"' "$scratch/round.json"
done >"$scratch/rounds"
for what in '0 trueline check' '1 parted align-check' '2 sfdisk -l' '3 sfdisk -V'; do
    grep "^${what%% *} " "$scratch/rounds" | sort -n -k 2 |
        awk -v what="${what#* }" '{ ratio[NR] = $2; ms[NR] = $3 }
            END { printf "%-20s %.2f of the time of trueline check (%.2f to %.2f), %.1f ms\n", what, ratio[4], ratio[1], ratio[7], ms[4] }'
done
