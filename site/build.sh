#!/bin/sh
# build.sh: renders the documents into target/site, by mdBook, with the labs' page and the tables of the last `make bench`, and
# follows every link. TRUELINE names another binary than the release build.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/target/tools/bin:$PATH"
command -v mdbook >/dev/null || { echo "site: no mdbook here: TRUELINE_INSTALL=1 make site builds it into target/tools" >&2; exit 1; }
trueline=${TRUELINE:-}
if [ -z "$trueline" ]; then
    cargo build --release --locked --package trueline
    trueline=target/release/trueline
fi
# The labs take a minute: their page is made again when the program or a lab is newer.
mkdir -p target
labs=target/labs.html
newer=$(find "$trueline" labs -newer "$labs" 2>/dev/null || echo all)
[ -z "$newer" ] || "$trueline" lab run --all --html "$labs" >/dev/null
book=target/book
rm -rf "$book" target/site
mkdir -p "$book/src"
cp site/book.toml site/style.css site/copy.js "$book"
set -- --labs "$labs"
[ ! -e target/bench.txt ] || set -- "$@" --bench target/bench.txt
python3 site/pages.py stage "$book/src" "$@"
mdbook build --dest-dir "$PWD/target/site" "$book"
python3 site/pages.py links target/site
