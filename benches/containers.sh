#!/bin/sh
# containers.sh: the disk in a container, against the same disk bare: a read of 4096 bytes whose tables are cached, `trueline check`, and
# reading all of it from a server.
#
# Reads: from memory, one process each in turns; the shortest of seven counts. Bound: 150 ns more than the bare disk, for a qcow2.
# check: of a qcow2, against `blkid -p` of the bare disk. Bound: 3 times its time.
# Server: 512 MiB of a qcow2 read by nbdcopy, against qemu-nbd on the same file; the median of five rounds. Bound: no slower.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=benches/lib.sh
. benches/lib.sh
need containers qemu-img=qemu-utils qemu-nbd=qemu-utils nbdcopy=libnbd-bin hyperfine=hyperfine jq=jq blkid=util-linux \
    sfdisk=fdisk mkfs.ext4=e2fsprogs
trueline_binary
target=$(realpath "${CARGO_TARGET_DIR:-target}")
cargo build --quiet --release --package trueline-geom --example containers
containers=$target/release/examples/containers
scratch=$(mktemp -d "$target/containers.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
status=0
cd "$scratch"

# Bytes that repeat nowhere, behind a table and a file system.
truncate -s 512M disk.raw
printf 'label: gpt\nstart=2048, size=131072\n' | sfdisk -q disk.raw
mkfs.ext4 -q -F -E offset=1048576 disk.raw 64M
openssl enc -aes-128-ctr -K 00 -iv 00 </dev/zero 2>/dev/null | head -c 445M | dd of=disk.raw bs=1M seek=66 conv=notrunc status=none
openssl enc -aes-128-ctr -K 01 -iv 00 </dev/zero 2>/dev/null | head -c 32M | dd of=disk.raw bs=1M seek=32 conv=notrunc status=none
for format in qcow2 vdi vpc vhdx vmdk qed; do qemu-img convert -O $format disk.raw disk.$format; done
qemu-img convert -O qcow2 -o extended_l2=on,cluster_size=128k disk.raw disk.extended

formats='raw qcow2 extended vdi vpc vhdx vmdk qed'
reads() {
    "$containers" "disk.$1" "$2" >>"sum.$1"
}
per_read 100000 2100000 $formats | awk -v formats="$formats" '
    { t[$2] = $3 }
    END {
        if (!("raw" in t)) exit 1
        printf "%-10s %10s %12s\n", "read", "ns", "beyond raw"
        n = split(formats, all)
        for (i = 1; i <= n; i++) printf "%-10s %10.1f %12.1f\n", all[i], t[all[i]], t[all[i]] - t["raw"]
        exit t["qcow2"] - t["raw"] > 150
    }' || { status=1; echo "containers: a read of a qcow2 is beyond its bound" >&2; }
for format in $formats; do cmp -s sum.raw "sum.$format" || { status=1; echo "containers: $format has other bytes" >&2; }; done

for _ in 1 2 3 4 5 6 7; do
    hyperfine -N --ignore-failure --warmup 5 --runs 40 --style none --export-json round.json \
        "$trueline check disk.qcow2" 'blkid -p disk.raw' >/dev/null 2>&1
    jq -r '[.results[].median] | "\(.[0] / .[1]) \(.[0] * 1000) \(.[1] * 1000)"' round.json
done | sort -n | sed -n 4p | awk '
    { printf "check of a qcow2 %.2f ms, blkid -p of the bare disk %.2f ms: %.2f times\n", $2, $3, $1; exit $1 > 3 }' ||
    { status=1; echo "containers: check is beyond its bound" >&2; }

# copied COMMAND...: seconds in which nbdcopy reads all of what a server has.
copied() {
    from=$(date +%s%N)
    "$@" >/dev/null 2>&1
    echo $((($(date +%s%N) - from) / 1000))
}
for _ in 1 2 3 4 5; do
    # shellcheck disable=SC2016 # the server's variable
    ours=$(copied "$trueline" serve disk.qcow2 --run 'nbdcopy "$uri" null:')
    theirs=$(copied nbdcopy -- [ qemu-nbd -r -f qcow2 disk.qcow2 ] null:)
    echo "$ours $theirs"
done | awk '{ r = $1 / $2; print r, $1 / 1000, $2 / 1000 }' | sort -n | sed -n 3p | awk '
    { printf "512 MiB of a qcow2 by nbdcopy: %.0f ms, from qemu-nbd %.0f ms: %.2f times\n", $2, $3, $1; exit $1 > 1.05 }' ||
    { status=1; echo "containers: the server is slower than qemu-nbd" >&2; }
exit $status
