#!/bin/sh
# fuse.sh [ROUNDS]: a 512-byte direct read of a mounted file, one at a time, both ends on one CPU.
#
# Against the FUSE exports of qemu-storage-daemon (a null disk that sends zeros) and of nbdkit's memory behind nbdfuse, in
# turns; the figure is the median of the rounds' ratios. Bound: no slower than qemu-storage-daemon. Then, for information,
# 4 KiB at depth 32 and 1 MiB reads and writes, placed as the scheduler likes.
#
# One CPU for both ends, because waking a CPU that sleeps is most of the time of whatever crosses CPUs. Needs root.
set -eu
cd "$(dirname "$0")/.."
. benches/lib.sh
need fuse fio=fio qemu-storage-daemon=qemu-system-common jq=jq taskset=util-linux
[ -w /dev/fuse ] && [ "$(id -u)" = 0 ] || { echo "fuse: skipped, mounting needs root and /dev/fuse" >&2; exit 0; }
trueline_binary
rounds=${1:-7}
work=$(mktemp -d)
servers=
end() {
    for server in $servers; do kill "$server" 2>/dev/null || :; done
    wait
    for name in trueline qemu nbdfuse; do umount -l "$work/$name" 2>/dev/null || :; done
    rm -rf "$work"
}
trap end EXIT
trap 'exit 1' INT TERM

: >"$work/trueline" && : >"$work/qemu" && : >"$work/nbdfuse"
$trueline serve md:256m --fuse "$work/trueline" 2>/dev/null &
servers="$servers $!"
qemu-storage-daemon --blockdev null-co,node-name=null,size=268435456,read-zeroes=on \
    --export "fuse,id=fuse,node-name=null,mountpoint=$work/qemu,writable=on" &
servers="$servers $!"
who="trueline qemu"
if command -v nbdfuse >/dev/null && command -v nbdkit >/dev/null; then
    nbdfuse "$work/nbdfuse" --command nbdkit -s memory 256M 2>/dev/null &
    servers="$servers $!"
    who="$who nbdfuse"
fi
for name in $who; do
    tries=100
    until [ "$(stat -c %s "$work/$name" 2>/dev/null)" = 268435456 ]; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || { echo "fuse: $name does not serve" >&2; exit 2; }
        sleep 0.1
    done
done

# place CPUS: every thread of the servers there.
place() {
    for server in $servers; do
        taskset -a -p -c "$1" "$server" >/dev/null
        for child in $(cat /proc/"$server"/task/*/children 2>/dev/null); do taskset -a -p -c "$1" "$child" >/dev/null; done
    done
}

# measure NAME CPUS SECONDS OPTION...: requests a second.
measure() {
    file=$work/$1 cpus=$2 seconds=$3
    shift 3
    taskset -c "$cpus" fio --name=j --filename="$file" --direct=1 --size=256m --runtime="$seconds" --time_based --output-format=json \
        --allow_file_create=0 "$@" 2>/dev/null | jq '.jobs[0] | .read.iops + .write.iops'
}

# compare WHAT CPUS SECONDS ROUNDS OPTION...
compare() {
    what=$1 cpus=$2 seconds=$3 count=$4
    shift 4
    place "$cpus"
    round=0
    while [ $round -lt "$count" ]; do
        for name in $who; do echo "$round $name $(measure "$name" "$cpus" "$seconds" "$@")"; done
        round=$((round + 1))
    done >"$work/figures"
    awk -v what="$what" -v who="$who" '
        function median(list, count,    i, j, swap) {
            for (i = 1; i < count; i++)
                for (j = i + 1; j <= count; j++) if (list[j] < list[i]) { swap = list[i]; list[i] = list[j]; list[j] = swap }
            return count % 2 ? list[(count + 1) / 2] : (list[count / 2] + list[count / 2 + 1]) / 2
        }
        { us[$2, $1 + 1] = 1e6 / $3; if ($1 + 1 > n) n = $1 + 1 }
        END {
            names = split(who, name, " ")
            for (i = 1; i <= names; i++) {
                for (r = 1; r <= n; r++) { own[r] = us[name[i], r]; ratio[r] = us["trueline", r] / own[r] }
                printf "%-24s %-9s %9.2f us a request", what, name[i], median(own, n)
                if (i > 1) printf "; trueline takes %.2f of it", median(ratio, n)
                printf "\n"
                if (name[i] == "qemu") worst = median(ratio, n)
            }
            exit worst > 1
        }' "$work/figures"
}

last=$(($(nproc) - 1))
status=0
compare "512 B read, one CPU" "$last" 1 "$rounds" --bs=512 --rw=randread --ioengine=psync || status=1
all=0-$last
compare "4 KiB read, depth 32" "$all" 1 3 --bs=4k --rw=randread --ioengine=io_uring --iodepth=32 || :
compare "1 MiB read" "$all" 1 3 --bs=1m --rw=read --ioengine=psync || :
compare "1 MiB write" "$all" 1 3 --bs=1m --rw=write --ioengine=psync || :
[ $status = 0 ] || echo "fuse: slower than qemu-storage-daemon" >&2
exit $status
