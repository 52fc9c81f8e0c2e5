#!/bin/sh
# sets.sh: what a volume group of four physical and 200 logical volumes costs: a read of 4096 bytes through a linear, a striped and
# a thin volume of a striped pool, all in memory, and assembling the group.
#
# Reads: instructions by callgrind, the same at every run, and wall time, the shortest of seven in turns, beside those of the bare disk. Bounds: a
# linear volume costs no instruction, a striped and a thin one at most 60 ns.
# Assembling: the program's time in memory, beside reading the metadata of every disk and summing them; and of images, the whole of
# `trueline show` against LVM's `lvs` of the same images under loop devices (root). Bound: twice the time of lvs.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=benches/lib.sh
. benches/lib.sh
need sets valgrind=valgrind
target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --release --package trueline-geom --example volumes
volumes=$target/release/examples/volumes
status=0

few=10000 many=110000

# instructions WHAT COUNT: of the whole program.
instructions() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$volumes" "$1" "$2" 2>&1 | sed -n 's/.*Collected : *//p'
}

reads() {
    "$volumes" "$1" "$2"
}

printf '%-8s %18s %12s\n' volume instructions/read ns/read
{
    for what in raw linear striped thin; do
        echo "i $what $(($(instructions $what $many) - $(instructions $what $few)))"
    done
    per_read 400000 4400000 raw linear striped thin
} | awk -v reads=$((many - few)) '
    $1 == "i" { i[$2] = $3 / reads }
    $1 == "t" { t[$2] = $3 }
    END {
        if (!("raw" in t)) exit 1
        split("raw linear striped thin", all)
        for (n = 1; n <= 4; n++) printf "%-8s %18.2f %12.2f\n", all[n], i[all[n]], t[all[n]]
        printf "beyond raw: linear %.2f instructions (bound 0), striped %.1f ns, thin %.1f ns (bound 60)\n",
            i["linear"] - i["raw"], t["striped"] - t["raw"], t["thin"] - t["raw"]
        exit i["linear"] - i["raw"] > 0.01 || t["striped"] - t["raw"] > 60 || t["thin"] - t["raw"] > 60
    }' || status=1

{ per_read 100 2100 metadata; per_read 10 210 assemble; } | awk '
    { t[$2] = $3 / 1000 }
    END {
        if (!("metadata" in t && "assemble" in t)) exit 1
        printf "in memory: metadata read and summed %.0f us, group assembled and its 200 volumes tasted %.0f us\n", t["metadata"], t["assemble"]
    }' || status=1

for tool in hyperfine=hyperfine jq=jq vgcreate=lvm2; do
    command -v "${tool%%=*}" >/dev/null || { echo "sets: lvs skipped, ${tool%%=*} is not here: apt-get install ${tool#*=}" >&2; exit "$status"; }
done
trueline_binary
scratch=$(mktemp -d)
devices=
# shellcheck disable=SC2064,SC2086 # the devices of that moment; words
trap 'for device in $devices; do losetup --detach "$device"; done; rm -rf "$scratch"' EXIT
for n in 0 1 2 3; do
    truncate -s 64M "$scratch/d$n"
    device=$(losetup --find --show "$scratch/d$n" 2>/dev/null) || { echo "sets: lvs skipped, no loop device here" >&2; exit "$status"; }
    devices="$devices $device"
done
{
    printf 'devices { use_devicesfile=0 obtain_device_list_from_udev=0 filter=['
    for device in $devices; do printf '"a|^%s$|", ' "$device"; done
    printf '"r|.*|"] }\nbackup { backup=0 archive=0 }\nglobal { event_activation=0 }\n'
} >"$scratch/lvm.conf"
export LVM_SYSTEM_DIR="$scratch"
lvm_() { command=$1; shift; "$command" --driverloaded n -q -q "$@"; }
# shellcheck disable=SC2086 # words
lvm_ vgcreate -y -s 64k bench $devices >/dev/null 2>&1
n=0
while [ $n -lt 200 ]; do
    # A third each striped over all four, linear, and of two extents.
    case $((n % 3)) in
    0) shape='-i 4 -I 64k -l 4' ;;
    1) shape='-l 1' ;;
    *) shape='-l 2' ;;
    esac
    # shellcheck disable=SC2086 # words
    lvm_ lvcreate -y -an -Zn -Wn -n "lv$n" $shape bench >/dev/null 2>&1
    n=$((n + 1))
done
images=$scratch/d0,$scratch/d1,$scratch/d2,$scratch/d3
found=$("$trueline" show "$images" | grep -c 'bench/lv')
[ "$found" = 200 ] || { echo "sets: $found of 200 volumes were made" >&2; exit 1; }
for _ in 1 2 3 4 5 6 7; do
    hyperfine -N --warmup 3 --runs 20 --style none --export-json "$scratch/round.json" \
        "$trueline show $images" "lvs --driverloaded n -q -q bench" >/dev/null 2>&1
    jq -r '[.results[].median] | "\(.[0] / .[1]) \(.[0] * 1000) \(.[1] * 1000)"' "$scratch/round.json"
done | sort -n | sed -n 4p | awk '
    { printf "images: trueline show %.2f ms, lvs %.2f ms, ratio %.2f (bound 2)\n", $2, $3, $1; exit $1 > 2 }' || status=1
exit "$status"
