#!/bin/sh
# deb/build.sh STAGE VERSION DIRECTORY: the Debian package of the staged tree, into DIRECTORY.
#
# Run by packaging/dist.sh, which sets SOURCE_DATE_EPOCH. Nothing runs when it is installed: no unit is enabled,
# and dpkg's own triggers see to manual pages.
set -eu
stage=$1 version=$2-1 out=$3
here=$(dirname "$0")
# The project names no address. A packager's own is theirs to give.
maintainer=${TRUELINE_MAINTAINER:-The Trueline developers <trueline@trueline.invalid>}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"

mkdir -p "$root/usr" "$root/DEBIAN" "$root/usr/share/lintian/overrides"
cp -R "$stage/bin" "$stage/lib" "$stage/share" "$root/usr/"
sed -i 's,/usr/local/,/usr/,' "$root"/usr/lib/systemd/system/*.service
# Debian's places, where they are not those of /usr/local.
mkdir -p "$root/usr/share/zsh"
mv "$root/usr/share/zsh/site-functions" "$root/usr/share/zsh/vendor-completions"
doc=$root/usr/share/doc/trueline
rm "$doc/LICENSE-MIT" "$doc/LICENSE-APACHE"
mv "$doc/CHANGELOG.md" "$doc/changelog"
cp "$here/copyright" "$doc/copyright"
cp "$here/lintian-overrides" "$root/usr/share/lintian/overrides/trueline"
cat >"$doc/changelog.Debian" <<END
trueline ($version) unstable; urgency=medium

  * Made by the project from its own sources; changelog.gz says what changed
    for users.

 -- $maintainer  $(date -R -d "@$SOURCE_DATE_EPOCH")
END
gzip -9n "$doc/changelog" "$doc/changelog.Debian" "$doc/LICENSES-OF-CRATES" "$doc/LICENSES-OF-RUST.html" "$root"/usr/share/man/man1/*.1
size=$(find "$root/usr" -type f -printf '%s\n' | awk '{ kib += int(($1 + 1023) / 1024) } END { print kib }')
sed "s/@VERSION@/$version/; s/@SIZE@/$size/; s/@MAINTAINER@/$maintainer/" "$here/control" >"$root/DEBIAN/control"
(cd "$root" && find usr -type f | sort | xargs md5sum) >"$root/DEBIAN/md5sums"
find "$root" -type d -exec chmod 755 {} +
find "$root" -type f ! -path '*/bin/*' -exec chmod 644 {} +
find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +

# xz, which dpkg of every release reads; one thread, as the bytes depend on how many there are.
DPKG_DEB_THREADS_MAX=1 dpkg-deb --root-owner-group -Zxz --build "$root" "$out/trueline_${version}_amd64.deb" >/dev/null
