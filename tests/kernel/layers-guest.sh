# layers-guest.sh: in the guest of layers.sh. Makes each device of the lists, has the requests of
# its list made, and keeps what the kernel's trace of bios says. Names of lists say what is made:
#
#   thin-NAME.CHUNK.FEATURES.list    CHUNK in sectors; FEATURES of zero, provisioned, shared, origin
#   crypt-NAME.SECTOR.list           SECTOR in bytes
set -eu
lists=$1 results=$2 data=$3 metadata=$4 origin=$5
mount -t tracefs tracefs /sys/kernel/tracing
cd /sys/kernel/tracing
echo 16384 >buffer_size_kb
echo 1 >events/block/block_bio_queue/enable
echo 16 >/proc/sys/vm/nr_hugepages

number() { # of a disk, or of a device of the mapper
    case $1 in
        /dev/*) cat "/sys/block/${1#/dev/}/dev" ;;
        *) dmsetup info -c --noheadings --separator : -o major,minor "$1" ;;
    esac
}
make() { # NAME TABLE
    dmsetup create --noudevsync "$1" --table "$2"
}
sectors() {
    cat "/sys/block/${1#/dev/}/size"
}
logical() {
    cat "/sys/block/${1#/dev/}/queue/logical_block_size"
}
largest() {
    echo $(($(cat "/sys/block/${1#/dev/}/queue/max_sectors_kb") * 1024))
}

bytes() {
    echo $(($(sectors "$1") * 512))
}

# run LIST NAME KEYS BENEATH: the requests of a list to a device of the mapper, and the trace of
# them, under the keys of the layer and what it stands on and shows.
run() {
    echo >trace
    device=/dev/dm-$(number "$2" | cut -d: -f2)
    "$lists/layers" "$device" trace_marker <"$lists/$1"
    {
        echo "= { $3 } over $4 $(logical "$data") shows $(bytes "$device") $(logical "$device")"
        echo "numbers $(number "$2") $(number "$data") $(number "$origin") $(bytes "$data")"
        cat trace
    } >"$results/${1%.list}.trace"
}

# The bytes that a scenario begins with are written by whole chunks, in order, so that chunk N of
# the volume is chunk N of the pool.
fill() { # NAME BYTES CHUNK
    dd if=/dev/zero of="/dev/dm-$(number "$1" | cut -d: -f2)" bs="$3" count=$(($2 / $3)) \
        oflag=direct 2>/dev/null
}

thin() { # LIST CHUNK FEATURES
    chunk=$2
    features="1 skip_block_zeroing" outside='' beneath=$(bytes "$data")
    keys="chunk = $((chunk * 512)), length = $volume"
    case $3 in
        *zero*) features=0 ;;
        *) keys="$keys, zero = false" ;;
    esac
    case $3 in *origin*)
        outside=$origin
        keys="$keys, origin = $beneath"
        beneath=$((beneath + $(bytes "$origin")))
        ;;
    esac
    dd if=/dev/zero of="$metadata" bs=4096 count=1 oflag=direct 2>/dev/null
    make pool "0 $(sectors "$data") thin-pool $metadata $data $chunk 0 $features"
    dmsetup message pool 0 'create_thin 0'
    make thin "0 $((volume / 512)) thin $(number pool) 0 $outside"
    case $3 in
        *provisioned*)
            fill thin $volume $((chunk * 512))
            keys="$keys, provisioned = true"
            ;;
        *shared*)
            fill thin $volume $((chunk * 512))
            keys="$keys, shared = true"
            dmsetup suspend --noudevsync thin
            dmsetup message pool 0 'create_snap 1 0'
            dmsetup resume --noudevsync thin
            ;;
    esac
    # The limit of the data device shows where a chunk is larger: in Linux 6.1.
    if [ "$(largest "dm-$(number thin | cut -d: -f2)")" -lt $((chunk * 512)) ]; then
        keys="$keys, max-request = $(largest "$data")"
    fi
    run "$1" thin "$keys" "$beneath"
    dmsetup remove --noudevsync thin
    dmsetup remove --noudevsync pool
}

# What a kernel before 6.11 does, which has no such limits.
limits() {
    [ -e /sys/module/dm_crypt/parameters/max_read_size ] || echo ", max-read = 0, max-write = 0"
}

crypt() { # LIST SECTOR
    cryptsetup luksFormat -q --type luks2 --sector-size "$2" --pbkdf pbkdf2 \
        --pbkdf-force-iterations 1000 --key-file "$lists/key" "$data"
    cryptsetup open --key-file "$lists/key" "$data" crypt
    run "$1" crypt "sector = $2$(limits)" "$(bytes "$data")"
    cryptsetup close crypt
}

volume=$(cat "$lists/volume")
for list in "$lists"/*.list; do
    list=$(basename "$list")
    kind=$(echo "$list" | cut -d. -f1 | cut -d- -f1)
    $kind "$list" "$(echo "$list" | cut -d. -f2)" "$(echo "$list" | cut -d. -f3)"
done
