#!/bin/sh
# apply-vs-sfdisk.sh: a GPT with eight partitions on a fresh image, by one `trueline part apply`, sfdisk, parted and sgdisk.
#
# Bound: the time of sfdisk at its best: with --no-tell-kernel, without which it sleeps a quarter of a second. The others are there to
# compare with: sgdisk sleeps too.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=benches/lib.sh
. benches/lib.sh
need apply-vs-sfdisk hyperfine=hyperfine jq=jq sfdisk=fdisk parted=parted sgdisk=gdisk
trueline_binary
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
image=$scratch/fresh.img

printf 'label: gpt\n' >script
echo 'scheme = "gpt"' >layout.toml
parted="parted -s $image mklabel gpt"
sgdisk="sgdisk"
for i in 1 2 3 4 5 6 7; do
    echo ',64MiB,L' >>script
    printf '[[partition]]\ntype = "linux-data"\nsize = "64MiB"\n' >>layout.toml
    parted="$parted mkpart p$i ext4 $((i * 64 - 63))MiB $((i * 64 + 1))MiB"
    sgdisk="$sgdisk -n $i:0:+64M"
done
echo ',,L' >>script
printf '[[partition]]\ntype = "linux-data"\n' >>layout.toml
parted="$parted mkpart p8 ext4 449MiB 100%"
sgdisk="$sgdisk -n 8:0:0 $image"

# round RUNS COMMAND...: one JSON of what each of the commands took, every time on an image that is new.
round() {
    runs=$1
    shift
    hyperfine -N --warmup 2 --runs "$runs" --style none --export-json round.json \
        --prepare "sh -c 'rm -f $image; truncate -s 1G $image'" "$@" >/dev/null 2>&1
}

# The median of seven rounds, in each of which both programs have their turn, started by a shell as sfdisk reads its stdin.
ratio=$(for _ in 1 2 3 4 5 6 7; do
    round 40 "sh -c 'exec $trueline part apply layout.toml $image'" "sh -c 'exec sfdisk -q --no-reread --no-tell-kernel $image <script'"
    jq -r '[.results[].median] | "\(.[0] / .[1]) \(.[0] * 1000) \(.[1] * 1000)"' round.json
done | sort -n | sed -n 4p)
round 5 "$parted" "$sgdisk"
others=$(jq -r '[.results[].median * 1000] | "\(.[0]) \(.[1])"' round.json)

printf '%8s %12s %10s %10s %10s\n' ratio 'trueline ms' 'sfdisk ms' 'parted ms' 'sgdisk ms'
echo "$ratio $others" | awk '{ printf "%8.2f %12.2f %10.2f %10.2f %10.2f\n", $1, $2, $3, $4, $5 }'
awk -v v="${ratio%% *}" 'BEGIN { exit !(v <= 1.0) }' || { echo "apply-vs-sfdisk: the ratio of times is ${ratio%% *}, bound 1.0" >&2; exit 1; }
