#!/bin/sh
# grown.sh IMAGE PARTITION SIZE: whether a cloud image is aligned, as it is and as its instances will
# have it, once cloud-init has grown a partition of it on a disk of SIZE. The last step of a build.
#
#   grown.sh cloud.img 1 20G
#
# growpart moves the end of a partition, never its start: one that begins off the grain stays off it
# on every instance. A partition that another one follows does not grow, and that is a failure here.
set -eu
image=$1 partition=$2 size=$3
trueline check --strict "$image"
# As on an instance, the disk is larger than the image. The copy is sparse.
grown=$(mktemp "$image.grown.XXXXXX")
trap 'rm -f "$grown"' EXIT
cp --sparse=always "$image" "$grown"
truncate -s "$size" "$grown"
growpart "$grown" "$partition"
trueline check --strict "$grown"
