#!/bin/sh
# nbd.sh: the NBD server of `trueline serve`, against the servers of others and the least a server can do (nbd-bare.c).
#
# One client (nbd-load.c), the same data, a Unix socket; every server has its turn in every round, right after one another. Reported are
# the medians of the rounds, and of the ratios to trueline's I/Os a second in the same round. Where things run: every server on CPU 1,
# the client on CPU 0; for depth 1 both on CPU 1, because to wake a halted CPU would be most of what is measured. The client checks that
# it reads what was written, except from QEMU's null-co, which has no data and sends zeros.
#
# Bounds: depth 1 within 1.15 times the bare server's time and ahead of every peer; 32 reads of 4 KiB at least 1.4 times nbdkit memory,
# ahead of every peer, and the least processor time of the server for each, under 5 µs; 64 KiB, 1 MiB and four connections ahead of
# nbdkit; on a file at least 0.95 times the best peer; three nested partitions as fast as none, within 5 %, which is
# what rounds differ by (route.sh counts their instructions: none). fio and nbdcopy, which are other people's clients, are shown.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=benches/lib.sh
. benches/lib.sh
need nbd gcc=gcc nbdkit=nbdkit qemu-nbd=qemu-utils qemu-storage-daemon=qemu-system-common nbd-server=nbd-server fio=fio \
    nbdcopy=libnbd-bin jq=jq taskset=util-linux
trueline_binary
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
scratch=$(realpath "$(mktemp -d "$target/nbd.XXXXXX")")
rounds=${ROUNDS:-7} seconds=${SECONDS_EACH:-0.4} mebibytes=256
pids=
trap 'kill $pids 2>/dev/null || true; rm -rf "$scratch"' EXIT
gcc -O2 -Wall -pthread -o "$scratch/nbd-load" benches/nbd-load.c
gcc -O2 -Wall -pthread -o "$scratch/nbd-bare" benches/nbd-bare.c
cd "$scratch"
# Others use the machine too: the measured program goes first (SCHED_FIFO), where that is allowed.
first=
chrt -f 1 true 2>/dev/null && first='chrt -f 1'

# serve NAME COMMAND...: a server that listens at NAME.
serve() {
    name=$1
    shift
    # shellcheck disable=SC2086 # no word or several
    $first taskset -c 1 "$@" >"$name.log" 2>&1 &
    eval "pid_$name=$!"
    pids="$pids $!"
    for _ in $(seq 100); do [ ! -S "$name" ] || { sleep 0.2; return 0; }; sleep 0.1; done
    echo "nbd: $name does not listen: $(cat "$name.log")" >&2
    exit 1
}

# load NAME CPU PATTERN BLOCK DEPTH CONNECTIONS: I/Os a second, MB/s, latency (median, 99 %), µs of the server's processor.
load() {
    [ "$1" != null ] || export NBD_PATTERN=any
    pid='' export=''
    [ "$1" != nbd_server ] || export=disk
    eval "pid=\$pid_$1"
    # shellcheck disable=SC2086
    $first taskset -c "$2" ./nbd-load "$1" "$3" "$4" "$5" "$seconds" "$6" "$pid" "$export"
    unset NBD_PATTERN
}

# round NAME CASE
round() {
    case $2 in
        read-512-depth-1) load "$1" 1 randread 512 1 1 ;;
        read-4k-depth-32) load "$1" 0 randread 4096 32 1 ;;
        write-4k-depth-32) load "$1" 0 randwrite 4096 32 1 ;;
        read-64k) load "$1" 0 read 65536 8 1 ;;
        read-1m) load "$1" 0 read 1048576 4 1 ;;
        write-64k) load "$1" 0 write 65536 8 1 ;;
        write-1m) load "$1" 0 write 1048576 4 1 ;;
        4-connections) load "$1" 0 randread 4096 8 4 ;;
    esac
}

# rounds_of KIND CASES NAMES: into the file `figures`.
rounds_of() {
    for name in $3; do load "$name" 0 fill 65536 8 1 >/dev/null; done
    names=$3
    for number in $(seq "$rounds"); do
        for case in $2; do
            for name in $names; do echo "$1 $case $name $number $(round "$name" "$case")"; done
        done
        # No server is always the first, which finds what the one before left in the caches.
        names="${names#* } ${names%% *}"
    done >>figures
}

