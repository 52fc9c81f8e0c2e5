#!/bin/sh
# run.sh [SECONDS] [TARGET...]: fuzzes every target, or those named, for SECONDS each (60), from the golden disks.
#
# FUZZ_SEED is where its random numbers begin: from the same corpus the same seed (1) tries the same inputs in the same order, as many
# as there is time for, so that a short run finds today what it found yesterday. 0 begins anywhere.
#
# As many targets run at a time as there are processors, or FUZZ_LANES.
#
# Exit status: 0 nothing found, or no nightly toolchain or cargo-fuzz here, which is said; 1 a crash, and what to do with it, or a
# target that does not build.
# The corpus grows in fuzz/corpus from run to run; `rm -r fuzz/corpus` starts anew.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# = 0 ] || shift
all="taste parser hexdump edit texts volumes members free unlock newfs model trace journal sequence rewrite qcow2 nbd_haggle nbd_transmit"

# Ends with a line on stderr and in the list that `make test` prints at its end.
skip() {
    echo "fuzz: skipped: $*" >&2
    echo "fuzz: $*" >>"${TRUELINE_SKIPPED:-/dev/null}"
    exit 0
}

if ! cargo +nightly --version >/dev/null 2>&1; then
    skip "no nightly toolchain here: rustup toolchain install nightly"
fi
if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
    skip "no cargo-fuzz on the PATH: cargo install cargo-fuzz"
fi

# All bins at once, among them what makes the corpus, have one set of dependencies and both processors. An error of the compiler, or of
# the toolchain, says nothing of the program.
echo "fuzz: the targets are built"
if [ $# = 0 ]; then
    cargo +nightly fuzz build || unbuilt=all
    # shellcheck disable=SC2086
    set -- $all
else
    for target in corpus "$@"; do
        cargo +nightly fuzz build "$target" || unbuilt=$target
    done
fi
if [ -n "${unbuilt:-}" ]; then
    echo "fuzz: not every target builds ($unbuilt), and none was run" >&2
    exit 1
fi
host=$(rustc +nightly -vV | sed -n 's/^host: //p')
corpus=fuzz/target/$host/release/corpus

# File names of the repository hold no blanks, so that a list of them can be split at blanks.
golden=$(ls tests/disks/*.hex 2>/dev/null || true)
echo "fuzz: the corpus, from the golden disks"
# shellcheck disable=SC2086
"$corpus" build fuzz/corpus $golden

# run TARGET: what it prints; false if it crashed.
run() {
    mkdir -p "fuzz/corpus/$1"
    echo "fuzz: $1, $seconds s"
    # An input that takes two minutes, or asks for 64 MiB at once, is a crash as well. Instrumented, on a busy machine, everything
    # is a hundred times slower than promised; a loop never ends. What takes 10 s is shown, and kept.
    # A scope waits for its threads' work, and not for what their thread-locals hold (std::thread::scope): looked at in that
    # moment, it counts as leaked. What grows is stopped by the limits of memory.
    if ! cargo +nightly fuzz run "$1" -- -max_total_time="$seconds" -max_len=262144 -len_control=0 \
        -seed="${FUZZ_SEED:-1}" -timeout=120 -detect_leaks=0 -malloc_limit_mb=64 -rss_limit_mb=1024 -print_final_stats=1 -print_funcs=0 -verbosity=0; then
        echo "fuzz: $1 crashed; the input is in fuzz/artifacts/$1" >&2
        case $1 in
        hexdump) echo "fuzz: the input is text: make it a case of hexdump_text_is_read in crates/geom/src/base/store.rs" >&2 ;;
        texts) echo "fuzz: the input is text: make it one of TEXTS in crates/geom/tests/hostile/texts.rs" >&2 ;;
        trace) echo "fuzz: make it a case of crates/lab/src/trace/tests.rs" >&2 ;;
        qcow2) echo "fuzz: make it a case of crates/geom/tests/qcow2/hostile.rs" >&2 ;;
        journal) echo "fuzz: make it a case of crates/geom/tests/moves/main.rs" >&2 ;;
        sequence) echo "fuzz: make it a case of crates/geom/tests/moves/whole.rs" >&2 ;;
        rewrite) echo "fuzz: make it a case of crates/geom/tests/moves/converted.rs" >&2 ;;
        nbd_*) echo "fuzz: make it a case of crates/serve/tests/serve/nbd/hostile.rs" >&2 ;;
        unlock) echo "fuzz: make it a case of crates/unlock/tests/hostile/main.rs" >&2 ;;
        newfs) echo "fuzz: make it a case of hostile_numbers_end in crates/geom/src/newfs/tests/checked.rs" >&2 ;;
        model) echo "fuzz: the input is text: make it a case in crates/sim/tests/hostile/main.rs" >&2 ;;
        *)
            echo "fuzz: make it smaller:     cargo +nightly fuzz tmin $1 fuzz/artifacts/$1/INPUT" >&2
            echo "fuzz: then a golden disk:  $corpus show $1 fuzz/artifacts/$1/INPUT > tests/disks/fuzz-WHAT.hex" >&2
            ;;
        esac
        return 1
    fi
}

# A target has one thread, or little more: there are as many lanes of them as processors, each of which runs every so-manieth. What a
# target prints comes in one piece, when it has ended.
lanes=${FUZZ_LANES:-$(getconf _NPROCESSORS_ONLN)}
said=$(mktemp -d)
trap 'rm -rf "$said"' EXIT
lane() {
    mine=$1 number=0 status=0
    shift
    for target; do
        if [ $((number % lanes)) = "$mine" ]; then
            run "$target" >"$said/$target" 2>&1 || status=1
            cat "$said/$target"
        fi
        number=$((number + 1))
    done
    return "$status"
}

status=0 number=0 running=
while [ "$number" -lt "$lanes" ]; do
    lane "$number" "$@" &
    running="$running $!"
    number=$((number + 1))
done
for child in $running; do
    wait "$child" || status=1
done
exit "$status"
