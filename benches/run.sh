#!/bin/sh
# run.sh: every benchmark here, one after the other. Exit status 1 if one missed its bound.
set -eu
cd "$(dirname "$0")"
status=0
for bench in route sets check-vs-blkid apply-vs-sfdisk mkfs-ufs many fleet objects python containers engine nbd counters lab fuse ublk move trace probe; do
    echo "== $bench"
    "./$bench.sh" || status=1
done
exit "$status"
