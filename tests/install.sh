#!/bin/sh
# install.sh [dist|site]: installs the programs the tests use beyond Rust, where that may be done; else says what will be
# skipped. With `dist`, those that make packages and try them; with `site`, those that render the documents.
#
# Each line below is a Debian package and the programs of it that are used. Nothing is done where all of them are here.
# Some of them are a kernel or have hooks that make the initial ramdisk anew (nbd-client, mdadm, lvm2), so packages
# are installed only in a container, in CI (CI=true), or with TRUELINE_INSTALL=1. TRUELINE_INSTALL=0 forbids
# it there too. Programs of cargo's go into target/tools.
set -eu
PATH="$PATH:/usr/sbin:/sbin"
wanted='
fdisk               sfdisk
gdisk               sgdisk
parted              parted
util-linux          blkid losetup lsblk mkswap partx wipefs
bsdextrautils       hexdump
e2fsprogs           mke2fs debugfs e2fsck
xfsprogs            mkfs.xfs
btrfs-progs         mkfs.btrfs
dosfstools          mkfs.fat fsck.fat
mtools              mcopy mdir mdel mattrib
exfatprogs          mkfs.exfat
ntfs-3g             mkntfs ntfs-3g ntfsfix
f2fs-tools          mkfs.f2fs
erofs-utils         mkfs.erofs
gfs2-utils          mkfs.gfs2
ocfs2-tools         mkfs.ocfs2
hfsutils            hformat
reiser4progs        mkfs.reiser4
nilfs-tools         mkfs.nilfs2
genromfs            genromfs
jfsutils            mkfs.jfs
reiserfsprogs       mkfs.reiserfs
makefs              makefs
mdadm               mdadm
drbd-utils          drbdmeta
lvm2                pvcreate
dmsetup             dmsetup
thin-provisioning-tools thin_dump cache_dump
cryptsetup-bin      cryptsetup
bcache-tools        make-bcache
squashfs-tools      mksquashfs
xorriso             xorriso
qemu-utils          qemu-img qemu-io
libnbd-bin          nbdinfo nbdcopy nbdfuse
python3-libnbd      nbdsh
nbd-client          nbd-client
fio                 fio
blktrace            blkparse
strace              strace
sqlite3             sqlite3
postgresql          pg_ctlcluster pgbench
zsh                 zsh
fish                fish
openssl             openssl
curl                curl
qemu-system-x86     qemu-system-x86_64
grub-common         grub-mkimage
extlinux            extlinux
debootstrap         debootstrap
syslinux            syslinux
busybox-static      busybox
cpio                cpio
kmod                modprobe
xz-utils            xz
zstd                zstd
bzip2               bzip2
lz4                 lz4
7zip                7zz
android-sdk-libsparse-utils img2simg
ewf-tools           ewfacquire ewfexport
genimage            genimage
cloud-guest-utils   growpart
ansible-core        ansible-playbook
kiwi                kiwi-ng
pre-commit          pre-commit
jq                  jq
chromium            chromium
'
wanted_dist='
musl-tools          musl-gcc
binutils            strip
jq                  jq
zstd                zstd
rpm                 rpm rpmbuild
rpm2cpio            rpm2cpio
cpio                cpio
lintian             lintian
mandoc              mandoc
file                file
unzip               unzip
skopeo              skopeo
umoci               umoci
debootstrap         debootstrap
'
wanted_site='
python3             python3
'
# A container or a machine of CI's is made anew; what a package's hooks do to it is lost with it.
may_install() {
    case ${TRUELINE_INSTALL:-} in
        0) return 1 ;;
        ?*) return 0 ;;
    esac
    [ "${CI:-}" = true ] || [ -e /.dockerenv ] || [ -e /run/.containerenv ] || [ -n "${container:-}" ]
}

case ${1:-} in
    dist) wanted=$wanted_dist ;;
    site) wanted=$wanted_site ;;
