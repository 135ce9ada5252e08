#!/usr/bin/env bash
# Makes a release twice from the commit HEAD, in two folders with names of different lengths, under
# another umask, time zone, language and number of jobs, and compares the bytes. It names the members
# of files that differ. Takes two whole builds.
#   tests/fresh/twice.sh FOLDER     FOLDER: for both; replaced
set -euo pipefail
folder=$(realpath -m "${1:?usage: twice.sh FOLDER}")
source=$(cd "$(dirname "$0")/../.." && pwd)
[ ! -e "$folder" ] || [ -e "$folder/twice" ] || { echo "twice.sh: $folder exists and was not made by this script" >&2; exit 1; }
rm -rf --one-file-system "$folder"
mkdir -p "$folder/one" "$folder/another folder"
: > "$folder/twice"
export CCACHE_DISABLE=1 # a cache would hand the first build's objects to the second
commit=$(git -C "$source" rev-parse HEAD)
release() { # CHECKOUT
    git clone -q --no-hardlinks "$source" "$1"
    git -C "$1" checkout -q "$commit"
    local began=$SECONDS
    bash "$1/packaging/release.sh" "$1/build-release" || exit 1
    echo "$1: $((SECONDS - began)) s"
}
(umask 022 && TZ=UTC LANG=C JOBS=1 release "$folder/one/tare")
(umask 077 && TZ=Asia/Tokyo LANG=C.UTF-8 JOBS=2 release "$folder/another folder/tare-checked-out-again")
one=$folder/one/tare/build-release two="$folder/another folder/tare-checked-out-again/build-release"
unpack() { # FILE FOLDER
    mkdir -p "$2"
    case $1 in
    *.whl) python3 -m zipfile -e "$1" "$2" ;;
    *.tar.gz) tar -xf "$1" -C "$2" ;;
    *.deb) dpkg-deb -R "$1" "$2" ;;
    *) cp "$1" "$2" ;;
    esac
}
different=0
while read -r _ name; do
    if [ -e "$two/$name" ] && cmp -s "$one/$name" "$two/$name"; then
        echo "same       $name"
        continue
    fi
    different=1
    echo "DIFFERENT  $name"
    [ -e "$two/$name" ] || continue
    unpack "$one/$name" "$folder/unpacked-1/$name"
    unpack "$two/$name" "$folder/unpacked-2/$name"
    diff -rq --no-dereference "$folder/unpacked-1/$name" "$folder/unpacked-2/$name" || true
done < "$one/SHA256SUMS"
[ "$different" = 0 ] && cmp "$one/SHA256SUMS" "$two/SHA256SUMS" && echo "two builds, the same bytes"
