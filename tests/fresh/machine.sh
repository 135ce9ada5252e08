#!/usr/bin/env bash
# Makes a new machine: a debootstrap of a Debian release with nothing but git and make, and a clone
# of this repository. Then runs the steps of README.md and docs/install.md (steps.sh), or another
# script. As root; takes 20 minutes on an idle machine and more on a busy one.
#   tests/fresh/machine.sh SUITE FOLDER [SCRIPT [ARGUMENT ...]]
#     SUITE     bookworm, trixie
#     FOLDER    the folder of the machine. An existing one is replaced, unless SCRIPT is given
#   MIRROR      Debian's archive (http://deb.debian.org/debian)
#   CA          a file of certificates for pip, if the network has its own
#   SHARED      the reference data, mounted as the clone's ../shared; without it the machine has none
set -euo pipefail
suite=${1:?usage: machine.sh SUITE FOLDER [SCRIPT [ARGUMENT ...]]} folder=$(realpath -m "${2:?}")
here=$(cd "$(dirname "$0")" && pwd)
script=$(realpath "${3:-$here/steps.sh}")
shift $(($# > 3 ? 3 : $#))
[ "$(id -u)" = 0 ] || { echo "machine.sh: debootstrap and chroot need root" >&2; exit 1; }
if [ "$script" = "$here/steps.sh" ] && [ $# = 0 ] || [ ! -e "$folder/src/tare" ]; then
    [ ! -e "$folder/src/tare" ] || rm -rf --one-file-system "$folder"
    [ ! -e "$folder" ] || { echo "machine.sh: $folder exists and was not made by this script" >&2; exit 1; }
    debootstrap --variant=minbase --include=git,make,ca-certificates "$suite" "$folder" "${MIRROR:-http://deb.debian.org/debian}" > "$folder.log" 2>&1 ||
        { tail -n 3 "$folder.log" >&2; exit 1; }
    mkdir "$folder/src"
    git clone -q --no-hardlinks "$here/../.." "$folder/src/tare"
fi
[ -z "${CA:-}" ] || cp "$CA" "$folder/etc/ssl/certs/ca-certificates.crt"
cp "$script" "$folder/src/script.sh"
exec bash "$here/enter.sh" "$folder" "${SHARED:-}" bash /src/script.sh "$@"
