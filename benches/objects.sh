#!/bin/sh
# objects.sh [N [MS]]: a fleet of N objects (100000), hard links to the 20 kinds of fleet.sh, on a server that answers after MS milliseconds (20).
# Prints the time and the peak memory of one run, and requests, bytes and rounds of an image.
# Bounds, with 20 ms: 300 s for 100,000 on two cores, of which the server takes its part; 512 MiB.
#
# The server is crates/cloud/examples/object_server.rs: S3's listing, ranges and conditions, a thread a connection. BUCKET=s3://NAME takes another one
# that has the directory's files already, with the AWS_* of the environment; its latency is its own.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=benches/lib.sh
. benches/lib.sh
need objects qemu-img=qemu-utils sfdisk=fdisk mkfs.ext4=e2fsprogs /usr/bin/time=time
count=${1:-100000} latency=${2:-20}
cargo build --quiet --release --package trueline --features cloud
cargo build --quiet --release --package trueline-cloud --example object_server
target=$(realpath "${CARGO_TARGET_DIR:-target}")
trueline=$target/release/trueline
scratch=$(mktemp -d "$target/objects.XXXXXX")
trap 'rm -rf "$scratch"; [ -z "${server:-}" ] || kill "$server"' EXIT
cd "$scratch"
mkdir kinds all
twenty_kinds kinds
# Directories of at most 1000 links each to one file would be many: a file has room for 65000.
nth=0
while [ $nth -lt "$count" ]; do
    for kind in kinds/*; do
        ln "$kind" "all/$nth-${kind#kinds/}"
        nth=$((nth + 1))
    done
done
bucket=${BUCKET:-}
if [ -z "$bucket" ]; then
    mkfifo ends
    "$target/release/examples/object_server" all "$latency" <ends >url &
    server=$!
    exec 3>ends
    while ! [ -s url ]; do sleep 0.1; done
    bucket=s3://bucket
    AWS_ENDPOINT=$(cat url)
    export AWS_ENDPOINT AWS_ALLOW_HTTP=true AWS_SKIP_SIGNATURE=true AWS_REGION=us-east-1
fi
/usr/bin/time -f '%e %M %U %S' -o time "$trueline" check -r "$bucket/" --rows --into out.jsonl 2>said || [ $? -eq 1 ]
tail -n 1 said
tail -n 1 time | awk -v n="$count" '
    { printf "%d objects: %.1f s, %.0f a second, %.1f MiB, %.1f s of processor\n", n, $1, n / $1, $2 / 1024, $3 + $4
      exit ($1 > 300 * n / 100000 || $2 > 512 * 1024) }'
[ "$(cut -d, -f1 out.jsonl | sort -u | wc -l)" -eq "$count" ] || { echo "objects: lines are missing" >&2; exit 1; }
