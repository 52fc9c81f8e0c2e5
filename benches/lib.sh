# shellcheck shell=sh
# Shared by the scripts here: where the binary is, and images to look at.

export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"

# need BENCH TOOL=PACKAGE...: ends the bench, plainly, where a tool is not here.
need() {
    need_for=$1
    shift
    for tool; do
        command -v "${tool%%=*}" >/dev/null ||
            { echo "$need_for: skipped, ${tool%%=*} is not here: apt-get install ${tool#*=}" >&2; exit 0; }
    done
}

# The binary that is measured: $TRUELINE, or the release build.
trueline_binary() {
    trueline=${TRUELINE:-}
    if [ -z "$trueline" ]; then
        cargo build --quiet --release --package trueline
        trueline=${CARGO_TARGET_DIR:-target}/release/trueline
    fi
    trueline=$(realpath "$trueline")
}

# nanoseconds COMMAND...: of the whole command, once.
nanoseconds() {
    from=$(date +%s%N)
    "$@"
    echo $(($(date +%s%N) - from))
}

# per_read FEW MANY NAME...: "t NAME NANOSECONDS" of one read more of `reads NAME COUNT`. In seven rounds, all in turns, so that a slow moment of
# the machine falls on all alike; of each count the shortest run: one slow run would make a difference of two anything, and less than nothing.
# If one fails nothing is printed.
per_read() {
    few_reads=$1 many_reads=$2
    shift 2
    for _ in 1 2 3 4 5 6 7; do
        for name; do
            echo "few $name $(nanoseconds reads "$name" "$few_reads")"
            echo "many $name $(nanoseconds reads "$name" "$many_reads")"
        done
    done | awk -v reads=$((many_reads - few_reads)) '
        NF < 3 { failed = 1; exit }
        !(($1, $2) in least) || $3 < least[$1, $2] { least[$1, $2] = $3; names[$2] }
        END {
            if (failed) { print "a read failed" >"/dev/stderr"; exit 1 }
            for (name in names) print "t", name, (least["many", name] - least["few", name]) / reads
        }'
}

# small_image FILE: 256 MiB: a GPT with ext4, FAT16, swap and a bare partition; few blocks, so that there can be many.
small_image() {
    rm -f "$1"
    truncate -s 256M "$1"
    printf 'label: gpt\nstart=2048, size=262144\nsize=131072, type=uefi\nsize=65536, type=swap\nsize=32768\n' |
        sfdisk --quiet "$1"
    mkfs.ext4 -q -F -E offset=1048576,lazy_itable_init=1 -O ^has_journal "$1" 131072k >/dev/null 2>&1
    mkfs.vfat --offset 264192 -F 16 "$1" 65536 >/dev/null 2>&1
    truncate -s 32M "$1.swap"
    mkswap "$1.swap" >/dev/null 2>&1
    dd if="$1.swap" of="$1" bs=512 seek=395264 count=8 conv=notrunc status=none
    rm "$1.swap"
}

# large_image FILE: 1 TiB, sparse, with an ext4 that covers most of it.
large_image() {
    rm -f "$1"
    truncate -s 1T "$1"
    printf 'label: gpt\nstart=2048, size=2000000000\nsize=2048\n' | sfdisk --quiet "$1"
    mkfs.ext4 -q -F -E offset=1048576,lazy_itable_init=1,nodiscard -O ^has_journal "$1" 64m >/dev/null 2>&1
}

# rhel_image FILE: 2 GiB, sparse, as RHEL's installer lays a disk out: an ESP, /boot, and a physical volume whose group has root, home
# and swap. Status 1 without LVM or a loop device.
rhel_image() {
    command -v vgcreate >/dev/null || return 1
    rm -f "$1" "$1".*
    truncate -s 2G "$1"
    printf 'label: gpt\nsize=64MiB, type=uefi\nsize=256MiB, type=linux\ntype=lvm\n' | sfdisk --quiet "$1"
    truncate -s 1700M "$1.pv"
    device=$(losetup --find --show "$1.pv" 2>/dev/null) || return 1
    config="devices { filter=[\"a|^$device$|\", \"r|.*|\"] use_devicesfile=0 } backup { backup=0 archive=0 }"
    vgcreate -q -y --driverloaded n --config "$config" rhel "$device" >/dev/null 2>&1
    for volume in swap:128M home:512M root:1G; do
        lvcreate -q -y -an -Zn -Wn --driverloaded n --config "$config" -n "${volume%:*}" -L "${volume#*:}" rhel >/dev/null 2>&1
    done
    sync -f "$1.pv"
    losetup --detach "$device"
    dd if="$1.pv" of="$1" bs=1M seek=321 conv=notrunc,sparse status=none
    mkfs.vfat --offset 2048 "$1" 65536 >/dev/null 2>&1
    mkfs.ext4 -q -F -E offset=68157440,lazy_itable_init=1,nodiscard "$1" 256m >/dev/null 2>&1
    # The group's first extent is 1 MiB behind the start of its partition.
    truncate -s 128M "$1.swap"
    mkswap "$1.swap" >/dev/null 2>&1
    dd if="$1.swap" of="$1" bs=1M seek=322 conv=notrunc,sparse status=none
    mkfs.ext4 -q -F -E offset=$((450 << 20)),lazy_itable_init=1,nodiscard "$1" 512m >/dev/null 2>&1
    mkfs.ext4 -q -F -E offset=$((962 << 20)),lazy_itable_init=1,nodiscard "$1" 1g >/dev/null 2>&1
    rm "$1.pv" "$1.swap"
}

# twenty_kinds DIRECTORY: bare disks and the containers that qemu-img makes of them, each with an ext4 that is aligned, and one that is not.
twenty_kinds() {
    for kind in '2048 raw' '63 old'; do
        start=${kind% *} name=$1/${kind#* }
        truncate -s 64M "$name.img"
        printf 'label: dos\nstart=%s, size=81920\n' "$start" | sfdisk -q --force "$name.img"
        mkfs.ext4 -q -E offset=$((start * 512)) "$name.img" 40M
        for format in qcow2 vdi vpc vhdx vmdk qed parallels; do qemu-img convert -O $format "$name.img" "$name.$format"; done
        qemu-img convert -c -O qcow2 "$name.img" "$name-c.qcow2"
        qemu-img convert -O vmdk -o subformat=streamOptimized "$name.img" "$name-s.vmdk"
    done
}
