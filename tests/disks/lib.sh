# What a recipe may call besides the real tools: bytes for the disks that no tool here writes, and damage for those that
# one does. POSIX sh with od, awk, dd and gzip. `run.sh` reads it in before the recipe.
#
# Bytes are passed about as hexadecimal text without spaces, offsets in bytes.

# le BYTES VALUE...: hexadecimal, least significant byte first.
le() {
    le_width=$1
    shift
    for le_value; do
        le_at=0
        while [ "$le_at" -lt "$le_width" ]; do
            printf %02x $(((le_value >> (8 * le_at)) & 255))
            le_at=$((le_at + 1))
        done
    done
}

# be BYTES VALUE...: hexadecimal, most significant byte first.
be() {
    be_width=$1
    shift
    for be_value; do
        be_at=$be_width
        while [ "$be_at" -gt 0 ]; do
            be_at=$((be_at - 1))
            printf %02x $(((be_value >> (8 * be_at)) & 255))
        done
    done
}

# text STRING: hexadecimal.
text() {
    printf %s "$1" | od -An -v -tx1 | tr -d ' \n'
}

# put FILE OFFSET HEX...: writes bytes in place.
put() {
    put_file=$1 put_at=$2
    shift 2
    put_octal=$(printf %s "$*" | tr -d ' \n' | awk '{
        digits = "0123456789abcdef"
        for (i = 1; i < length($0); i += 2)
            printf "\\0%03o", (index(digits, substr($0, i, 1)) - 1) * 16 + index(digits, substr($0, i + 1, 1)) - 1
    }')
    printf %b "$put_octal" | dd of="$put_file" bs=64k oflag=seek_bytes seek="$put_at" conv=notrunc status=none
}

# bytes FILE OFFSET LENGTH: those bytes on stdout.
bytes() {
    dd if="$1" bs=64k iflag=skip_bytes,count_bytes skip="$2" count="$3" status=none
}

# number FILE OFFSET BYTES: the little-endian number there.
number() {
    od -An -v --endian=little -j "$2" -N "$3" -t "u$3" "$1" | tr -d ' \n'
}

# crc32: of stdin, in the byte order in which GPT and others keep it; gzip writes the same checksum behind its data.
crc32() {
    gzip -nc1 | tail -c 8 | head -c 4 | od -An -tx1 | tr -d ' \n'
}

# gpt_seal FILE HEADER SECTOR: both checksums of the GPT header at that byte, after a change to it or its table.
gpt_seal() {
    gpt_table=$(($(number "$1" $(($2 + 72)) 8) * $3))
    gpt_length=$(($(number "$1" $(($2 + 80)) 4) * $(number "$1" $(($2 + 84)) 4)))
    put "$1" $(($2 + 88)) "$(bytes "$1" "$gpt_table" "$gpt_length" | crc32)"
    put "$1" $(($2 + 16)) 00000000
    put "$1" $(($2 + 16)) "$(bytes "$1" "$2" 92 | crc32)"
}

# zlib FILE: on stdout as a zlib stream (RFC 1950): what gzip makes of it, with another head and sum.
zlib() {
    printf '\170\234'
    gzip -nc "$1" | tail -c +11 | head -c -8
    printf %b "$(od -An -v -tu1 "$1" | awk 'BEGIN { a = 1 }
        { for (i = 1; i <= NF; i++) { a = (a + $i) % 65521; b = (b + a) % 65521 } }
        END { printf "\\0%03o\\0%03o\\0%03o\\0%03o", int(b / 256), b % 256, int(a / 256), a % 256 }')"
}

