#!/bin/sh
# engine.sh: random reads of 4 KiB by our engine, by fio's io_uring engine at its best settings, and by a bare loop in C.
#
# Bounds, on a cached file: ahead of fio at depths 1, 8 and 32, and within 10 % of the loop. All three have registered buffers and a
# registered file, and send and take requests together; the loop sets up its ring as ours does. Ours measures the latency of every
# request besides, which fio is told to leave out and the loop does not do. Each round gives every program its turn, ours and the loop
# one right after the other; medians of the rounds and of their ratios, and the least and the greatest ratio to the loop. What others on
# the machine take is left out of the ratio to the loop: a cached read never waits, so that both are held to the share of the time in
# which they ran. Past the page cache (O_DIRECT), reads and writes, is shown to compare with: there the device decides. With leave to
# (chrt), both run before everything else there, so that others on the machine take no part in whether a device is idle.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=benches/lib.sh
. benches/lib.sh
need engine fio=fio gcc=gcc jq=jq time=time
target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --release --package trueline-lab --example engine
engine=$(realpath "$target/release/examples/engine")
scratch=$(mktemp -d "$target/engine.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
gcc -O2 -Wall -o "$scratch/uring-loop" benches/uring-loop.c
file=$scratch/file
rounds=${ROUNDS:-9} seconds=${SECONDS_EACH:-1}
head -c 512M /dev/urandom >"$file"
"$scratch/uring-loop" "$file" 1 0.01 >/dev/null || { echo "engine: skipped, there is no io_uring here" >&2; exit 0; }

# fio_ns DEPTH DIRECT [RW [BATCH]]: ns a request, and of the processor; BATCH (the depth): the most that are sent at once.
fio_ns() {
    [ "$2" = 1 ] && precedence=$first || precedence=''
    # shellcheck disable=SC2086 # an empty word is no argument
    $precedence fio --name=engine --filename="$file" --rw="${3:-randread}" --bs=4k --ioengine=io_uring --iodepth="$1" --direct="$2" \
        --iodepth_batch="${4:-$1}" --iodepth_batch_complete_min=1 --iodepth_batch_complete_max="$1" \
        --fixedbufs=1 --registerfiles=1 --nonvectored=1 --gtod_reduce=1 --norandommap=1 --random_generator=tausworthe64 \
        --invalidate=0 --time_based=1 --runtime="$seconds" --output-format=json |
        jq -r '.jobs[0] | (if .read.total_ios > 0 then .read else .write end) as $own
            | "\($own.runtime * 1e6 / $own.total_ios) \($own.runtime * 1e4 * (.usr_cpu + .sys_cpu) / $own.total_ios)"'
}

# timed COMMAND: ns a read as it prints them, and without the time in which it did not run (GNU time).
timed() {
    ns=$(env time -f '%U %S %e' -o "$scratch/time" "$@")
    awk -v ns="$ns" '{ print ns, ns * ($1 + $2) / $3 }' "$scratch/time"
}

# round DEPTH: of cached reads: the depth, and ns a read: ours, without what others took, the loop, without what others took, fio.
round() {
    ours=$(timed "$engine" "$file" "$1" "$seconds") loop=$(timed "$scratch/uring-loop" "$file" "$1" "$seconds")
    echo "$1 $ours $loop $(fio_ns "$1" 0)"
}

# first: the command that gives a program precedence, or none.
first=''
if command -v chrt >/dev/null && chrt -f 10 true 2>/dev/null; then first='chrt -f 10'; fi

# round_direct DEPTH read|write: the same past the page cache, where the device is waited for: ns a request and of the processor, of
# ours, of fio that sends all of a round at once, of fio that sends each by itself.
round_direct() {
    case $2 in read) write='' ;; write) write=write ;; esac
    # shellcheck disable=SC2086 # an empty word is no argument
    ours=$(timed $first "$engine" "$file" "$1" "$seconds" direct $write)
    echo "$2 $1 $ours $(fio_ns "$1" 1 "rand$2") $(fio_ns "$1" 1 "rand$2" 1)"
}

# median: of the numbers, one a line.
median() {
    sort -g | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'
}

cat "$file" >/dev/null
for _ in $(seq "$rounds"); do
    for depth in 1 8 32; do round $depth; done
done >"$scratch/rounds"
for _ in $(seq "${ROUNDS_DIRECT:-3}"); do
    for depth in 1 8 32; do round_direct $depth read; done
    for depth in 1 32; do round_direct $depth write; done
done >"$scratch/direct"

status=0
printf '%8s %10s %10s %10s %12s %12s %15s\n' depth 'ours ns' 'fio ns' 'loop ns' 'ours/fio' 'ours/loop' 'from, to'
for depth in 1 8 32; do
    # every COLUMN [COLUMN]: of each round, or its ratio. of: their median.
    every() {
        awk -v depth=$depth -v n="$1" -v d="${2:-0}" '$1 == depth { print d ? $n / $d : $n }' "$scratch/rounds"
    }
    of() { every "$@" | median; }
    fio=$(of 2 6) loop=$(of 3 5)
    least=$(every 3 5 | sort -g | head -n 1) most=$(every 3 5 | sort -g | tail -n 1)
    printf '%8d %10.0f %10.0f %10.0f %12.3f %12.3f %7.3f %7.3f\n' \
        $depth "$(of 3)" "$(of 6)" "$(of 5)" "$fio" "$loop" "$least" "$most"
    awk -v fio="$fio" -v loop="$loop" 'BEGIN { exit !(fio < 1 && loop <= 1.1) }' || {
        echo "engine: at depth $depth the ratio to fio is $fio (bound 1), to the loop $loop (bound 1.1)" >&2
        status=1
    }
done

# Rates past the page cache: more is better. fio 1: it sends each request by itself, which is its default.
printf '\n%8s %6s %10s %10s %10s %10s %16s %10s %14s\n' direct depth 'ours ns' 'fio ns' 'fio 1 ns' 'rate/fio' 'from, to' \
    'rate/fio 1' 'processor/fio'
for kind in read write; do
    for depth in 1 8 32; do
        every() {
            awk -v kind=$kind -v depth=$depth -v n="$1" -v d="${2:-0}" \
                '$1 == kind && $2 == depth { print d ? $n / $d : $n }' "$scratch/direct"
        }
        [ -n "$(every 3)" ] || continue
        printf '%8s %6d %10.0f %10.0f %10.0f %10.3f %8.3f %7.3f %10.3f %14.3f\n' $kind $depth "$(of 3)" "$(of 5)" "$(of 7)" \
            "$(of 5 3)" "$(every 5 3 | sort -g | head -n 1)" "$(every 5 3 | sort -g | tail -n 1)" "$(of 7 3)" "$(of 4 6)"
    done
done
exit $status
