#!/bin/sh
# sets.sh DIRECTORY [RECIPE...]
#
# Makes the sets of md arrays and LVM volumes that the recipes sets/NAME.sh describe (all of them
# if none is named; one that is named with its directory is read from there), with the Debian
# kernel that is installed here, booted by boot.sh.
# DIRECTORY/NAME/ has then:
#
#   disk0.img, disk1.img ...  the members, sparse, as that kernel left them after all was stopped
#   disks.txt                 their names there: DEVICE MAJOR:MINOR
#   expect.txt                what the devices held: DEVICE FIRST COUNT TAG, in sectors of 512
#                             bytes; pattern.c says how a sector names itself
#   sums.txt                  SHA256 LENGTH DEVICE of what is no pattern, in bytes
#   key                       the key file, of recipes with encrypted volumes
#   examine.txt               mdadm's words on the members, after the arrays were stopped
#   detail.txt, mdstat.txt    and on the arrays, before
#   pvs.json, pvsegs.json, vgs.json, lvs.json, VG.vg   LVM's words, lengths in sectors
#   VG-POOL_tmeta.xml, VG-POOL_cmeta.xml   the mapping of a thin pool or a cache, after
#   lsblk.json, dmtable.txt, dmstatus.txt, dminfo.txt, sysfs.txt, kernel.txt   the kernel's words
#   log.txt, status           what the recipe ran, and 0 if it did so to its end
#
# A recipe's head says which disks it is given: `# disks: 8M 8M 16M`, or files to copy. Recipes share a boot as far
# as disks can be attached.
#
# Exit status: 0, 1 if a recipe failed (the end of its log is printed), 2 if something to boot with
# is missing.
set -eu
PATH="$PATH:/usr/sbin:/sbin"
here=$(cd "$(dirname "$0")" && pwd)
missing() {
    echo "sets.sh: $*" >&2
    exit 2
}

[ $# -ge 1 ] || missing "usage: $(sed -n '2s/^# //p' "$0")"
# As many disks as fit on the one PCI bus of the machine; two carry the recipes and the results.
slots=24
programs='mdadm mdmon lvm dmsetup lsblk sfdisk mkfs.ext4 mkfs.xfs mkfs.vfat mkswap thin_dump cache_dump'
programs="$programs make-bcache cryptsetup"
for program in cc $programs; do command -v "$program" >/dev/null || missing "no $program"; done
modules='linear raid0 raid1 raid10 raid456 dm_mod dm_raid dm_mirror dm_thin_pool dm_snapshot'
modules="$modules dm_cache dm_cache_smq dm_writecache dm_integrity dm_crypt bcache"
modules="$modules xts cbc essiv sha256_generic algif_skcipher authenc hmac algif_aead"
modules="$modules ext4 xfs vfat nls_ascii crc32c_generic"
out=$1
shift
mkdir -p "$out"
out=$(cd "$out" && pwd)
if [ $# = 0 ]; then
    for recipe in "$here"/sets/*.sh; do set -- "$@" "$(basename "$recipe" .sh)"; done
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
mkdir -p "$work/oracle"
cc -O2 -o "$work/oracle/pattern" "$here/pattern.c" || missing "cc cannot build pattern.c"
cp -r "$here/sets" "$here/sets-guest.sh" "$work/oracle"
arguments=
for module in $modules; do arguments="$arguments -m $module"; done
for program in $programs; do arguments="$arguments -p $program"; done

# device NUMBER: a virtio disk's name in the guest.
device() {
    echo "/dev/vd$(echo abcdefghijklmnopqrstuvwxyz | cut -c$(($1 + 1)))"
}

# begin, boot: a batch of recipes, and its run.
begin() {
    batch='' disks='' number=2
    # shellcheck disable=SC2016 # the guest's
    echo 'PATH="$PATH:/oracle"' >"$work/oracle/run.sh"
}

failed=0
boot() {
    [ -n "$batch" ] || return 0
    tar -C "$work" -cf "$work/recipes" oracle
    rm -rf "$work/results" "$work/found"
    truncate -s 32M "$work/results"
    mkdir "$work/found"
    # shellcheck disable=SC2086 # words
    "$here/boot.sh" $arguments -r 'tar -xf /dev/vda -C / && mkdir /results' \
        -r 'sh /oracle/run.sh && tar -cf /dev/vdb -C /results .' \
        "$work/recipes" "$work/results,rw" $disks >"$work/said"
    tar -xf "$work/results" -C "$work/found"
    for made in $batch; do
        cp -r "$work/found/$made/." "$out/$made/"
        for image in "$out/$made"/disk*.img; do fallocate -d "$image"; done
        if [ "$(cat "$out/$made/status")" != 0 ]; then
            failed=1
            echo "sets.sh: $made failed:"
            tail -n 30 "$out/$made/log.txt"
        fi >&2
    done
}

begin
for recipe; do
    case $recipe in
        */*)
            cp "$recipe" "$work/oracle/sets/"
            recipe=$(basename "$recipe" .sh)
            ;;
    esac
    sizes=$(sed -n 's/^# disks: //p' "$work/oracle/sets/$recipe.sh")
    [ -n "$sizes" ] || missing "$recipe is no recipe, or says no disks"
    # shellcheck disable=SC2086 # words
    if [ $((number + $(echo $sizes | wc -w))) -gt $slots ]; then
        boot
        begin
    fi
    rm -rf "${out:?}/$recipe"
    mkdir "$out/$recipe"
    line="sh /oracle/sets-guest.sh /results $recipe" index=0
    for size in $sizes; do
        image=$out/$recipe/disk$index.img
        case $size in
            /*) cp --sparse=always "$size" "$image" ;;
            *) truncate -s "$size" "$image" ;;
        esac
        disks="$disks $image,rw"
        line="$line $(device $number)"
        number=$((number + 1)) index=$((index + 1))
    done
    batch="$batch $recipe"
    echo "$line" >>"$work/oracle/run.sh"
done
boot
exit $failed
