#!/bin/sh
# thaw.sh NAME [FILE...]: makes the disks of a golden file, as sparse files in this directory: under their own names,
# or under these. Pages of the manual name golden files by which their commands can be tried.
set -eu
exec cargo run --quiet --manifest-path "$(dirname "$0")/../Cargo.toml" --package trueline --example freeze -- --thaw "$@"