# Three nested partitions around as many bytes.
nested() {
    truncate -s $((mebibytes + 3))M nested.img
    for step in 'create -s gpt nested.img' 'add -t linux-data -a 1m nested.img' 'create -s mbr nested.img#p1' \
        'add -t freebsd -a 1m nested.img#p1' 'create -s bsd nested.img#p1s1' 'add -t freebsd-ufs -a 4k nested.img#p1s1'; do
        # shellcheck disable=SC2086
        "$trueline" part $step >part.log 2>&1 || { cat part.log >&2; exit 1; }
    done
}

memory_servers='trueline bare nested nbdkit nbdkit1 null'
memory() {
    nested
    bytes=$((mebibytes << 20))
    serve bare ./nbd-bare bare $bytes
    serve trueline "$trueline" serve md:${mebibytes}m --nbd unix:trueline
    serve nested "$trueline" serve "md:$((mebibytes + 3))m=nested.img#p1s1a" --nbd unix:nested
    serve nbdkit nbdkit -f -U nbdkit memory ${mebibytes}M
    serve nbdkit1 nbdkit -f -t 1 -U nbdkit1 memory ${mebibytes}M
    serve null qemu-storage-daemon --blockdev driver=null-co,node-name=n,size=$bytes,read-zeroes=on \
        --nbd-server addr.type=unix,addr.path=null --export type=nbd,id=e,node-name=n,name=,writable=on
}

# Each its own file, because most lock it; all of them are in the page cache.
file_servers='trueline_file bare_file nbdkit_file nbdkit1_file qemu_nbd qemu_sd nbd_server'
file() {
    for name in $file_servers; do head -c ${mebibytes}M /dev/zero >"$name.img"; done
    serve bare_file ./nbd-bare bare_file bare_file.img
    serve trueline_file "$trueline" serve trueline_file.img --nbd unix:trueline_file
    serve nbdkit_file nbdkit -f -U nbdkit_file file nbdkit_file.img
    serve nbdkit1_file nbdkit -f -t 1 -U nbdkit1_file file nbdkit1_file.img
    serve qemu_nbd qemu-nbd --persistent --format=raw --shared=8 --socket="$scratch/qemu_nbd" qemu_nbd.img
    serve qemu_sd qemu-storage-daemon --blockdev driver=file,node-name=n,filename=qemu_sd.img,locking=off \
        --nbd-server addr.type=unix,addr.path=qemu_sd --export type=nbd,id=e,node-name=n,name=,writable=on
    printf '[generic]\nunixsock=%s/nbd_server\n[disk]\nexportname=%s/nbd_server.img\n' "$scratch" "$scratch" >nbd-server.conf
    # With -d it would serve one client and end; without, it is a process of its own.
    serve nbd_server nbd-server -C "$scratch/nbd-server.conf" -p "$scratch/nbd-server.pid"
    pid_nbd_server=$(cat nbd-server.pid)
    pids="$pids $pid_nbd_server"
}

# others KIND NAMES: fio with libnbd, 4 KiB at depth 32, and nbdcopy of everything.
others() {
    for number in $(seq "${OTHERS:-3}"); do
        for name in $2; do
            # shellcheck disable=SC2086
            iops=$($first taskset -c 0 fio --name=nbd --ioengine=nbd --uri="nbd+unix:///?socket=$name" --rw=randread --bs=4k --iodepth=32 \
                --norandommap=1 --time_based=1 --runtime=1 --output-format=json | grep -v '^fio:' | jq '.jobs[0].read.iops')
            echo "$1 fio-4k-depth-32 $name $number $iops $(awk -v n="$iops" 'BEGIN { print n * 4096 / 1e6 }') 0 0 0"
            from=$(date +%s%N)
            # shellcheck disable=SC2086
            $first taskset -c 0 nbdcopy "nbd+unix:///?socket=$name" null:
            echo "$from $(date +%s%N)" | awk -v start="$1 nbdcopy $name $number" -v n=$mebibytes \
                '{ s = ($2 - $1) / 1e9; print start, n * 4 / s, n * 1.048576 / s, 0, 0, 0 }'
        done
    done >>figures
}

