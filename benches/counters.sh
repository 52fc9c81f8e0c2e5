#!/bin/sh
# counters.sh: what it costs `trueline serve` to count, against the same server with --no-counters.
#
# Bound: 3 % of the server's processor time for an I/O. Two processes of one program differ by as much, because of where their memory
# lies; so there are two that do not count, and what those differ by is shown beside. Memory over a Unix socket, one client
# (nbd-load.c), servers on CPU 1, the client on CPU 0 (on CPU 1 for depth 1); medians of the rounds, in each of which every
# server has its turn.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=benches/lib.sh
. benches/lib.sh
need counters gcc=gcc taskset=util-linux
trueline_binary
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
scratch=$(realpath "$(mktemp -d "$target/counters.XXXXXX")")
rounds=${ROUNDS:-18} seconds=${SECONDS_EACH:-0.3}
pids=
trap 'kill $pids 2>/dev/null || true; rm -rf "$scratch"' EXIT
gcc -O2 -Wall -pthread -o "$scratch/nbd-load" benches/nbd-load.c
cd "$scratch"
# Others use the machine too: who is measured goes first (SCHED_FIFO), where that is allowed.
first=
chrt -f 1 true 2>/dev/null && first='chrt -f 1'

# serve NAME OPTION: a server that listens at NAME, full of what the client expects to read.
serve() {
    # shellcheck disable=SC2086 # no word or several
    $first taskset -c 1 "$trueline" serve md:256m --nbd "unix:$1" $2 2>"$1.log" &
    eval "pid_$1=$!"
    pids="$pids $!"
    for _ in $(seq 100); do [ ! -S "$1" ] || break; sleep 0.1; done
    sleep 0.2
    ./nbd-load "$1" fill 65536 8 1 1 0 >/dev/null
}

serve not_1 --no-counters
serve counted ''
serve not_2 --no-counters
names='not_1 counted not_2'
for number in $(seq "$rounds"); do
    for case in '1 randread 512 1' '0 randread 4096 32' '0 randwrite 4096 32' '0 read 65536 8'; do
        # shellcheck disable=SC2086 # words of a case
        set -- $case
        for name in $names; do
            eval "pid=\$pid_$name"
            # shellcheck disable=SC2086
            echo "$2-$3 $number $name $($first taskset -c "$1" ./nbd-load "$name" "$2" "$3" "$4" "$seconds" 1 "$pid")"
        done
    done
    # Nobody is always the first, who finds what the one before him left in the caches.
    names="${names#* } ${names%% *}"
done >figures

# Processor time: with counters to the mean of both without, and one of those to the other; and the same of I/Os a second.
for case in randread-512 randread-4096 randwrite-4096 read-65536; do
    awk -v case=$case '
        $1 == case { ios[$3, $2] = $4; time[$3, $2] = $NF; rounds = $2 > rounds ? $2 : rounds }
        END {
            for (i = 1; i <= rounds; i++) {
                print 1, time["counted", i] / ((time["not_1", i] + time["not_2", i]) / 2), time["not_2", i] / time["not_1", i]
                print 2, ios["counted", i] / ((ios["not_1", i] + ios["not_2", i]) / 2), ios["not_2", i] / ios["not_1", i]
            }
        }' figures >ratios
    median() { awk -v what="$1" -v field="$2" '$1 == what { print $field }' ratios | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
    printf '%-15s processor %.3f (between those without: %.3f)  I/Os a second %.3f (%.3f)\n' $case "$(median 1 2)" "$(median 1 3)" "$(median 2 2)" "$(median 2 3)"
done | tee table
awk '{ off = $7 < 1 ? 1 - $7 : $7 - 1; if ($3 > 1.03 + off) { print "counters: " $1 " costs " $3 > "/dev/stderr"; missed = 1 } } END { exit missed }' table
