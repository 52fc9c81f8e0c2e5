#!/bin/sh
# licences.sh METADATA TREE: the licences of the crates that are linked into the program, each text once.
#
# METADATA is the output of `cargo metadata`, TREE has "name version" of every crate that counts, a line each.
set -eu
sorted() { LC_ALL=C sort; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Crates of this repository have no source; their licences stand beside this file.
jq -r '.packages[] | select(.source) | "\(.name) \(.version)\t\(.license)\t\(.manifest_path)"' "$1" | sorted >"$scratch/all"
while IFS="$(printf '\t')" read -r crate licence manifest; do
    grep -qxF "$crate" "$2" || continue
    printf '%s: %s\n' "$crate" "$licence"
    # Sources in C that a crate has with it have licences of their own, further down.
    find "${manifest%/*}" -type f >"$scratch/found"
    sorted <"$scratch/found" >"$scratch/texts"
    while IFS= read -r text; do
        case $(basename "$text" | tr '[:lower:]' '[:upper:]') in
            LICEN[CS]E* | COPYING* | COPYRIGHT* | NOTICE* | UNLICENSE*) ;;
            *) continue ;;
        esac
        # Line ends and spaces at the ends of lines make no other text.
        tr -d '\r' <"$text" | sed 's/[[:space:]]*$//' >"$scratch/text"
        sum=$(sha256sum <"$scratch/text" | cut -d' ' -f1)
        [ -e "$scratch/$sum.text" ] || mv "$scratch/text" "$scratch/$sum.text"
        grep -qxF "$crate" "$scratch/$sum.crates" 2>/dev/null || printf '%s\n' "$crate" >>"$scratch/$sum.crates"
    done <"$scratch/texts"
done <"$scratch/all"
# Ordered by the first crate that has it.
for list in "$scratch"/*.crates; do
    printf '%s\t%s\n' "$(head -n 1 "$list")" "$list"
done | sorted | while IFS="$(printf '\t')" read -r _ list; do
    printf '\n%s\n' "--------------------------------------------------------------------------------"
    paste -sd ',' "$list" | sed 's/,/, /g' | fold -s -w 100
    echo
    cat "${list%.crates}.text"
done