# report KIND CASE NAMES: a line a server.
report() {
    for name in $3; do
        awk -v kind="$1" -v case="$2" -v name="$name" '
            $1 == kind && $2 == case && $3 == name { for (i = 5; i <= 9; i++) print i, $i }
            $1 == kind && $2 == case && $3 ~ /^trueline/ { own[$4] = $5 }
            $1 == kind && $2 == case && $3 == name { other[$4] = $5 }
            END { for (i in other) print 10, own[i] / other[i] }' figures | sort -k1,1n -k2,2g | awk -v case="$2" -v name="$name" '
            { value[$1, ++count[$1]] = $2 }
            END {
                if (!count[5]) exit
                for (i = 5; i <= 10; i++) middle[i] = value[i, int((count[i] + 1) / 2)]
                printf "%-18s %-14s %9.0f %8.0f %9.1f %9.1f %8.2f %8.3f  %.3f to %.3f\n", case, name, middle[5], middle[6],
                    middle[7], middle[8], middle[9], middle[10], value[10, 1], value[10, count[10]]
            }'
    done | tee -a table
}

small='read-512-depth-1 read-4k-depth-32 write-4k-depth-32' large='read-64k read-1m write-64k write-1m'
memory
rounds_of memory "$small $large 4-connections" "$memory_servers"
others memory "${memory_servers% null}"
# shellcheck disable=SC2086
kill $pids
pids=
file
rounds_of file "$small $large" "$file_servers"
others file "trueline_file nbdkit_file nbdkit1_file qemu_nbd qemu_sd"
printf '%-18s %-14s %9s %8s %9s %9s %8s %8s  %s\n' case server 'I/Os a s' MB/s 'median µs' '99 % µs' 'CPU µs' times 'from, to'
for case in $small $large 4-connections fio-4k-depth-32 nbdcopy; do report memory "$case" "$memory_servers"; done
for case in $small $large fio-4k-depth-32 nbdcopy; do report file "$case" "$file_servers"; done

# `times`: how many times as many I/Os a second trueline does.
awk '
    function bound(good, text) { if (!good) { print "nbd: " text > "/dev/stderr"; missed = 1 } }
    { times[$1, $2] = $8; cpu[$1, $2] = $7 }
    END {
        n = split("nbdkit nbdkit1 null nbdkit_file nbdkit1_file qemu_nbd qemu_sd nbd_server", peers)
        one = "read-512-depth-1"; many = "read-4k-depth-32"
        bound(times[one, "bare"] >= 1 / 1.15, one ": " times[one, "bare"] " of the bare server")
        bound(times[many, "nbdkit"] >= 1.4, many ": " times[many, "nbdkit"] " times nbdkit memory")
        bound(cpu[many, "trueline"] < 5, many ": " cpu[many, "trueline"] " µs of processor time")
        for (i = 1; i <= n; i++) {
            own = i <= 3 ? "trueline" : "trueline_file"
            bound(times[one, peers[i]] > 1, one ": " times[one, peers[i]] " times " peers[i])
            bound(times[many, peers[i]] > 1, many ": " times[many, peers[i]] " times " peers[i])
            bound(cpu[many, own] < cpu[many, peers[i]], many ": " cpu[many, own] " µs of processor time, " peers[i] " " cpu[many, peers[i]])
        }
        m = split("read-64k read-1m write-64k write-1m 4-connections", cases)
        for (i = 1; i <= m; i++) {
            for (j = 1; j <= 2; j++) bound(times[cases[i], peers[j]] > 1, cases[i] ": " times[cases[i], peers[j]] " times " peers[j])
            for (j = 4; i < m && j <= n; j++)
                bound(times[cases[i], peers[j]] >= 0.95, cases[i] ": " times[cases[i], peers[j]] " times " peers[j])
        }
        bound(times[one, "nested"] < 1.05 && times[many, "nested"] < 1.05, "three partitions cost " times[one, "nested"] ", " times[many, "nested"])
        exit missed
    }' table
