#!/usr/bin/env bash
# A new machine: a debootstrap of a Debian release with nothing but git and make, a clone of this repository, and then what README.md and docs/install.md promise
# (steps.sh), or another script. As root; takes 20 minutes on an idle machine and more on a busy one.
#   tests/fresh/machine.sh SUITE FOLDER [SCRIPT]     SUITE: bookworm, trixie. FOLDER is made anew, unless it holds such a machine and SCRIPT is given
#   MIRROR    Debian's archive (http://deb.debian.org/debian)
#   CA        a file of certificates for pip, where the network has its own
#   SHARED    the reference data, mounted where the clone's ../shared is; without it the machine has none
set -euo pipefail
suite=${1:?usage: machine.sh SUITE FOLDER [SCRIPT]} folder=$(realpath -m "${2:?}") script=${3:-}
here=$(cd "$(dirname "$0")" && pwd)
[ "$(id -u)" = 0 ] || { echo "machine.sh: debootstrap and chroot need root" >&2; exit 1; }
if [ -z "$script" ] || [ ! -e "$folder/src/tare" ]; then
    [ ! -e "$folder/src/tare" ] || rm -rf --one-file-system "$folder"
    [ ! -e "$folder" ] || { echo "machine.sh: $folder is there and is none of this script's machines" >&2; exit 1; }
    debootstrap --variant=minbase --include=git,make,ca-certificates "$suite" "$folder" "${MIRROR:-http://deb.debian.org/debian}" > "$folder.log" 2>&1 ||
        { tail -n 3 "$folder.log" >&2; exit 1; }
    mkdir "$folder/src"
    git clone -q --no-hardlinks "$here/../.." "$folder/src/tare"
fi
[ -z "${CA:-}" ] || cp "$CA" "$folder/etc/ssl/certs/ca-certificates.crt"
cp "${script:-$here/steps.sh}" "$folder/src/script.sh"
# mounts and processes of the machine end with this command
exec unshare --mount --pid --fork --propagation private bash -euc '
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"; mount -t sysfs sys "$1/sys"; mount --rbind /dev "$1/dev"; mount -t tmpfs tmpfs "$1/dev/shm"
cat /etc/resolv.conf > "$1/etc/resolv.conf"
if [ -n "$2" ]; then mkdir -p "$1/src/shared"; mount --bind -o ro "$2" "$1/src/shared"; fi
exec chroot "$1" env -i HOME=/root TERM=dumb LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash /src/script.sh' machine "$folder" "${SHARED:-}"