esac
missing=$(echo "$wanted" | while read -r package programs; do
    for program in $programs; do
        command -v "$program" >/dev/null || { echo "$package"; break; }
    done
done)
if [ -z "${1:-}" ]; then
    # The guest's kernel is a file, not a program.
    ls /boot/vmlinuz-*-amd64 >/dev/null 2>&1 || missing="$missing linux-image-amd64"
    # So are boot loaders.
    [ -e /usr/lib/grub/i386-pc/boot.img ] || missing="$missing grub-pc-bin"
    [ -e /usr/lib/grub/x86_64-efi/linux.mod ] || missing="$missing grub-efi-amd64-bin"
    [ -e /usr/share/OVMF/OVMF_CODE_4M.fd ] || missing="$missing ovmf"
    [ -e /usr/lib/syslinux/mbr/mbr.bin ] || missing="$missing syslinux-common"
fi
# A Python that makes no environments lacks a package of its own.
[ "${1:-}" = site ] || python3 -c 'import ensurepip' 2>/dev/null || missing="$missing python3-venv"
missing=$(echo "$missing" | tr "\n" " " | sed "s/ *$//")

if [ -z "$missing" ]; then
    :
elif ! may_install; then
    echo "install.sh: nothing is installed on this machine unless TRUELINE_INSTALL=1 says so: the tests that need these packages are skipped: $missing"
    echo "install.sh: they are:  apt-get install --no-install-recommends $missing"
elif [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "install.sh: apt-get install $missing"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -q update || :
    # One by one if not all at once: a package this release does not have must not keep the others away.
    # shellcheck disable=SC2086 # a list of names
    apt-get -q -y --no-install-recommends install $missing || for package in $missing; do
        apt-get -q -y --no-install-recommends install "$package" || echo "install.sh: $package cannot be installed; tests that need it are skipped"
    done
else
    echo "install.sh: not root, or no apt-get: the tests that need these packages are skipped: $missing"
fi

if [ "${1:-}" = dist ]; then
    target=x86_64-unknown-linux-musl
    if [ ! -d "$(rustc --print target-libdir --target "$target")" ] && may_install; then
        echo "install.sh: rustup target add $target"
        rustup target add "$target" || echo "install.sh: Rust for $target cannot be installed; no packages are made"
    fi
fi

# What follows goes into the build directory: a checkout leaves nothing in a home directory.
cd "$(dirname "$0")/.."
PATH="$PWD/target/tools/bin:$PATH"
# python MODULES: the modules of Python that are named, in an environment of their own.
python() {
    [ ! -x target/python/bin/maturin ] && may_install || return 0
    echo "install.sh: into target/python: $*"
    python3 -m venv target/python && target/python/bin/pip --quiet --disable-pip-version-check install "$@"
}
if [ "${1:-}" = dist ]; then
    python maturin || echo "install.sh: maturin cannot be installed; no packages are made"
    exit 0
fi
if [ "${1:-}" = site ]; then
    if ! command -v mdbook >/dev/null && may_install; then
        echo "install.sh: mdbook is built into target/tools, which takes some minutes"
        cargo install --quiet --locked --root target/tools --no-default-features --features search --version '^0.4' mdbook ||
            echo "install.sh: mdbook cannot be installed; no site is made"
    fi
    exit 0
fi
if ! cargo deny --version >/dev/null 2>&1; then
    echo "install.sh: cargo-deny is built into target/tools, which takes some minutes"
    cargo install --quiet --locked --root target/tools cargo-deny || echo "install.sh: cargo-deny cannot be installed; the licence check is skipped"
fi
if cargo +nightly --version >/dev/null 2>&1 && ! cargo +nightly fuzz --version >/dev/null 2>&1; then
    echo "install.sh: cargo-fuzz is built into target/tools, which takes a minute"
    cargo install --quiet --locked --root target/tools cargo-fuzz || echo "install.sh: cargo-fuzz cannot be installed; fuzzing is skipped"
fi

# The Python package is tested with what its users have beside it.
python maturin pyarrow dask ray mypy kubernetes-validate ||
    echo "install.sh: not all of the modules can be installed; the Python package is not tested"
