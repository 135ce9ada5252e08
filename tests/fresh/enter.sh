#!/usr/bin/env bash
# Runs a command in a folder with a system, as root: it has separate /proc, /sys, /dev and process
# ids, and mounts and processes end with the command.
#   tests/fresh/enter.sh FOLDER SHARED COMMAND...      SHARED: a folder to mount as /src/shared; '':
#                                                      none
set -euo pipefail
[ $# -ge 3 ] || { echo "usage: enter.sh FOLDER SHARED COMMAND..." >&2; exit 1; }
exec unshare --mount --pid --fork --kill-child --propagation private bash -euc '
root=$1 shared=$2; shift 2
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"; mount -t sysfs sys "$root/sys"; mount --rbind /dev "$root/dev"; mount -t tmpfs tmpfs "$root/dev/shm"
cat /etc/resolv.conf > "$root/etc/resolv.conf"
if [ -n "$shared" ]; then mkdir -p "$root/src/shared"; mount --bind -o ro "$shared" "$root/src/shared"; fi
exec chroot "$root" env -i HOME=/root TERM=dumb LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"' machine "$@"
