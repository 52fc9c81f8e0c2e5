#!/bin/sh
# run.sh [SECONDS] [TARGET...]: fuzzes every target, or those named, for SECONDS each (60), from the golden disks.
#
# FUZZ_SEED is where its random numbers begin: from the same corpus the same seed (1) tries the same inputs in the same order, as many
# as there is time for, so that a short run finds today what it found yesterday. 0 begins anywhere.
#
# Exit status: 0 nothing found, or no nightly toolchain or cargo-fuzz here, which is said; 1 a crash, and what to do with it, or a
# target that does not build.
# The corpus grows in fuzz/corpus from run to run; `rm -r fuzz/corpus` starts anew.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# = 0 ] || shift
[ $# -gt 0 ] || set -- taste parser hexdump edit texts volumes members free unlock newfs model trace journal sequence rewrite qcow2 nbd_haggle nbd_transmit

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

corpus() {
    cargo +nightly run --quiet --release --manifest-path fuzz/Cargo.toml --bin corpus -- "$@"
}

# File names of the repository hold no blanks, so that a list of them can be split at blanks.
golden=$(ls tests/disks/*.hex 2>/dev/null || true)
echo "fuzz: the corpus, from the golden disks"
# shellcheck disable=SC2086
corpus build fuzz/corpus $golden

status=0
for target; do
    mkdir -p "fuzz/corpus/$target"
    echo "fuzz: $target, $seconds s"
    # An error of the compiler, or of the toolchain, says nothing of the program.
    if ! cargo +nightly fuzz build "$target"; then
        status=1
        echo "fuzz: $target does not build, and was not run" >&2
        continue
    fi
    # An input that takes two minutes, or asks for 64 MiB at once, is a crash as well. Instrumented, on a busy machine, everything
    # is a hundred times slower than promised; a loop never ends. What takes 10 s is shown, and kept.
    # A scope waits for its threads' work, and not for what their thread-locals hold (std::thread::scope): looked at in that
    # moment, it counts as leaked. What grows is stopped by the limits of memory.
    if ! cargo +nightly fuzz run "$target" -- -max_total_time="$seconds" -max_len=262144 -len_control=0 \
        -seed="${FUZZ_SEED:-1}" -timeout=120 -detect_leaks=0 -malloc_limit_mb=64 -rss_limit_mb=1024 -print_final_stats=1 -print_funcs=0 -verbosity=0; then
        status=1
        echo "fuzz: $target crashed; the input is in fuzz/artifacts/$target" >&2
        case $target in
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
            echo "fuzz: make it smaller:     cargo +nightly fuzz tmin $target fuzz/artifacts/$target/INPUT" >&2
            echo "fuzz: then a golden disk:  cargo +nightly run --release --manifest-path fuzz/Cargo.toml --bin corpus -- show $target fuzz/artifacts/$target/INPUT > tests/disks/fuzz-WHAT.hex" >&2
            ;;
        esac
    fi
done
exit "$status"
