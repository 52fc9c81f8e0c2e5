#!/bin/sh
# reproduce.sh: builds the packages a second time in another directory, and compares them byte for byte.
#
# The first are those of target/dist, which packaging/dist.sh has made of the same sources.
set -eu
cd "$(dirname "$0")/.."
first=$PWD/target/dist
[ -e "$first/SHA256SUMS" ] || { echo "reproduce.sh: no packages in target/dist; make dist makes them" >&2; exit 1; }
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

# Another name, another length, another depth, and no .git.
again=$PWD/target/again/in/another/directory
rm -rf "$PWD/target/again"
mkdir -p "$again"
mkdir -p "$again/target"
ln -s "$PWD/target/python" "$again/target/python"
git ls-files -z | xargs -0 cp --no-dereference --parents -t "$again"
(cd "$again" && umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 sh packaging/dist.sh)

same=yes
for file in "$first"/*; do
    [ -f "$file" ] || continue
    cmp "$file" "$again/target/dist/$(basename "$file")" || same=no
done
[ "$same" = yes ] || { echo "reproduce.sh: two builds of the same sources differ" >&2; exit 1; }
rm -rf "$PWD/target/again"
echo "reproduce.sh: the same bytes in two directories"
