#!/bin/sh
# program.sh ROOT PROGRAM [PLACE]
#
# Puts a program into a root directory with the shared libraries that it is linked with (busybox has some, busybox-static
# none): each where it is here, the program at PLACE if that is given.
set -eu
root=$1
for name in ldd "$2"; do
    program=$(command -v "$name") || { echo "program.sh: no $name" >&2; exit 2; }
done
put() { # FILE PLACE
    mkdir -p "$root$(dirname "$2")"
    cp -L "$1" "$root$2"
}
put "$program" "${3:-$program}"
# Of a static program, ldd says so and fails.
for library in $(ldd "$program" 2>/dev/null | grep -o '/[^ ]*'); do
    put "$library" "$library"
done
