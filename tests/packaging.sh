#!/bin/sh
# packaging.sh: what can be told of the packages without making them: scripts, lists of files, names of packages.
#
# It runs in a second or two; tests/dist.sh tries the packages themselves (make dist-test).
set -eu
cd "$(dirname "$0")/.."
export LC_ALL=C
fail() {
    echo "tests/packaging.sh: $1" >&2
    exit 1
}
echo "packaging: scripts, lists of files, names of packages"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for script in packaging/*.sh packaging/*/*.sh tests/*.sh; do
    sh -n "$script" || fail "$script is no shell script"
done

# Every manual page, completion and unit that there is stands in the list of files, and no other.
mkdir "$work/man"
target/debug/trueline man "$work/man"
{
    (cd "$work/man" && printf 'share/man/man1/%s\n' *)
    (cd contrib/systemd && printf 'lib/systemd/system/%s\n' *.service *.timer)
} | sort >"$work/made"
grep -e '^share/man/' -e '^lib/systemd/' packaging/files | diff - "$work/made" ||
    fail "packaging/files (<) does not list the manual pages and units that are there (>)"
for shell in bash zsh fish; do
    target/debug/trueline completions "$shell" | grep -q . || fail "no completions of $shell"
    grep -q "^share/$shell.*trueline" packaging/files || fail "completions of $shell are not in packaging/files"
done
grep -v '^#' packaging/files | sort -c || fail "packaging/files is not in order"

# The packages that a file system names for its mkfs are recommended. util-linux is in every Debian.
sed -n 's/.*Maker::new("[^"]*", "\([^"]*\)").*/\1/p' crates/geom/src/format/*.rs | sort -u >"$work/packages"
[ "$(wc -l <"$work/packages")" -gt 5 ] || fail "no packages are found in crates/geom/src/format"
while read -r package; do
    [ "$package" = util-linux ] || grep -q "^Recommends:.*[ ,]$package\(,\|$\)" packaging/deb/control ||
        fail "packaging/deb/control does not recommend $package"
    # Fedora's names.
    [ "$package" != ntfs-3g ] || package=ntfsprogs
    grep -qx "Recommends: $package" packaging/rpm/trueline.spec || fail "packaging/rpm/trueline.spec does not recommend $package"
done <"$work/packages"
