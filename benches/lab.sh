#!/bin/sh
# lab.sh: how fast the simulation is, and how long all simulated labs take with an interval of 64 points a row.
#
# Bounds: 0.5 M operations of the medium and 2 M events a second on one core, whatever the queue; 60 s for the labs on two cores.
set -eu
cd "$(dirname "$0")/.."
. benches/lib.sh
trueline_binary

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
status=0

cargo run --quiet --release --package trueline-sim --example speed | tee "$scratch/speed"
# NAME... N M media operations/s N M events/s ...
awk '{ for (i = 2; i < NF; i++) if ($(i) == "M" && $(i + 1) == "media" && $(i - 1) < 0.5 || $(i) == "M" && $(i + 1) == "events/s" && $(i - 1) < 2) bad = 1 }
     END { exit bad }' "$scratch/speed" || {
    echo "lab: the simulation is slower than 0.5 M operations of the medium or 2 M events a second" >&2
    status=1
}

for points in 0 64; do
    begin=$(date +%s.%N)
    "$trueline" lab run --all --sweep "$points" >/dev/null
    end=$(date +%s.%N)
    echo "$begin $end $points" | awk '{ printf "all labs, %d points: %.1f s\n", $3, $2 - $1 }'
done
echo "$begin $end" | awk '{ exit !($2 - $1 <= 60) }' || {
    echo "lab: all labs at 64 points took longer than 60 s" >&2
    status=1
}
exit $status
