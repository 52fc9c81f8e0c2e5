#!/bin/sh
# wheel/build.sh DIRECTORY: the Python package as a wheel.
#
# Run by packaging/dist.sh, which sets SOURCE_DATE_EPOCH. The module is loaded by a Python of the system, so it is
# linked with the C library of this machine: the wheel's name says the oldest one that will do.
set -eu
out=$1
here=$PWD
python=$here/target/python/bin/python
cargo_home=${CARGO_HOME:-$HOME/.cargo}
scratch=$(mktemp -d)
# maturin packs licences that are beside the manifest; that of the crates is not a part of the sources.
trap 'rm -rf "$scratch" "$here/crates/python/LICENSES-OF-CRATES"' EXIT

cargo metadata --locked --format-version 1 --manifest-path crates/python/Cargo.toml >"$scratch/metadata"
cargo tree --locked -p trueline-python -e normal --prefix none |
    awk '{ print $1 " " substr($2, 2) }' | sort -u >"$scratch/tree"
sh packaging/licences.sh "$scratch/metadata" "$scratch/tree" >crates/python/LICENSES-OF-CRATES
triple=$(rustc -vV | sed -n 's/^host: //p')
version=$(jq -r 'first(.packages[] | select(.name == "trueline-python")).version' "$scratch/metadata")
jq --arg root trueline-python --arg target "$triple" --arg rustc "$(rustc -V | cut -d' ' -f2)" \
    --arg time "$(date -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)" \
    --rawfile tree "$scratch/tree" --rawfile lock Cargo.lock -f packaging/sbom.jq "$scratch/metadata" \
    >"$out/trueline-$version-python.cdx.json"
RUSTFLAGS="--remap-path-prefix=$here=/trueline --remap-path-prefix=$cargo_home=/cargo" \
    CFLAGS="-ffile-prefix-map=$here=/trueline -ffile-prefix-map=$cargo_home=/cargo" \
    PATH="$here/target/python/bin:$PATH" \
    "$python" -m maturin build --quiet --release --strip --locked -m crates/python/Cargo.toml -o "$out"
