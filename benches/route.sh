#!/bin/sh
# route.sh: what a 512-byte read costs through 0, 2 and 8 nested slices of a memory disk.
#
# Instructions by callgrind, the same at every run: the difference of two counts of reads, so that starting the program
# does not count. Wall time, the shortest of seven, beside it. Bound: at most 0.2 ns a slice, that is no instruction a slice.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=benches/lib.sh
. benches/lib.sh
need route valgrind=valgrind
target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --release --package trueline-geom --example route
route=$target/release/examples/route

few=10000 many=110000

# instructions SLICES COUNT: of the whole program.
instructions() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$route" "$1" "$2" 2>&1 | sed -n 's/.*Collected : *//p'
}

reads() {
    "$route" "$1" "$2"
}

printf '%6s %18s %12s\n' slices instructions/read ns/read
{
    for slices in 0 2 8; do
        echo "i $slices $(($(instructions $slices $many) - $(instructions $slices $few)))"
    done
    per_read 1000000 11000000 0 2 8
} | awk -v reads=$((many - few)) '
    $1 == "i" { i[$2] = $3 / reads }
    $1 == "t" { t[$2] = $3 }
    END {
        if (!(0 in t)) exit 1
        for (n = 0; n <= 8; n++)
            if (n in i) printf "%6d %18.2f %12.2f\n", n, i[n], t[n]
        slope = (i[8] - i[0]) / 8
        printf "slope: %.3f instructions a slice (bound 0), %.3f ns a slice (bound 0.2)\n", slope, (t[8] - t[0]) / 8
        exit slope > 0.01
    }'
