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
