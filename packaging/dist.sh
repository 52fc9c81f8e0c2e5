#!/bin/sh
# dist.sh: the packages of this version, as target/dist/trueline-*, with their SHA256SUMS.
#
# One program for all of them, linked statically with musl. The same sources, compilers and tools give the same
# bytes in every directory (packaging/reproduce.sh shows it): the time is the last commit's, or SOURCE_DATE_EPOCH.
set -eu
cd "$(dirname "$0")/.."
export LC_ALL=C TZ=UTC
umask 022
target=x86_64-unknown-linux-musl
features=cloud

lacks() {
    echo "dist.sh: $1" >&2
    exit 1
}
for tool in jq zstd strip musl-gcc dpkg-deb rpmbuild; do
    command -v "$tool" >/dev/null || lacks "no $tool here; TRUELINE_INSTALL=1 sh tests/install.sh dist installs it"
done
[ -x target/python/bin/maturin ] || lacks "no maturin in target/python; TRUELINE_INSTALL=1 sh tests/install.sh dist installs it"
[ -d "$(rustc --print target-libdir --target "$target")" ] || lacks "no Rust for $target; rustup target add $target installs it"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
dist=$PWD/target/dist
name=trueline-$version-x86_64-linux
stage=$dist/stage/$name
rm -rf "$dist"
mkdir -p "$stage/bin"

# The program. Neither the directory of the sources nor that of the crates is in it.
cargo_home=${CARGO_HOME:-$HOME/.cargo}
RUSTFLAGS="--remap-path-prefix=$PWD=/trueline --remap-path-prefix=$cargo_home=/cargo" \
    CFLAGS_x86_64_unknown_linux_musl="-ffile-prefix-map=$PWD=/trueline -ffile-prefix-map=$cargo_home=/cargo" \
    ${CARGO:-cargo} build --release --locked --target "$target" -p trueline --features "$features"
strip --remove-section=.comment -o "$stage/bin/trueline" "target/$target/release/trueline"

# The tree that all packages are made of: one that can be unpacked over /usr/local.
program=$stage/bin/trueline
share=$stage/share
doc=$share/doc/trueline
mkdir -p "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/site-functions" \
    "$share/fish/vendor_completions.d" "$stage/lib/systemd/system" "$doc"
"$program" man "$share/man/man1"
"$program" completions bash >"$share/bash-completion/completions/trueline"
"$program" completions zsh >"$share/zsh/site-functions/_trueline"
"$program" completions fish >"$share/fish/vendor_completions.d/trueline.fish"
for unit in contrib/systemd/*.service contrib/systemd/*.timer; do
    cp "$unit" "$stage/lib/systemd/system/"
done
cp README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$doc/"

# What is linked in: its licences, and the bill of materials.
scratch=$dist/scratch
mkdir "$scratch"
cargo metadata --locked --format-version 1 --filter-platform "$target" --features trueline/$features >"$scratch/metadata"
cargo tree --locked -p trueline --features "$features" --target "$target" -e normal --prefix none |
    awk '{ print $1 " " substr($2, 2) }' | sort -u >"$scratch/tree"
sh packaging/licences.sh "$scratch/metadata" "$scratch/tree" >"$doc/LICENSES-OF-CRATES"
cp "$(rustc --print sysroot)/share/doc/rust/COPYRIGHT-library.html" "$doc/LICENSES-OF-RUST.html"
cp packaging/LICENSE-MUSL "$doc/"
jq --arg root trueline --arg target "$target" --arg rustc "$(rustc -V | cut -d' ' -f2)" \
    --arg time "$(date -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)" \
    --rawfile tree "$scratch/tree" --rawfile lock Cargo.lock -f packaging/sbom.jq "$scratch/metadata" >"$dist/$name.cdx.json"

# Every file is in the list, and every file of the list is there.
(cd "$stage" && find . -type f | sed 's,^\./,,' | sort) >"$scratch/files"
grep -v '^#' packaging/files | diff - "$scratch/files" || lacks "the staged tree is not what packaging/files lists"
find "$stage" -type f ! -path '*/bin/*' -exec chmod 644 {} +
find "$stage" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +

# A tar whose bytes depend on nothing but what is in it.
tar -C "$dist/stage" --sort=name --owner=0 --group=0 --numeric-owner --format=gnu -cf - "$name" |
    zstd -q -19 -T1 -o "$dist/$name.tar.zst"
rm -r "$scratch"

sh packaging/deb/build.sh "$stage" "$version" "$dist"
sh packaging/rpm/build.sh "$stage" "$version" "$dist"
sh packaging/container/build.sh "$stage" "$version" "$dist"
sh packaging/wheel/build.sh "$dist"

(cd "$dist" && find . -maxdepth 1 -type f ! -name SHA256SUMS | sed 's,^\./,,' | sort | xargs sha256sum >SHA256SUMS)
cat "$dist/SHA256SUMS"
