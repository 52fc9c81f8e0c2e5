#!/bin/sh
# python.sh [N]: a list of N images (20000) of 20 kinds, by the Python package and by the program, in turns.
# The package is installed for the interpreter that PYTHON names (python3), with pyarrow, as a release build.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=benches/lib.sh
. benches/lib.sh
need python qemu-img=qemu-utils sfdisk=fdisk mkfs.ext4=e2fsprogs
trueline_binary
python=$(realpath -s "$(command -v "${PYTHON:-python3}")")
"$python" -c 'import trueline, pyarrow' 2>/dev/null ||
    { echo "python: skipped, $python has no trueline with pyarrow: see docs/manual/python.md" >&2; exit 0; }
count=${1:-20000}
scratch=$(mktemp -d target/python.XXXXXX)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
mkdir kinds
twenty_kinds kinds
kinds=$(ls kinds)
for nth in $(seq $((count / 20))); do
    for kind in $kinds; do ln "kinds/$kind" "$nth-$kind" && echo "$nth-$kind"; done
done >names
cat >bench.py <<'PROGRAM'
import os, subprocess, sys, time
import trueline

program, names = sys.argv[1], [line.rstrip("\n") for line in open("names")]


def program_lines(form):
    with open("names") as list, open("lines", "w") as out:
        subprocess.run([program, "check", "--quiet", form, "--from", "-", "--into", "lines"], stdin=list)
    os.unlink("lines")


def reports():
    for _ in trueline.check_many(names):
        pass


def parquet():
    trueline.write_parquet(names, "fleet.parquet")


def seconds(work):
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


pairs = [("check_many", lambda: program_lines("--jsonl"), reports), ("write_parquet", lambda: program_lines("--rows"), parquet)]
print(f"{len(names)} images     program  package  ratio")
for name, ours, theirs in pairs:
    rounds = sorted((b / a, a, b) for a, b in ((seconds(ours), seconds(theirs)) for _ in range(5)))
    ratio, a, b = rounds[2]
    print(f"{name:14} {a:9.2f} s {b:6.2f} s  {ratio:5.2f}  ({rounds[0][0]:.2f} to {rounds[4][0]:.2f})")
PROGRAM
"$python" bench.py "$trueline"
