#!/usr/bin/env bash
# A new machine: a debootstrap of a Debian release with nothing but git and make, a clone of this repository, and then what README.md and docs/install.md promise
# (steps.sh), or another script. As root; takes 20 minutes on an idle machine and more on a busy one.
#   tests/fresh/machine.sh SUITE FOLDER [SCRIPT [ARGUMENT ...]]
#     SUITE     bookworm, trixie
#     FOLDER    where the machine is made. One that is there is made anew, unless SCRIPT is given
#   MIRROR      Debian's archive (http://deb.debian.org/debian)
#   CA          a file of certificates for pip, where the network has its own
#   SHARED      the reference data, mounted where the clone's ../shared is; without it the machine has none
set -euo pipefail
suite=${1:?usage: machine.sh SUITE FOLDER [SCRIPT [ARGUMENT ...]]} folder=$(realpath -m "${2:?}")
here=$(cd "$(dirname "$0")" && pwd)
script=$(realpath "${3:-$here/steps.sh}")
shift $(($# > 3 ? 3 : $#))
[ "$(id -u)" = 0 ] || { echo "machine.sh: debootstrap and chroot need root" >&2; exit 1; }
if [ "$script" = "$here/steps.sh" ] && [ $# = 0 ] || [ ! -e "$folder/src/tare" ]; then
    [ ! -e "$folder/src/tare" ] || rm -rf --one-file-system "$folder"
    [ ! -e "$folder" ] || { echo "machine.sh: $folder is there and is none of this script's machines" >&2; exit 1; }
    debootstrap --variant=minbase --include=git,make,ca-certificates "$suite" "$folder" "${MIRROR:-http://deb.debian.org/debian}" > "$folder.log" 2>&1 ||
        { tail -n 3 "$folder.log" >&2; exit 1; }
    mkdir "$folder/src"
    git clone -q --no-hardlinks "$here/../.." "$folder/src/tare"
fi
[ -z "${CA:-}" ] || cp "$CA" "$folder/etc/ssl/certs/ca-certificates.crt"
cp "$script" "$folder/src/script.sh"
exec bash "$here/enter.sh" "$folder" "${SHARED:-}" bash /src/script.sh "$@"
