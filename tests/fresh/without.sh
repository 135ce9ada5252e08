#!/usr/bin/env bash
# Removes each package of tools/needs.list in turn and checks that its absence is reported: by the
# check at the start of `make test` as a user who may not install packages, by CMake, and by tare
# doctor. Prints a table; exit status 1 when the first one does not name the package.
#   tests/fresh/machine.sh SUITE FOLDER tests/fresh/without.sh      FOLDER: a machine in which
#                                                                   steps.sh has built
cd /src/tare || exit 1
export DEBIAN_FRONTEND=noninteractive
get() { apt-get install -y -qq --no-install-recommends "$@" > /dev/null 2>&1; }
packages=$(sh tools/needs.sh --packages test)
apt-get update -qq
# shellcheck disable=SC2086 # a list of words
get $packages || exit 1
[ -x build/tare ] || make > /dev/null || exit 1
id user > /dev/null 2>&1 || useradd user
# Some packages only name others that they bring along.
brings() {
    case $1 in
    python3) echo python3-minimal ;;
    python3-venv) dpkg-query -W -f '${Package}\n' 'python3.*-venv' ;;
    pkg-config) dpkg-query -W -f '${Package}\n' 'pkgconf*' ;;
    esac 2> /dev/null
}
row() { printf '%-17s | %-30s | %-5s | %s\n' "$@"; }
status=0
row package 'make test' CMake 'tare doctor'
for package in $packages; do
    gone="$package $(brings "$package")"
    # shellcheck disable=SC2086
    dpkg --remove --force-depends --force-remove-essential $gone > /dev/null 2>&1
    chroot --userspec=user / sh -c 'cd /src/tare && sh tools/needs.sh test' > /tmp/needs.txt 2>&1
    made=none
    if command -v cmake > /dev/null; then
        cmake -S . -B /tmp/made -DTARE_COMPLETE=ON -DBUILD_TESTING=ON > /tmp/cmake.txt 2>&1 && made=goes || made=stops
        rm -rf /tmp/made
        ! grep -qF "$package" /tmp/cmake.txt || made=named
    fi
    build/tare doctor > /tmp/doctor.txt 2>&1
    asked=$(sed -n "s/^ *$package  *\([a-zA-Z].*\)/\1/p" /tmp/needs.txt | cut -c -30)
    [ -n "$asked" ] || { status=1 asked="NOT NAMED: $(head -n 1 /tmp/needs.txt)"; }
    row "$package" "$asked" "$made" "$(grep -F "$package" /tmp/doctor.txt | head -n 1 | cut -c -90)"
    # shellcheck disable=SC2086
    get $gone || { echo "$package cannot be installed again"; exit 1; }
done
exit $status
