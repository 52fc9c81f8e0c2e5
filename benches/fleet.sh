#!/bin/sh
# fleet.sh [N]: a fleet of N images (100000), in thousands, hard links to 20 kinds: bare disks and the containers that qemu-img makes, aligned and not.
# Prints the time and the peak memory of one run that writes a line for each, and of one that goes on from half of them.
# Bounds: 60 s for 100,000 on two cores, warm; 512 MiB.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=benches/lib.sh
. benches/lib.sh
need fleet qemu-img=qemu-utils sfdisk=fdisk mkfs.ext4=e2fsprogs /usr/bin/time=time
trueline_binary
count=${1:-100000}
scratch=$(mktemp -d target/fleet.XXXXXX)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
mkdir kinds
twenty_kinds kinds
# A directory of 1000 links, then links to those.
mkdir 1
kinds=$(ls kinds)
for nth in $(seq 50); do
    for kind in $kinds; do ln "kinds/$kind" "1/$nth-$kind"; done
done
for directory in $(seq 2 $((count / 1000))); do cp -al 1 "$directory"; done
directories=$(seq $((count / 1000)) | sed 's/^/-r /')
# run WORDS...: seconds and KiB of a run.
run() {
    # shellcheck disable=SC2086 # several words
    /usr/bin/time -f '%e %M' -o time "$trueline" check --quiet $directories "$@" || [ $? -eq 1 ]
    tail -n 1 time
}
printf '%-28s %10s %12s %12s\n' "$count images" seconds images/s 'peak MiB'
run --jsonl --into out.jsonl | awk -v n="$count" '{ printf "%-28s %10.1f %12.0f %12.1f\n", "a line for each", $1, n / $1, $2 / 1024; exit ($1 > 60 * n / 100000 || $2 > 512 * 1024) }'
cp out.jsonl whole.jsonl
head -n $((count / 2)) whole.jsonl >out.jsonl
run --jsonl --into out.jsonl | awk '{ printf "%-28s %10.1f %12s %12.1f\n", "gone on with from half", $1, "", $2 / 1024 }'
cmp out.jsonl whole.jsonl
