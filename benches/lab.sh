#!/bin/sh
# lab.sh: how fast the simulation is, and how long the labs of the five documents take with intervals of 64 points.
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

labs='2002-geom 2009-gstripe 2010-osnews 2010-wd10ears 2013-gpart'
for points in 0 64; do
    begin=$(date +%s.%N)
    # shellcheck disable=SC2086 # a list of names
    "$trueline" lab run $labs --sweep "$points" >/dev/null
    end=$(date +%s.%N)
    echo "$begin $end $points" | awk '{ printf "the five labs, %d points: %.1f s\n", $3, $2 - $1 }'
done
echo "$begin $end" | awk '{ exit !($2 - $1 <= 60) }' || {
    echo "lab: the five labs at 64 points took longer than 60 s" >&2
    status=1
}
exit $status
