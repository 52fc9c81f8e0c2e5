#!/bin/sh
# before-after.sh COMMIT: this tree against an older commit of it: reads through slices, check, the NBD server, a lab.
#
# Both are built here. Where a count is the same at every run it is the count of instructions (callgrind). Times are ratios in one run:
# both programs and the older one once more have their turns in every round, and what the older one differs from itself by is the noise,
# shown beside. Medians of ROUNDS rounds. Bound: no median is worse by more than 3 % and the noise (the largest ratio of any round of the
# older one to itself), and no count of instructions by more than 3 %.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=benches/lib.sh
. benches/lib.sh
[ $# = 1 ] || { echo "usage: before-after.sh COMMIT" >&2; exit 2; }
need before-after valgrind=valgrind gcc=gcc taskset=util-linux sfdisk=fdisk mkfs.ext4=e2fsprogs mkfs.vfat=dosfstools
target=$(realpath "${CARGO_TARGET_DIR:-target}")
# One folder a commit: files have the time of their commit, by which cargo would take another tree for this one.
old=$target/before/$(git rev-parse --short "$1")
mkdir -p "$target"
scratch=$(mktemp -d "$target/before-after.XXXXXX")
rounds=${ROUNDS:-7} seconds=${SECONDS_EACH:-0.4}
pids='' status=0
trap 'kill $pids 2>/dev/null || true; rm -rf "$scratch"' EXIT

# A tree without a history; a second run with this commit builds nothing.
rm -rf "$old/tree"
mkdir -p "$old/tree"
git archive "$1" | tar -x -C "$old/tree"
for tree in "$old/tree" .; do
    out=$target
    [ "$tree" = . ] || out=$old/target
    (cd "$tree" && CARGO_TARGET_DIR=$out cargo build --quiet --release --package trueline &&
        CARGO_TARGET_DIR=$out cargo build --quiet --release --package trueline-geom --example route)
done
# shellcheck disable=SC2034 # used by eval
before=$old/target/release after=$target/release again=$before
gcc -O2 -Wall -pthread -o "$scratch/nbd-load" benches/nbd-load.c
cd "$scratch"
small_image small.img
large_image large.img
first=
chrt -f 1 true 2>/dev/null && first='chrt -f 1'

# instructions COMMAND...: of the whole program, whose own exit status says what it found.
instructions() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 >/dev/null | sed -n 's/.*Collected : *//p'
}

# serve NAME BINARY DISK: a server that listens at NAME.
serve() {
    $first taskset -c 1 "$2" serve "$3" --nbd "unix:$1" 2>"$1.log" &
    eval "pid_$1=$!"
    pids="$pids $!"
    for _ in $(seq 100); do [ ! -S "$1" ] || break; sleep 0.1; done
    sleep 0.2
    ./nbd-load "$1" fill 65536 8 1 1 0 >/dev/null
}

# milliseconds COMMAND...: N runs of it.
milliseconds() {
    n=$1
    shift
    from=$(date +%s%N)
    for _ in $(seq "$n"); do $first "$@" >/dev/null 2>&1 || true; done
    echo $((($(date +%s%N) - from) / 1000))
}

: >counts
for slices in 0 8; do
    for which in before after; do
        eval "route=\$$which/examples/route"
        # shellcheck disable=SC2154 # set by eval
        few=$(instructions "$route" $slices 10000)
        many=$(instructions "$route" $slices 110000)
        echo "read-through-$slices-slices $which $(((many - few) / 1000))"
    done
done >>counts
for what in small large; do
    for which in before after; do
        eval "folder=\$$which"
        # shellcheck disable=SC2154
        echo "check-$what $which $(instructions "$folder/trueline" check $what.img)"
    done
done >>counts
awk 'BEGIN { printf "%-28s %14s %14s %8s\n", "instructions", "before", "after", "ratio" }
    $2 == "before" { b[$1] = $3; next }
    { r = $3 / b[$1]; printf "%-28s %14d %14d %8.3f\n", $1, b[$1], $3, r; if (r > 1.03) bad = 1 }
    END { exit bad }' counts || { status=1; echo "before-after: more instructions than before" >&2; }

names='before after again'
: >elapsed
for kind in memory file; do
    for name in $names; do
        eval "folder=\$$name"
        disk=md:256m
        [ $kind = memory ] || { disk=$name.img; head -c 256M /dev/zero >"$disk"; }
        serve "$name" "$folder/trueline" "$disk"
    done
    for number in $(seq "$rounds"); do
        for case in '1 randread 512 1' '0 randread 4096 32' '0 randwrite 4096 32' '0 read 65536 8' '0 write 1048576 4'; do
            # shellcheck disable=SC2086 # words of a case
            set -- $case
            for name in $names; do
                eval "pid=\$pid_$name"
                # shellcheck disable=SC2154 # set by eval
                figures=$($first taskset -c "$1" ./nbd-load "$name" "$2" "$3" "$4" "$seconds" 1 "$pid")
                echo "$kind-$2-$3 $number $name $(echo "$figures" | awk '{ print 1e6 / $1, $NF }')"
            done
        done
        # The first of a round finds what the last one left in the caches, so each is the first in its turn.
        names="${names#* } ${names%% *}"
    done >>elapsed
    # shellcheck disable=SC2086 # several words
    kill $pids
    # shellcheck disable=SC2086
    wait $pids 2>/dev/null || true
    pids=
    rm -f before after again
done
for number in $(seq "$rounds"); do
    for name in $names; do
        eval "folder=\$$name"
        echo "check-small $number $name $(milliseconds 40 "$folder/trueline" check small.img) 0"
        echo "check-large $number $name $(milliseconds 40 "$folder/trueline" check large.img) 0"
        echo "lab-2009-gstripe $number $name $(milliseconds 1 "$folder/trueline" lab run 2009-gstripe --sweep 0) 0"
    done
    names="${names#* } ${names%% *}"
done >>elapsed

# Time of an I/O or a run, and the server's processor time: to the older program's in the same round.
printf '\n%-28s %8s %8s %16s\n' 'time, to before' after again 'range of again'
for case in $(cut -d' ' -f1 elapsed | uniq | awk '!seen[$0]++'); do
    for field in 4 5; do
        awk -v case="$case" -v field=$field '
            $1 == case { v[$3, $2] = $field; if ($2 > n) n = $2 }
            function median(name, i, j, t) {
                for (i = 1; i <= n; i++) r[i] = v[name, i] / v["before", i]
                for (i = 2; i <= n; i++) for (j = i; j > 1 && r[j] < r[j - 1]; j--) { t = r[j]; r[j] = r[j - 1]; r[j - 1] = t }
                return r[int((n + 1) / 2)]
            }
            END {
                if (v["before", 1] == 0) exit
                a = median("after"); b = median("again"); low = r[1]; high = r[n]
                printf "%-28s %8.3f %8.3f %8.3f-%.3f\n", case (field == 5 ? " (processor)" : ""), a, b, low, high
                noise = high - 1 > 1 - low ? high - 1 : 1 - low
                exit a > 1.03 + noise
            }' elapsed || { status=1; echo "before-after: $case is slower than before" >&2; }
    done
done
exit $status
