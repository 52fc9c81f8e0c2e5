#!/bin/sh
# freeze.sh [NAME...]: makes the disks of those golden files afresh (all of them, if none is named), and rewrites their dumps.
# What `trueline check` is to say of them is rewritten by TRUELINE_BLESS=1 cargo test -p trueline --test disks golden.
set -eu
cd "$(dirname "$0")/.."
exec cargo run --quiet --package trueline --example freeze -- "$@"
