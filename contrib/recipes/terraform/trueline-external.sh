#!/bin/sh
# Program of a Terraform data source "external": a JSON object with strings on stdin, one on stdout.
#
#   query    target   what to check
#            for      the drive it is for; may be left out
#   result   verdict  aligned, misaligned or unknown
#            cost     the greatest factor of device operations, "1" where there is none
#            rules    rules of errors and warnings, separated by blanks
#            message  the first finding, else the first note, and what mends it
#
# A target that cannot be read is an error: a line on stderr, exit status 1.
set -eu
query=$(cat)
target=$(printf '%s' "$query" | jq -er .target) || {
    echo "trueline-external: the query has no target" >&2
    exit 1
}
for=$(printf '%s' "$query" | jq -r '.for // ""')
set --
[ -z "$for" ] || set -- --for "$for"
case $target in -*) target=./$target ;; esac
status=0
report=$(trueline check --json "$@" "$target") || status=$?
# 1 is a finding, and no error.
[ "$status" -le 1 ] || exit 1
printf '%s' "$report" | jq '.verdict as $verdict | [.targets[].findings[]] as $all
    | [$all[] | select(.severity != "note")] as $found | {
    verdict: $verdict,
    cost: ([$found[].rmw_factor, 1] | max | tostring),
    rules: ([$found[].rule] | unique | join(" ")),
    message: (($found + if $verdict == "aligned" then [] else $all end)[0]
        | if . then [.message, (.fix | join("; or: "))] | map(select(. != "")) | join("; ") else "" end)
}'
