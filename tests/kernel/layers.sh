#!/bin/sh
# layers.sh DIRECTORY
#
# Records what the device mapper's thin volumes and encrypted devices ask of the devices beneath
# them, with the Debian kernel that is installed here, booted by boot.sh: DIRECTORY/thin-VERSION.txt
# and DIRECTORY/crypt-VERSION.txt, which crates/lab/tests/layers compares its models with. The
# guest's trace of bios (block:block_bio_queue) is what is recorded, so no bio is missed and none
# is merged. The requests are some by hand and a seeded sequence for each device.
#
# TRUELINE_GUEST_ROOT=DIRECTORY takes another kernel, as for boot.sh.
#
# Exit status: 0, 1 if the guest failed, 2 if something to boot with is missing.
set -eu
PATH="$PATH:/usr/sbin:/sbin"
here=$(cd "$(dirname "$0")" && pwd)
missing() {
    echo "layers.sh: $*" >&2
    exit 2
}

[ $# = 1 ] || missing "usage: $(sed -n '2s/^# //p' "$0")"
for program in cc dmsetup cryptsetup; do
    command -v $program >/dev/null || missing "no $program"
done
out=$1
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
mkdir "$work/lists"
cc -O2 -static -o "$work/lists/layers" "$here/layers.c" || missing "cc cannot build layers.c"
cp "$here/layers-guest.sh" "$work/lists"
echo "a key of no secret" >"$work/lists/key"

# The bytes of a volume; all requests are within it.
volume=$((16 << 20))
echo $volume >"$work/lists/volume"

# by_hand UNIT SECTOR: requests that show every rule of a layer with units of so many bytes.
by_hand() {
    awk -v unit="$1" -v sector="$2" 'BEGIN {
        page = 4096
        # Nothing is there; then a first write in part, beside it, again, and what is in it.
        print "r", 0, unit; print "r", unit / 2, unit
        print "w", page, page; print "w", 2 * page, page; print "w", page, page; print "r", 0, unit
        # The smallest, at the end of a unit; over a border; a whole unit, and it again in part.
        print "w", 2 * unit - sector, sector
        print "w", 4 * unit - page, 2 * page
        print "w", 6 * unit, unit; print "w", 6 * unit + page, page
        # A unit and a half; two whole ones; from the middle of one that is there into two more.
        print "w", 7 * unit, unit + unit / 2
        print "w", 10 * unit, 2 * unit
        print "w", 8 * unit + unit / 2, 2 * unit
        # All but a sector of a unit, and that sector.
        print "w", 13 * unit, unit - sector; print "w", 14 * unit - sector, sector
        # Of what is there and what is not: a read; downwards: writes.
        print "r", 5 * unit + page, 2 * unit
        print "w", 15 * unit + page, page; print "w", 14 * unit + page, page
        # Flushes after a change, and after none; writes with FUA, first ones and others.
        print "f"; print "f"
        print "s", 6 * unit, page; print "s", 6 * unit, unit
        print "s", 5 * unit + page, page; print "s", 12 * unit, unit; print "f"
    }' | awk -v volume=$volume '$2 + $3 <= volume'
}

# at_random UNIT SECTOR LARGEST SEED COUNT
at_random() {
    awk -v unit="$1" -v sector="$2" -v largest="$3" -v seed="$4" -v count="$5" -v volume=$volume '
    # Park and Miller: below 2^53 all along.
    function below(n) { seed = seed * 16807 % 2147483647; return seed % n }
    BEGIN {
        while (made < count) {
            kind = below(100); form = below(4); step = form == 0 ? sector : 4096
            offset = form == 2 ? below(int(volume / unit)) * unit : below(volume / step) * step
            if (form == 0) many = (1 + below(64)) * sector
            if (form == 1) many = (1 + below(16)) * 4096
            if (form == 2) many = unit
            if (form == 3) many = (1 + below(5 * unit / 4096)) * 4096
            if (many > largest) many = largest
            if (offset + many > volume) continue
            made++
            if (kind < 6) print "f"
            else print kind < 12 ? "s" : kind < 40 ? "r" : "w", offset, many
        }
    }'
}

# list NAME UNIT SECTOR LARGEST SEED COUNT [REQUEST...]: more requests between the two.
list() {
    name=$1 unit=$2 sector=$3 largest=$4 seed=$5 count=$6
    shift 6
    {
        by_hand "$unit" "$sector"
        for one; do echo "$one"; done
        at_random "$unit" "$sector" "$largest" "$seed" "$count"
    } >"$work/lists/$name.list"
}

