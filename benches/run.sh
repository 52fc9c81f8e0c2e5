#!/bin/sh
# run.sh: every benchmark here, one after the other. Exit status 1 if one missed its bound. What they print is in target/bench.txt
# too, for `make site`.
set -eu
cd "$(dirname "$0")"
results=../target/bench.txt
mkdir -p ../target
rm -f "$results.missed"
for bench in route sets check-vs-blkid apply-vs-sfdisk others mkfs-ufs many fleet objects python containers engine nbd counters lab fuse ublk move trace probe; do
    echo "== $bench"
    "./$bench.sh" 2>&1 || : >"$results.missed"
done | tee "$results.part"
mv "$results.part" "$results"
[ ! -e "$results.missed" ] || { rm "$results.missed"; exit 1; }
