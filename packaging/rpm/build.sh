#!/bin/sh
# rpm/build.sh STAGE VERSION DIRECTORY: the rpm of the staged tree, into DIRECTORY.
#
# Run by packaging/dist.sh, which sets SOURCE_DATE_EPOCH. The host that built it and the time are not in it; xz is
# read by every rpm, and one thread gives one result.
set -eu
stage=$1 version=$2 out=$3
here=$(cd "$(dirname "$0")" && pwd)
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT

rpmbuild -bb --quiet --target x86_64-linux \
    --define "_topdir $top" --define "_rpmdir $out" --define "_rpmfilename %{name}-%{version}-%{release}.%{_arch}.rpm" \
    --define "_buildhost reproducible" --define "use_source_date_epoch_as_buildtime 1" \
    --define "clamp_mtime_to_source_date_epoch 1" --define "_binary_payload w6.xzdio" \
    --define "stage $stage" --define "program_version $version" "$here/trueline.spec"
