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

# run.sh starts each by its name.
for script in benches/*.sh; do
    [ "$script" = benches/lib.sh ] || [ -x "$script" ] || fail "$script is not executable"
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

# Every document that one links to is a page of the site.
python3 site/pages.py stage "$work/site" >"$work/said" 2>&1 || fail "the site: $(cat "$work/said")"

# A source that is no test takes in nothing from outside of its crate: it would not be packed.
for crate in crates/*; do
    (cd "$crate" && find src -name '*.rs' ! -name tests.rs ! -path '*/tests/*' -exec grep -oH 'include_[a-z]*!([a-z!(]*"[./]*' {} +) |
        awk -F: -v crate="$crate" '{ depth = gsub("/", "/", $1); if (gsub(/\.\.\//, "&", $2) > depth) print crate "/" $1 }' >"$work/outside"
    [ ! -s "$work/outside" ] || fail "sources take in what lies outside of their crate: $(cat "$work/outside")"
done

# What the sources take in is packed with each crate; links in the crates lead to it (decision 0084).
for manifest in crates/*/Cargo.toml; do
    crate=$(dirname "$manifest")
    grep -q '^publish = false' "$manifest" && continue
    cargo package --list --allow-dirty --offline --quiet --manifest-path "$manifest" >"$work/packed" 2>"$work/said" ||
        fail "$crate is not packed: $(cat "$work/said")"
    printf '%s\n' README.md LICENSE-APACHE LICENSE-MIT src/lib.rs >"$work/wanted"
    case $crate in
    */geom) (cd docs && printf '%s\n' rules/*.md) ;;
    */lab) printf '%s\n' labs/*.toml && (cd crates/lab && printf '%s\n' disks/bsd-freebsd.hex disks/seed-*.hex) ;;
    */cli) printf '%s\n' docs/manual/*.md docs/topics/*.md && (cd crates/cli && printf '%s\n' disks/seed-*.hex) ;;
    */sim) (cd crates/sim && printf '%s\n' models/*.toml) ;;
    esac >>"$work/wanted"
    while read -r file; do
        grep -qx "$file" "$work/packed" || fail "$crate is packed without $file"
    done <"$work/wanted"
done
