#!/bin/sh
# probe.sh: how often `trueline probe` is right. A: PROBE_DRAWS (1000) simulated drives whose unit, phase, kind, firmware and noise are drawn at random.
# B: a loop device over the page cache, whose unit is a page of 4096 bytes, at PROBE_STARTS (8) offsets of whole sectors: a real device, in real time.
#
# Bound: 95 % right, 1 % wrong, of each. B needs root and loop devices; its file of 768 MiB is in PROBE_DIRECTORY (the current one), past the cache.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=benches/lib.sh
. benches/lib.sh
need probe jq=jq losetup=mount
trueline_binary
draws=${PROBE_DRAWS:-1000} starts=${PROBE_STARTS:-8}
TRUELINE_DRAWS=$draws TRUELINE_SEED=5001 cargo test --release --locked -p trueline-lab --test blind -- --nocapture | grep -v '^$'

scratch=$(mktemp -d "${PROBE_DIRECTORY:-.}/probe.XXXXXX")
device=
trap 'losetup -d "$device" 2>/dev/null || true; rm -rf "$scratch"' EXIT
right=0 wrong=0
for nth in $(seq 0 $((starts - 1))); do
    start=$((nth * 512)) due=$(((4096 - nth % 8 * 512) % 4096))
    # Pages that are in memory need not be read before a part of them is written.
    dd if=/dev/urandom of="$scratch/disk" bs=1M count=768 oflag=direct status=none
    device=$(losetup --find --show --offset "$start" --direct-io=off "$scratch/disk")
    "$trueline" probe --destructive --seconds 60 --seed $((nth + 1)) --json "$device" >"$scratch/found"
    losetup -d "$device"
    device=
    found=$(jq -r '[.units[] | select(.why == "physical") | "\(.size)+\(.phase)"] | join(" ")' "$scratch/found")
    told=$(jq -r '"\(.verdict) \(.duration_ns / 1e9 | floor) s, \(.requests) writes"' "$scratch/found")
    echo "loop at $start: due 4096+$due, found ${found:-nothing}: $told"
    if [ "$found" = "4096+$due" ]; then right=$((right + 1)); elif [ -n "$found" ]; then wrong=$((wrong + 1)); fi
done
echo "loop: $right of $starts right, $wrong wrong"
[ $((right * 100)) -ge $((starts * 95)) ] && [ "$wrong" = 0 ]
