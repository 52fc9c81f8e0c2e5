#!/bin/sh
# run.sh RECIPE.hex DIRECTORY: makes the disk of a golden file afresh, by the commands in its head.
#
# The lines after `# $ ` are a sh script. It runs with -eu in DIRECTORY, which is made and must be empty, and leaves `disk`
# there, for a set also `disk1` and so on. Clocks and random numbers are pinned where the tools allow it.
set -eu
[ $# = 2 ] || { echo "usage: run.sh RECIPE.hex DIRECTORY" >&2; exit 2; }
TRUELINE_TESTS=$(cd "$(dirname "$0")/.." && pwd)
recipe=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
mkdir -p "$2"
cd "$2"
[ -z "$(ls -A)" ] || { echo "run.sh: $2 is not empty" >&2; exit 2; }
export TRUELINE_TESTS LC_ALL=C TZ=UTC SOURCE_DATE_EPOCH=1262304000 PATH="$PATH:/usr/sbin:/sbin"
{
    echo ". '$TRUELINE_TESTS/disks/lib.sh'"
    sed -n 's/^# \$ \{0,1\}//p' "$recipe"
} >recipe.sh
status=0
sh -eu recipe.sh >log 2>&1 </dev/null || status=$?
# A recipe that failed half way must not keep its loop devices.
losetup --list --noheadings --raw --output NAME,BACK-FILE 2>/dev/null | while read -r device file; do
    case $file in "$PWD"/*) losetup --detach "$device" ;; esac
done
[ "$status" = 0 ] && [ -e disk ] || { echo "run.sh: $(basename "$recipe") failed ($status):" >&2; cat log >&2; exit 1; }
rm -f recipe.sh log
