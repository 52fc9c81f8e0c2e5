#!/bin/sh
# skipped.sh LIST: what the tests skipped on this machine, a line a reason, from the file that TRUELINE_SKIPPED named.
set -eu
count=$(wc -l <"$1")
if [ "$count" -eq 0 ]; then
    echo "no test was skipped"
else
    echo "skipped on this machine, not proved by this run ($count):"
    sort "$1" | uniq -c | sed -E 's/^ *1 (.*)/  \1/; s/^ *([0-9]+) (.*)/  \2 (\1 times)/'
fi
