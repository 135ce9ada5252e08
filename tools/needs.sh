#!/bin/sh
# Checks for the packages in tools/needs.list; installs missing ones with apt-get if that is allowed,
# otherwise prints the command to run.
#   tools/needs.sh build|test|deb|ci all packages of the set
#   tools/needs.sh --packages SET    only prints the packages of the set for this release, one per line
#   tools/needs.sh --markdown SET    only prints the table of docs/install.md
#   tools/needs.sh --missing SET     only prints missing packages and their purpose, one per line; exit
#                                    status 1 if any are missing
set -eu
list=$(dirname "$0")/needs.list
compiler=${CC:-cc}
action=install
case ${1:-} in
--packages | --missing | --markdown)
    action=${1#--}
    shift
    ;;
esac
case ${1:-build} in
build) sets=" build " ;;
test) sets=" build deb test " ;;
deb) sets=" build deb " ;;
ci) sets=" build test deb ci " ;;
*)
    echo "needs.sh: unknown set '$1': must be build, test, deb or ci" >&2
    exit 2
    ;;
esac
# cmocka.h and pcre2.h need definitions before them. Without a compiler, search the system's folders.
has_header() {
    if ! found program:cc; then
        ls /usr/include/"$1" /usr/local/include/"$1" /usr/include/*-linux-*/"$1" 2> /dev/null | grep -q .
        return
    fi
    {
        case $1 in
        cmocka.h) printf '#include <%s>\n' setjmp.h stdarg.h stddef.h stdint.h ;;
        pcre2.h) echo '#define PCRE2_CODE_UNIT_WIDTH 8' ;;
        esac
        echo "#include <$1>"
    } | $compiler -E - > /dev/null 2>&1
}
found() { # CHECK
    case $1 in
    program:cc) command -v "${compiler%% *}" ;;
    program:c++) command -v "${CXX:-c++}" ;;
    program:*) PATH=$PATH:/usr/sbin:/sbin command -v "${1#program:}" ;; # a user's PATH lacks these
    mpi:*) echo "#include <${1#mpi:}>" | mpicc -E -x c - ;;
    python:*) python3 -c "import ${1#python:}" ;;
    header:*)
        for header in $(echo "${1#header:}" | tr , ' '); do
            ! has_header "$header" || return 0
        done
        return 1
        ;;
    esac > /dev/null 2>&1
}
# Lines "PACKAGE|CHECK|WHAT FOR" of the sets; PACKAGE keeps its question mark.
rows() {
    sed '/^#/d; s/ *| */|/g; s/ *$//' "$list" | while IFS='|' read -r package set _ check why; do
        case $sets in *" $set "*) echo "$package|$check|$why" ;; esac
    done
}
missing() {
    rows | while IFS='|' read -r package check why; do
        found "$check" || echo "$package|$check|$why"
    done
}
exists_here() { apt-cache policy "$1" 2> /dev/null | grep 'Candidate:' | grep -qv '(none)'; }
# Map rows on standard input to the packages of this release.
packages() {
    while IFS='|' read -r package _; do
        case $package in
        *'?') ! exists_here "${package%\?}" || echo "${package%\?}" ;;
        *) echo "$package" ;;
        esac
    done
}
explain() { # standard input: rows
    while IFS='|' read -r package _ why; do printf '    %-18s %s\n' "${package%\?}" "$why"; done
}

case $action in
markdown)
    echo "| package | what for |"
    echo "|---|---|"
    rows | while IFS='|' read -r package _ why; do echo "| \`${package%\?}\` | $why |"; done
    exit
    ;;
packages)
    rows | packages
    exit
    ;;
missing)
    rows=$(missing)
    [ -z "$rows" ] || echo "$rows" | explain
    [ -z "$rows" ]
    exit
    ;;
esac

need=$(missing)
[ -n "$need" ] || exit 0
if ! command -v apt-get > /dev/null; then
    echo "missing (Debian's names of the packages; install what your system calls them):" >&2
    echo "$need" | explain >&2
    exit 1
fi
if [ "$(id -u)" = 0 ]; then
    run="env"
elif sudo -n true 2> /dev/null; then
    run="sudo env"
else
    echo "missing packages:" >&2
    echo "$need" | explain >&2
    echo "Run this, then try again:" >&2
    echo "    sudo apt-get install $(echo "$need" | packages | tr '\n' ' ')" >&2
    exit 1
fi
install() {
    # shellcheck disable=SC2046 # a list of words
    $run DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(echo "$need" | packages)
}
# A new machine has no package lists, so it does not know which packages its release has.
exists_here libjansson-dev || $run apt-get update -qq > /dev/null
echo "installing: $(echo "$need" | packages | tr '\n' ' ')"
if ! install > /dev/null 2>&1; then
    $run apt-get update -qq > /dev/null
    if ! install > /dev/null; then
        echo "apt-get could not install these; install them by hand, then try again:" >&2
        echo "$need" | explain >&2
        exit 1
    fi
fi
need=$(missing)
[ -n "$need" ] || exit 0
echo "still missing after apt-get:" >&2
echo "$need" | explain >&2
exit 1
