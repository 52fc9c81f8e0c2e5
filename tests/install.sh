#!/bin/sh
# install.sh: installs the programs the tests use beyond Rust, where that may be done; else says what will be skipped.
#
# Each line below is a Debian package and the programs of it that are used. Nothing is done where all of them are here.
set -eu
PATH="$PATH:/usr/sbin:/sbin"
wanted='
fdisk               sfdisk
gdisk               sgdisk
parted              parted
util-linux          blkid losetup mkswap wipefs lsblk
bsdextrautils       hexdump
e2fsprogs           mke2fs
xfsprogs            mkfs.xfs
btrfs-progs         mkfs.btrfs
dosfstools          mkfs.fat
exfatprogs          mkfs.exfat
ntfs-3g             mkntfs
f2fs-tools          mkfs.f2fs
makefs              makefs
mdadm               mdadm
lvm2                pvcreate
cryptsetup-bin      cryptsetup
bcache-tools        make-bcache
squashfs-tools      mksquashfs
xorriso             xorriso
qemu-utils          qemu-img
qemu-system-x86     qemu-system-x86_64
busybox-static      busybox
cpio                cpio
kmod                modprobe
xz-utils            xz
zstd                zstd
'
missing=$(echo "$wanted" | while read -r package programs; do
    for program in $programs; do
        command -v "$program" >/dev/null || { echo "$package"; break; }
    done
done)
# The guest's kernel is a file, not a program.
ls /boot/vmlinuz-*-amd64 >/dev/null 2>&1 || missing="$missing linux-image-amd64"
missing=$(echo $missing)
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "install.sh: apt-get install $missing"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -q update || :
    # One by one if not all at once: a package this release does not have must not keep the others away.
    apt-get -q -y --no-install-recommends install $missing || for package in $missing; do
        apt-get -q -y --no-install-recommends install "$package" || echo "install.sh: $package cannot be installed; tests that need it are skipped"
    done
else
    echo "install.sh: not root, or no apt-get: the tests that need these packages are skipped: $missing"
fi
