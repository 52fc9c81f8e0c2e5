#!/bin/sh
# container/build.sh STAGE VERSION DIRECTORY: a container image from scratch, as a tar with an OCI layout.
#
# Run by packaging/dist.sh, which sets SOURCE_DATE_EPOCH. No daemon and no base: one layer with the program and the
# licences of what is in it. Digests are of the bytes that are written here, so the same tree gives the same image.
set -eu
stage=$1 version=$2 out=$3
layout=$(mktemp -d)
trap 'rm -rf "$layout"' EXIT
chmod 755 "$layout"
blobs=$layout/blobs/sha256
mkdir -p "$blobs" "$layout/root/usr/share/doc" "$layout/root/tmp"
created=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)

archive() {
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --format=gnu -cf - "$@"
}
# blob: puts its input among the blobs and prints its digest.
blob() {
    cat >"$layout/blob"
    set -- "$(sha256sum <"$layout/blob" | cut -d' ' -f1)"
    mv "$layout/blob" "$blobs/$1"
    echo "$1"
}
size() { stat -c %s "$blobs/$1"; }

cp "$stage/bin/trueline" "$layout/root/trueline"
cp -R "$stage/share/doc/trueline" "$layout/root/usr/share/doc/"
rm "$layout"/root/usr/share/doc/trueline/*.md
# Sockets, journals and images of a stack in memory go there.
chmod 1777 "$layout/root/tmp"
archive -C "$layout/root" trueline tmp usr >"$layout/layer"
unpacked=$(sha256sum <"$layout/layer" | cut -d' ' -f1)
layer=$(gzip -9n <"$layout/layer" | blob)

config=$(blob <<END
{"created":"$created","architecture":"amd64","os":"linux","config":{"Entrypoint":["/trueline"],"Cmd":["--help"],"Env":["PATH=/"]},"rootfs":{"type":"layers","diff_ids":["sha256:$unpacked"]},"history":[{"created":"$created","created_by":"packaging/container/build.sh"}]}
END
)
manifest=$(blob <<END
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:$config","size":$(size "$config")},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"sha256:$layer","size":$(size "$layer")}],"annotations":{"org.opencontainers.image.title":"trueline","org.opencontainers.image.description":"Alignment of every layer of block storage: verdicts, costs, fixes","org.opencontainers.image.version":"$version","org.opencontainers.image.licenses":"MIT OR Apache-2.0","org.opencontainers.image.created":"$created"}}
END
)
cat >"$layout/index.json" <<END
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:$manifest","size":$(size "$manifest"),"platform":{"architecture":"amd64","os":"linux"},"annotations":{"org.opencontainers.image.ref.name":"$version"}}]}
END
printf '{"imageLayoutVersion":"1.0.0"}' >"$layout/oci-layout"
chmod 644 "$layout/index.json" "$layout/oci-layout" "$blobs"/*
archive -C "$layout" blobs index.json oci-layout >"$out/trueline-$version-x86_64-linux.oci.tar"
