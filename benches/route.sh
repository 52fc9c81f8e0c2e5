#!/bin/sh
# route.sh: what a 512-byte read costs through 0, 2 and 8 nested slices of a memory disk.
#
# Instructions by callgrind, the same at every run: the difference of two counts of reads, so that starting the program
# does not count. Wall time, in one run, beside it. Bound: at most 0.2 ns a slice, that is no instruction a slice.
set -eu
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || { echo "route: skipped, valgrind is not here: apt-get install valgrind" >&2; exit 0; }
target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --release --package trueline-geom --example route
route=$target/release/examples/route

few=10000 many=110000

# instructions SLICES COUNT: of the whole program.
instructions() {
    LC_ALL=C valgrind --tool=callgrind --callgrind-out-file=/dev/null "$route" "$1" "$2" 2>&1 | sed -n 's/.*Collected : *//p'
}

# nanoseconds SLICES COUNT: of the whole program, once.
nanoseconds() {
    from=$(date +%s%N)
    "$route" "$1" "$2"
    echo $(($(date +%s%N) - from))
}

printf '%6s %18s %12s\n' slices instructions/read ns/read
{
    for slices in 0 2 8; do
        echo "i $slices $(($(instructions $slices $many) - $(instructions $slices $few)))"
    done
    # In turns, so that a slow moment of the machine falls on all alike; the shortest counts.
    for _ in 1 2 3 4 5 6 7; do
        for slices in 0 2 8; do
            echo "t $slices $(($(nanoseconds $slices 11000000) - $(nanoseconds $slices 1000000)))"
        done
    done
} | awk -v reads=$((many - few)) '
    $1 == "i" { i[$2] = $3 / reads }
    $1 == "t" { ns = $3 / 10000000; if (!($2 in t) || ns < t[$2]) t[$2] = ns }
    END {
        for (n = 0; n <= 8; n++)
            if (n in i) printf "%6d %18.2f %12.2f\n", n, i[n], t[n]
        slope = (i[8] - i[0]) / 8
        printf "slope: %.3f instructions a slice (bound 0), %.3f ns a slice (bound 0.2)\n", slope, (t[8] - t[0]) / 8
        exit slope > 0.01
    }'