# mbr FILE OFFSET [BOOT TYPE START SIZE]...: an MBR or EBR with up to four entries in sectors; BOOT and TYPE hexadecimal.
# The cylinder addresses are all ones, as for what lies past cylinder 1023.
mbr() {
    mbr_file=$1 mbr_at=$2 mbr_entry=446
    shift 2
    while [ $# -gt 0 ]; do
        put "$mbr_file" $((mbr_at + mbr_entry)) "$1" feffff "$2" feffff "$(le 4 "$3" "$4")"
        mbr_entry=$((mbr_entry + 16))
        shift 4
    done
    put "$mbr_file" $((mbr_at + 510)) 55aa
}

# label FILE OFFSET ORDER SECTORS TRACKS CYLINDERS TOTAL PARTITIONS [SECTOR]: an empty BSD disklabel as gpart writes it; ORDER is le or be.
# The calls of label_part and label_seal that follow are about this label.
label() {
    label_file=$1 label_at=$2 label_order=$3 label_parts=$8
    put "$1" "$2" "$("$3" 4 $((0x82564557)))"
    put "$1" $(($2 + 40)) "$("$3" 4 "${9:-512}" "$4" "$5" "$6" $(($4 * $5)) "$7")"
    put "$1" $(($2 + 72)) "$("$3" 2 3600)"
    put "$1" $(($2 + 132)) "$("$3" 4 $((0x82564557)))" "$("$3" 2 0 "$8")" "$("$3" 4 8192 0)"
}

# label_part INDEX SIZE OFFSET TYPE [FSIZE FRAG CPG]: entry INDEX (0 is `a`) of the 4.4BSD form.
label_part() {
    put "$label_file" $((label_at + 148 + 16 * $1)) \
        "$($label_order 4 "$2" "$3" "${5:-0}")" "$($label_order 1 "$4" "${6:-0}")" "$($label_order 2 "${7:-0}")"
}

# label_part_obsd INDEX SIZE OFFSET TYPE [FRAGBLOCK CPG]: entry INDEX of OpenBSD's version 1, with 48-bit numbers.
label_part_obsd() {
    put "$label_file" $((label_at + 148 + 16 * $1)) \
        "$($label_order 4 $(($2 & 0xffffffff)) $(($3 & 0xffffffff)))" \
        "$($label_order 2 $(($3 >> 32)) $(($2 >> 32)))" "$($label_order 1 "$4" "${5:-0}")" "$($label_order 2 "${6:-0}")"
}

# label_seal: the checksum: the exclusive or of all 16-bit words.
label_seal() {
    put "$label_file" $((label_at + 136)) 0000
    label_sum=0
    for label_word in $(bytes "$label_file" "$label_at" $((148 + 16 * label_parts)) | od -An -v --endian=little -tu2); do
        label_sum=$((label_sum ^ label_word))
    done
    put "$label_file" $((label_at + 136)) "$(le 2 "$label_sum")"
}

# ufs FILE OFFSET VERSION SECTORS BSIZE FSIZE FPG IPG: the superblock of an empty UFS1 or UFS2 in the provider that begins
# at OFFSET. Fragments per group and inodes per group are newfs's; the rest follows from them (fs.h, mkfs.c).
ufs() {
    ufs_frag=$(($5 / $6)) ufs_size=$(($4 * 512 / $6)) ufs_shift=0 ufs_bshift=0 ufs_fshift=0
    while [ $((1 << ufs_shift)) -lt "$ufs_frag" ]; do ufs_shift=$((ufs_shift + 1)); done
    while [ $((1 << ufs_bshift)) -lt "$5" ]; do ufs_bshift=$((ufs_bshift + 1)); done
    while [ $((1 << ufs_fshift)) -lt "$6" ]; do ufs_fshift=$((ufs_fshift + 1)); done
    if [ "$3" = 2 ]; then ufs_loc=65536 ufs_inode=256 ufs_magic=$((0x19540119)); else ufs_loc=8192 ufs_inode=128 ufs_magic=$((0x00011954)); fi
    ufs_up=$((ufs_frag - 1))
    ufs_sblkno=$(((ufs_loc + 8192 + $6 - 1) / $6)); ufs_sblkno=$(((ufs_sblkno + ufs_up) & ~ufs_up))
    ufs_cblkno=$(((8192 + $6 - 1) / $6)); ufs_cblkno=$((ufs_sblkno + ((ufs_cblkno + ufs_up) & ~ufs_up)))
    ufs_iblkno=$((ufs_cblkno + ufs_frag))
    ufs_dblkno=$((ufs_iblkno + $8 * ufs_inode / $6))
    ufs_ncg=$(((ufs_size + $7 - 1) / $7))
    ufs_cssize=$(((16 * ufs_ncg + $6 - 1) / $6 * $6))
    ufs_dsize=$((ufs_size - ufs_sblkno - ufs_ncg * (ufs_dblkno - ufs_sblkno) - ufs_cssize / $6))
    ufs_at=$(($2 + ufs_loc))
    put "$1" $((ufs_at + 8)) "$(le 4 "$ufs_sblkno" "$ufs_cblkno" "$ufs_iblkno" "$ufs_dblkno")"
    put "$1" $((ufs_at + 44)) "$(le 4 "$ufs_ncg" "$5" "$6" "$ufs_frag" 8 0 0 -"$5" -"$6" "$ufs_bshift" "$ufs_fshift" 4 $(($5 / 8)) "$ufs_shift" $((ufs_fshift - 9)))"
    put "$1" $((ufs_at + 104)) "$(le 4 $((1376 > $6 ? 1376 : $6)))"
    put "$1" $((ufs_at + 116)) "$(le 4 $(($3 == 2 ? $5 / 8 : $5 / 4)) $(($5 / ufs_inode)))"
    put "$1" $((ufs_at + 156)) "$(le 4 "$ufs_cssize" "$5")"
    put "$1" $((ufs_at + 184)) "$(le 4 "$8" "$7")"
    put "$1" $((ufs_at + 209)) 01
    put "$1" $((ufs_at + 1316)) "$(le 4 4)"
    if [ "$3" = 2 ]; then
        put "$1" $((ufs_at + 211)) 80
        put "$1" $((ufs_at + 860)) "$(le 4 "$5")"
        put "$1" $((ufs_at + 872)) "$(le 8 "$ufs_size")"
        put "$1" $((ufs_at + 992)) "$(le 8 65536 65536)"
        put "$1" $((ufs_at + 1080)) "$(le 8 "$ufs_size" "$ufs_dsize" "$ufs_dblkno")"
        put "$1" $((ufs_at + 1320)) "$(le 4 120)"
    else
        put "$1" $((ufs_at + 36)) "$(le 4 "$ufs_size" "$ufs_dsize")"
        put "$1" $((ufs_at + 152)) "$(le 4 "$ufs_dblkno")"
        put "$1" $((ufs_at + 1320)) "$(le 4 60 2)"
    fi
    put "$1" $((ufs_at + 1336)) "$(le 8 $(($5 - 1)) $(($6 - 1)))"
    put "$1" $((ufs_at + 1372)) "$(le 4 "$ufs_magic")"
}

# gstripe FILE NAME ID NUMBER MEMBERS CHUNK: FreeBSD's stripe metadata in the last sector. gconcat the same, without CHUNK.
gstripe() {
    set -- "$1" "$2" "$3" "$4" "$5" "$6" "$(stat -c %s "$1")"
    put "$1" $(($7 - 512)) "$(text GEOM::STRIPE)"
    put "$1" $(($7 - 496)) "$(le 4 3)" "$(text "$2")"
    put "$1" $(($7 - 476)) "$(le 4 "$3")" "$(le 2 "$4" "$5")" "$(le 4 "$6")"
    put "$1" $(($7 - 448)) "$(le 8 "$7")"
}
gconcat() {
    set -- "$1" "$2" "$3" "$4" "$5" "$(stat -c %s "$1")"
    put "$1" $(($6 - 512)) "$(text GEOM::CONCAT)"
    put "$1" $(($6 - 496)) "$(le 4 4)" "$(text "$2")"
    put "$1" $(($6 - 476)) "$(le 4 "$3")" "$(le 2 "$4" "$5")"
    put "$1" $(($6 - 452)) "$(le 8 "$6")"
}

# gmirror FILE NAME ID DISK MEMBERS: FreeBSD's mirror metadata in the last sector, slices of 4096 bytes, round robin by load.
gmirror() {
    set -- "$1" "$2" "$3" "$4" "$5" "$(stat -c %s "$1")"
    put "$1" $(($6 - 512)) "$(text GEOM::MIRROR)"
    put "$1" $(($6 - 496)) "$(le 4 4)" "$(text "$2")"
    put "$1" $(($6 - 476)) "$(le 4 "$3" "$4")" "$(le 1 "$5")" "$(le 4 0 1)" 00 "$(le 4 4096)" 02 "$(le 8 $(($6 - 512)))" "$(le 4 512)"
    put "$1" $(($6 - 401)) "$(le 8 "$6")"
    put "$1" $(($6 - 393)) "$(bytes "$1" $(($6 - 512)) 119 | md5sum | cut -c 1-32)"
}

# loop FILE [SECTOR]: a loop device over the file, its name on stdout; needs root. unloop DEVICE lets go of it.
loop() {
    losetup --find --show --sector-size "${2:-512}" "$1"
}
unloop() {
    sync -f "$1" 2>/dev/null || :
    # That it is gone already is as good.
    losetup --detach "$1" || ! losetup "$1" >/dev/null 2>&1
}

# guest OPTION... DISK...: a Debian kernel under QEMU, for what the kernel here cannot do: see tests/kernel/boot.sh.
guest() {
    "$TRUELINE_TESTS/kernel/boot.sh" "$@" >guest.out || { cat guest.out >&2; return 1; }
    rm -f guest.out
}

# members RECIPE: what kernel/sets.sh leaves of that set of the kernel's, as disk, disk1 and so on; from the directory that TRUELINE_SETS
# names, if it is there.
members() {
    made=${TRUELINE_SETS:-}
    if [ ! -d "$made/$1" ]; then
        made=$PWD/made
        "$TRUELINE_TESTS/kernel/sets.sh" "$made" "$1" >&2
    fi
    index=0
    while [ -e "$made/$1/disk$index.img" ]; do
        cp --sparse=always "$made/$1/disk$index.img" "disk${index#0}"
        index=$((index + 1))
    done
    rm -rf made
}

# without_data OFFSET [LENGTH]: those disks without their bytes from there on, where the pattern of their set is.
without_data() {
    for without_data_disk in disk*; do
        fallocate --punch-hole --offset "$1" --length "${2:-1G}" "$without_data_disk"
    done
}
