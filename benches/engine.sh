#!/bin/sh
# engine.sh: random reads of 4 KiB by our engine, by fio's io_uring engine at its best settings, and by a bare loop in C.
#
# Bounds, on a cached file: ahead of fio at depths 1, 8 and 32, and within 10 % of the loop. All three have registered buffers and a
# registered file, and send and take requests together; the loop sets up its ring as ours does. Ours measures the latency of every
# request besides, which fio is told to leave out and the loop does not do. Each round gives every program its turn, ours and the loop
# one right after the other; medians of the rounds and of their ratios, and the least and the greatest ratio to the loop. What others on
# the machine take is left out of the ratio to the loop: a cached read never waits, so that both are held to the share of the time in
# which they ran. Past the page cache (O_DIRECT) is shown to compare with: there the device decides.
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

# fio_ns DEPTH DIRECT: ns a read.
fio_ns() {
    fio --name=engine --filename="$file" --rw=randread --bs=4k --ioengine=io_uring --iodepth="$1" --direct="$2" \
        --iodepth_batch="$1" --iodepth_batch_complete_min=1 --iodepth_batch_complete_max="$1" \
        --fixedbufs=1 --registerfiles=1 --nonvectored=1 --gtod_reduce=1 --norandommap=1 --random_generator=tausworthe64 \
        --invalidate=0 --time_based=1 --runtime="$seconds" --output-format=json |
        jq '.jobs[0].read | .runtime * 1e6 / .total_ios'
}

# timed COMMAND: ns a read as it prints them, and without the time in which it did not run (GNU time).
timed() {
    ns=$(env time -f '%U %S %e' -o "$scratch/time" "$@")
    awk -v ns="$ns" '{ print ns, ns * ($1 + $2) / $3 }' "$scratch/time"
}

# round KIND DEPTH: kind, depth, and ns a read: ours, without what others took, the loop, without what others took, fio.
round() {
    case $1 in
        cached) direct='' bit=0 ;;
        direct) direct=direct bit=1 ;;
    esac
    # shellcheck disable=SC2086 # an empty word is no argument
    ours=$(timed "$engine" "$file" "$2" "$seconds" $direct) loop=$(timed "$scratch/uring-loop" "$file" "$2" "$seconds" $direct)
    echo "$1 $2 $ours $loop $(fio_ns "$2" "$bit")"
}

# median: of the numbers, one a line.
median() {
    sort -g | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'
}

cat "$file" >/dev/null
for _ in $(seq "$rounds"); do
    for depth in 1 8 32; do round cached $depth; done
done >"$scratch/rounds"
for _ in 1 2 3; do
    for depth in 1 8 32; do round direct $depth; done
done >>"$scratch/rounds"

status=0
printf '%8s %6s %10s %10s %10s %12s %12s %15s\n' '' depth 'ours ns' 'fio ns' 'loop ns' 'ours/fio' 'ours/loop' 'from, to'
for kind in cached direct; do
    for depth in 1 8 32; do
        # every COLUMN [COLUMN]: of each round, or its ratio. of: their median.
        every() {
            awk -v kind=$kind -v depth=$depth -v n="$1" -v d="${2:-0}" \
                '$1 == kind && $2 == depth { print d ? $n / $d : $n }' "$scratch/rounds"
        }
        of() { every "$@" | median; }
        # Where the device is waited for, all of the time counts.
        case $kind in
            cached) own=4 bare=6 ;;
            direct) own=3 bare=5 ;;
        esac
        fio=$(of 3 7) loop=$(of "$own" "$bare")
        least=$(every "$own" "$bare" | sort -g | head -n 1) most=$(every "$own" "$bare" | sort -g | tail -n 1)
        printf '%8s %6d %10.0f %10.0f %10.0f %12.3f %12.3f %7.3f %7.3f\n' \
            $kind $depth "$(of "$own")" "$(of 7)" "$(of "$bare")" "$fio" "$loop" "$least" "$most"
        [ $kind = direct ] || awk -v fio="$fio" -v loop="$loop" 'BEGIN { exit !(fio < 1 && loop <= 1.1) }' || {
            echo "engine: at depth $depth the ratio to fio is $fio (bound 1), to the loop $loop (bound 1.1)" >&2
            status=1
        }
    done
done
exit $status
