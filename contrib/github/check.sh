#!/bin/sh
# check.sh: the step of action.yml, which gives it its inputs as variables. Leaves SARIF in the file
# $SARIF, whatever was found, and the text for people in the log of the step. The variables are IMAGES,
# FOR, FAIL_ON, STRICT, SARIF, and GITHUB_OUTPUT of the runner. Without a runner:
#
#   IMAGES=out FOR= STRICT=true FAIL_ON=warning SARIF=trueline.sarif GITHUB_OUTPUT=/dev/null sh check.sh
set -u
# What an earlier run has left is no report of this one.
rm -f "$SARIF"
# Without a name, check looks at the disks of the machine that it runs on.
[ -n "$(printf '%s' "$IMAGES" | tr -d '[:space:]')" ] || {
    echo "check.sh: no images are named" >&2
    exit 2
}
set --
[ -z "$FOR" ] || set -- "$@" --for "$FOR"
[ "$STRICT" != true ] || set -- "$@" --strict
set -- "$@" --fail-on "$FAIL_ON"
# A name of a line is an argument, with blanks and all.
while IFS= read -r name; do
    case $name in -*) name=./$name ;; esac
    if [ -d "$name" ]; then set -- "$@" -r "$name"; elif [ -n "$name" ]; then set -- "$@" "$name"; fi
done <<END
$IMAGES
END
trueline check --sarif "$@" >"$SARIF" 2>/dev/null
status=$?
trueline check "$@"
# Without a report there is no SARIF, and a file that holds none cannot be uploaded.
[ -s "$SARIF" ] || rm -f "$SARIF"
printf 'sarif=%s\nstatus=%s\n' "$SARIF" "$status" >>"$GITHUB_OUTPUT"
exit "$status"
