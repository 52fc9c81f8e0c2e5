#!/bin/sh
# dist.sh: tries each package of target/dist in a clean root. `make dist-test` makes the packages first.
#
# A root has Debian's smallest set of packages; debootstrap makes it once, into target/roots, and a test has a copy.
# TRUELINE_ROOTS names the releases. Times are printed and decide nothing. At the end is a list of what was skipped.
set -eu
cd "$(dirname "$0")/.."
export LC_ALL=C
PATH="$PATH:/usr/sbin:/sbin"
mkdir -p target/roots
skipped=$PWD/target/dist-skipped.txt
: >"$skipped"
dist=$PWD/target/dist
roots=$PWD/target/roots
releases=${TRUELINE_ROOTS:-trixie bookworm bullseye}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
name=trueline-$version-x86_64-linux
deb=trueline_$version-1_amd64.deb
rpm=$dist/trueline-$version-1.x86_64.rpm
image=$dist/$name.oci.tar
work=$(mktemp -d)
trap 'umount "$roots/run/proc" 2>/dev/null || :; rm -rf --one-file-system "$work" "$roots/run"' EXIT

skip() { echo "skipped: $1" && echo "$1" >>"$skipped"; }
fail() {
    echo "tests/dist.sh: $1" >&2
    exit 1
}
# has TOOL WHAT: whether TOOL is here; else WHAT is skipped.
has() { command -v "$1" >/dev/null || { skip "$2: no $1"; return 1; }; }
root() { [ "$(id -u)" = 0 ] || { skip "$1: not root"; return 1; }; }
now() { date +%s%N; }
since() { awk -v from="$1" -v to="$(now)" 'BEGIN { printf "%.1f s\n", (to - from) / 1e9 }'; }
# verdict COMMAND...: makes a disk whose file system begins at sector 63, /disk.img of a root, and demands that it is
# found misaligned. Nothing but the program itself is needed for it.
verdict() {
    {
        "$@" part create -s mbr /disk.img
        "$@" part add -t freebsd -b 63 -s 32m /disk.img
        "$@" mkfs ufs '/disk.img#s1'
    } >"$work/said" 2>&1 || fail "no disk is made: $(cat "$work/said")"
    status=0
    "$@" check --for 512e /disk.img >"$work/said" || status=$?
    [ "$status" = 1 ] || fail "check ended with $status, not with 1"
    grep -q 'TL0001 s1: ufs starts at byte 32256 (LBA 63)' "$work/said" || fail "no misaligned file system: $(cat "$work/said")"
    grep 'misaligned  ' "$work/said"
}

echo "dist: checksums"
(cd "$dist" && sha256sum --quiet -c SHA256SUMS)