list thin-1.128.zero 65536 512 1048576 1 200
list thin-2.128.none 65536 512 1048576 2 200
list thin-3.128.zero-shared 65536 512 1048576 3 200
list thin-4.128.zero-provisioned 65536 512 1048576 4 60
list thin-5.128.zero-origin 65536 512 1048576 5 150 'r 3141632 24576' 'r 3158016 16384' \
    'r 3166208 4096' 'w 3149824 4096' 'r 3145728 65536' 'w 3211264 4096'
list thin-6.128.origin 65536 512 1048576 6 150 'r 3141632 24576' 'r 3158016 16384' \
    'r 3166208 4096' 'w 3149824 4096' 'r 3145728 65536' 'w 3211264 4096'
list thin-7.384.zero 196608 512 1048576 7 100
list thin-8.2048.zero 1048576 512 4194304 8 60
list thin-9.2048.zero-shared 1048576 512 4194304 9 60
list thin-a.4096.zero 2097152 512 4194304 10 40
list thin-b.8192.zero-shared 4194304 512 4194304 11 20
list crypt-1.512 131072 512 4194304 12 100
list crypt-2.4096 131072 4096 4194304 13 100
list crypt-3.4096 1048576 4096 4194304 14 60

tar -C "$work" -cf "$work/lists.tar" lists
truncate -s 128M "$work/data"
truncate -s 16M "$work/metadata"
truncate -s $((3 * 1048576 + 20480)) "$work/origin"
truncate -s 64M "$work/results"
modules=
for module in dm_mod dm_thin_pool dm_crypt xts sha256_generic algif_skcipher algif_hash; do
    modules="$modules -m $module"
done
# shellcheck disable=SC2086 # words
"$here/boot.sh" $modules -p dmsetup -p cryptsetup -r 'tar -xf /dev/vda -C / && mkdir /results' \
    -r 'uname -r >/results/kernel' \
    -r 'sh -eu /lists/layers-guest.sh /lists /results /dev/vdc /dev/vdd /dev/vde' \
    -r 'tar -cf /dev/vdb -C /results .' \
    "$work/lists.tar" "$work/results,rw" "$work/data" "$work/metadata" "$work/origin" >"$work/said"
mkdir "$work/found"
tar -C "$work/found" -xf "$work/results"

# A line of the recording: the requests that came to the layer | those that it made of the devices
# beneath, in one address space: the data device, and behind it the external origin.
record() {
    awk '
    function add(list, one) { return list == "" ? one : list ", " one }
    function close_line() {
        if (asked == "") return
        while (before-- > 0) print "c | f"
        print asked " | " (made == "" ? "-" : made)
        while (after-- > 0) print "c | f"
        asked = ""
    }
    /^= / { print; next }
    /^numbers / {
        for (i = 2; i < 5; i++) sub(/:/, ",", $i)
        volume = $2; data = $3; origin = $4; beyond = $5
        next
    }
    sub(/.*tracing_mark_write: /, "") {
        close_line()
        line = $1; made = ""; before = after = 0
        next
    }
    sub(/.*block_bio_queue: /, "") {
        if (line == "" || $1 != volume && $1 != data && $1 != origin) next
        flush = $2 ~ /^F/; op = $2 ~ /^WF/ ? "s" : $2 ~ /W/ ? "w" : "r"
        one = flush ? "f" : op " " ($3 * 512 + ($1 == origin ? beyond : 0)) " " $5 * 512
        if ($1 == volume) asked = add(asked, one)
        # Not of this request, which has no flush, or has not come, or has had its own: the commit
        # is that of the timer of the pool.
        else if (flush && asked == "") before++
        else if (flush && line ~ /^[rw]/) { if (made == "") before++; else after++ }
        else if (flush && line == "f" && made != "") before++
        else made = add(made, one)
    }' "$@"
}

kernel=$(cat "$work/found/kernel")
series=$(echo "$kernel" | cut -d. -f1,2)
for layer in thin crypt; do
    {
        echo "# Linux $kernel; made with: sh tests/kernel/layers.sh tests/kernel/layers"
        echo "# Requests that came | those made of them: r, w, s: read, write, write with FUA, OFFSET"
        echo "# LENGTH in bytes; f: flush; c: a commit by the timer of the pool."
        record "$work/found/$layer"-*.trace
    } >"$out/$layer-$series.txt"
done
