#!/bin/sh
# counters.sh: what it costs `trueline serve` to count, against the same server with --no-counters.
#
# Bound: 3 % of the server's processor time for an I/O. Two processes of one program differ by as much, because of where their memory
# lies; so there are two that do not count, what those differ by is shown beside, and all three are started anew PROCESSES times.
# Memory over a Unix socket, one client (nbd-load.c), servers on CPU 1, the client on CPU 0 (on CPU 1 for depth 1). Figures are medians
# of PROCESSES medians, each of ROUNDS rounds in which every server has its turn.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=benches/lib.sh
. benches/lib.sh
need counters gcc=gcc taskset=util-linux
trueline_binary
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
scratch=$(realpath "$(mktemp -d "$target/counters.XXXXXX")")
processes=${PROCESSES:-9} rounds=${ROUNDS:-5} seconds=${SECONDS_EACH:-0.3}
pids=
trap 'kill $pids 2>/dev/null || true; rm -rf "$scratch"' EXIT
gcc -O2 -Wall -pthread -o "$scratch/nbd-load" benches/nbd-load.c
cd "$scratch"
# Others use the machine too: the measured program goes first (SCHED_FIFO), where that is allowed.
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

# stop: ends the servers.
stop() {
    # shellcheck disable=SC2086 # several words
    kill $pids
    # shellcheck disable=SC2086
    wait $pids 2>/dev/null || true
    pids=
    rm -f not_1 counted not_2
}

names='not_1 counted not_2'
for process in $(seq "$processes"); do
    serve not_1 --no-counters
    serve counted ''
    serve not_2 --no-counters
    for number in $(seq "$rounds"); do
        for case in '1 randread 512 1' '0 randread 4096 32' '0 randwrite 4096 32' '0 read 65536 8'; do
            # shellcheck disable=SC2086 # words of a case
            set -- $case
            for name in $names; do
                eval "pid=\$pid_$name"
                # shellcheck disable=SC2086
                echo "$2-$3 $process $number $name $($first taskset -c "$1" ./nbd-load "$name" "$2" "$3" "$4" "$seconds" 1 "$pid")"
            done
        done
        # The first of a round finds what the last one left in the caches, so each is the first in its turn.
        names="${names#* } ${names%% *}"
    done
    stop
done >figures

# Processor time: with counters to the mean of both without, and one of those to the other; and the same of I/Os a second.
for case in randread-512 randread-4096 randwrite-4096 read-65536; do
    awk -v case=$case '
        $1 == case { at = $2 SUBSEP $3; seen[at] = $2; ios[$4, at] = $5; time[$4, at] = $NF }
        END {
            for (at in seen) {
                print 1, seen[at], time["counted", at] / ((time["not_1", at] + time["not_2", at]) / 2), time["not_2", at] / time["not_1", at]
                print 2, seen[at], ios["counted", at] / ((ios["not_1", at] + ios["not_2", at]) / 2), ios["not_2", at] / ios["not_1", at]
            }
        }' figures >ratios
    middle() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
    median() {
        for process in $(seq "$processes"); do
            awk -v what="$1" -v process="$process" -v field="$2" '$1 == what && $2 == process { print $field }' ratios | middle
        done | middle
    }
    printf '%-15s processor %.3f (between those without: %.3f)  I/Os a second %.3f (%.3f)\n' $case "$(median 1 3)" "$(median 1 4)" "$(median 2 3)" "$(median 2 4)"
done | tee table
awk '{ off = $7 < 1 ? 1 - $7 : $7 - 1; if ($3 > 1.03 + off) { print "counters: " $1 " costs " $3 > "/dev/stderr"; missed = 1 } } END { exit missed }' table