echo "dist: the archive"
mkdir "$work/local"
tar -C "$work/local" --strip-components=1 --zstd -xf "$dist/$name.tar.zst"
(cd "$work/local" && find . -type f | sed 's,^\./,,' | sort) >"$work/files"
grep -v '^#' packaging/files | diff - "$work/files" || fail "the archive is not what packaging/files lists"
if has mandoc "manual pages by mandoc"; then
    mandoc -T lint -W error "$work"/local/share/man/man1/*.1
fi
if has file "the program's linkage"; then
    file -b "$work/local/bin/trueline" | grep -q 'static.*stripped' || fail "not a stripped static program"
fi
# What a build leaves in a program of its machine: paths of sources and crates.
for path in "$PWD" "$HOME"; do
    ! grep -rqF "$path/" "$work/local" || fail "$path is in the archive"
done

echo "dist: the bills of materials"
for bill in "$dist/$name.cdx.json" "$dist/trueline-$version-python.cdx.json"; do
    jq -e '([.components[]."bom-ref"] + [.metadata.component."bom-ref"]) as $refs
        | ($refs | length > 100 and (unique | length) == length) and ([.dependencies[].dependsOn[]] - $refs == [])' \
        "$bill" >/dev/null || fail "the bill of materials $bill does not hold together"
done

if root "the program in an empty root"; then
    echo "dist: the program in an empty root"
    mkdir "$work/empty"
    cp "$work/local/bin/trueline" "$work/empty/"
    truncate -s 64M "$work/empty/disk.img"
    verdict chroot "$work/empty" /trueline
fi

echo "dist: the container image"
mkdir "$work/image"
tar -C "$work/image" -xf "$image"
for blob in "$work"/image/blobs/sha256/*; do
    [ "$(sha256sum <"$blob" | cut -d' ' -f1)" = "$(basename "$blob")" ] || fail "$blob has another digest"
done
if has skopeo "the container image by skopeo"; then
    skopeo inspect "oci-archive:$image" >"$work/inspected"
    jq -e --arg version "$version" '.Os == "linux" and .Architecture == "amd64" and (.Layers | length) == 1' "$work/inspected" >/dev/null ||
        fail "skopeo finds another image: $(cat "$work/inspected")"
    skopeo inspect --config "oci-archive:$image" | jq -e '.config.Entrypoint == ["/trueline"]' >/dev/null || fail "another entry point"
fi
if has umoci "the container image by umoci" && root "the container image by umoci"; then
    umoci unpack --image "$work/image:$version" "$work/bundle"
    truncate -s 64M "$work/bundle/rootfs/disk.img"
    verdict chroot "$work/bundle/rootfs" /trueline
fi

if has rpm2cpio "the rpm" && has cpio "the rpm" && has rpm "the rpm"; then
    echo "dist: the rpm"
    # Its own database: that of a Debian is empty, or belongs to root.
    rpm --dbpath "$work/rpmdb" -qlp "$rpm" | sort >"$work/listed"
    mkdir "$work/rpm"
    (cd "$work/rpm" && rpm2cpio "$rpm" | cpio -idm --quiet)
    (cd "$work/rpm" && find . -type f | sed 's,^\.,,' | sort) >"$work/files"
    [ -z "$(comm -13 "$work/listed" "$work/files")" ] || fail "files of the rpm are not listed"
    [ "$(wc -l <"$work/files")" = "$(grep -vc '^#' packaging/files)" ] || fail "the rpm has another number of files"
    cmp "$work/rpm/usr/bin/trueline" "$work/local/bin/trueline"
    # A system of rpm's alone: a database that is new, and no other file.
    if root "the rpm in an empty root"; then
        mkdir -p "$work/rpmroot"
        rpm --root "$work/rpmroot" --initdb
        rpm --root "$work/rpmroot" --install --nosignature "$rpm"
        truncate -s 64M "$work/rpmroot/disk.img"
        verdict chroot "$work/rpmroot" /usr/bin/trueline
        rpm --root "$work/rpmroot" --verify trueline
        rpm --root "$work/rpmroot" --erase trueline
        [ -z "$(find "$work/rpmroot" -path "$work/rpmroot/var/lib/rpm" -prune -o -name '*trueline*' -print)" ] ||
            fail "files of trueline are left by rpm"
    fi
fi

echo "dist: the wheel"
wheel=$(find "$dist" -name 'trueline-*.whl')
unzip -qo "$wheel" -d "$work/wheel"
for licence in LICENSE-MIT LICENSE-APACHE LICENSES-OF-CRATES; do
    [ -n "$(find "$work/wheel" -path "*.dist-info/licenses/$licence" -size +0)" ] || fail "the wheel has no $licence"
done
! grep -rqF -e "$PWD/" -e "$HOME/" "$work/wheel" || fail "a path of this machine is in the wheel"
# An environment with nothing else in it, and no network.
python3 -m venv "$work/venv"
"$work/venv/bin/pip" --quiet --disable-pip-version-check install --no-index "$wheel"
mkdir "$work/disks"
truncate -s 64M "$work/disks/disk.img"
"$work/local/bin/trueline" part create -s mbr "$work/disks/disk.img" >"$work/log"
"$work/local/bin/trueline" part add -t freebsd -b 63 -s 32m "$work/disks/disk.img" >"$work/log" 2>&1
"$work/local/bin/trueline" mkfs ufs "$work/disks/disk.img#s1" >"$work/log"
(cd "$work/disks" && "$work/venv/bin/python" -c '
import trueline
report = trueline.check("disk.img", for_="512e")
assert (report["verdict"], report["findings"][0]["rule"]) == ("misaligned", "TL0001"), report
')

echo "dist: the crates, each built of what is packed"
cargo publish --workspace --exclude trueline-python --dry-run --allow-dirty --quiet 2>"$work/log" || fail "$(cat "$work/log")"

if has lintian "the Debian package by lintian"; then
    echo "dist: lintian"
    lintian --allow-root --fail-on error,warning --tag-display-limit 0 "$dist/$deb"
fi

has debootstrap "clean roots" && root "clean roots" || releases=
for release in $releases; do
    if [ ! -d "$roots/$release" ]; then
        echo "dist: a root of $release"
        rm -rf "$roots/$release.new"
        if ! debootstrap --variant=minbase "$release" "$roots/$release.new" >"$work/log" 2>&1; then
            skip "the Debian package on $release: debootstrap: $(tail -n 1 "$work/log")"
            continue
        fi
        rm -f "$roots/$release.new"/var/cache/apt/archives/*.deb
        mv "$roots/$release.new" "$roots/$release"
    fi
    echo "dist: the Debian package on $release"
    rm -rf "$roots/run"
    cp -a --reflink=auto "$roots/$release" "$roots/run"
    mount -t proc proc "$roots/run/proc"
    cp "$dist/$deb" "$roots/run/tmp/"
    in_root() { chroot "$roots/run" env DEBIAN_FRONTEND=noninteractive HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
    started=$(now)
    if in_root sh -c "apt-get -q update && apt-get -q -y install /tmp/$deb" >"$work/log" 2>&1; then
        echo "installed with what it recommends"
        [ -x "$roots/run/sbin/mkfs.xfs" ] || fail "what it recommends is not there"
    else
        skip "what the Debian package recommends, on $release: apt cannot have it: $(tail -n 1 "$work/log")"
        in_root dpkg -i "/tmp/$deb" >/dev/null
    fi
    truncate -s 64M "$roots/run/disk.img"
    verdict in_root trueline
    echo "from the installation to the verdict: $(since "$started")"
    in_root dpkg --verify trueline
    in_root apt-get -q -y purge trueline >/dev/null 2>&1
    [ -z "$(find "$roots/run/usr" "$roots/run/etc" -name '*trueline*')" ] || fail "files of trueline are left"
    umount "$roots/run/proc"
done
sh tests/skipped.sh "$skipped"
