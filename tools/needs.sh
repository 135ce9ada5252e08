#!/bin/sh
# Looks for what building (or testing) needs; installs what is missing with apt-get where that is allowed, else prints the line to run.
#   tools/needs.sh build|test|deb
set -eu
need=""
want() { # PACKAGE, then a command that succeeds when it is there
    package=$1
    shift
    "$@" > /dev/null 2>&1 || need="$need $package"
}
header() { echo "#include <$1>" | ${CC:-cc} -E -; }
want gcc sh -c "command -v ${CC:-cc}"
want make sh -c "command -v make"
want cmake sh -c "command -v cmake"
want pkg-config sh -c "command -v pkg-config"
want libinih-dev header ini.h
want libjansson-dev header jansson.h
want libpcre2-dev sh -c 'printf "#define PCRE2_CODE_UNIT_WIDTH 8\n#include <pcre2.h>\n" | ${CC:-cc} -E -'
want libutf8proc-dev header utf8proc.h
want libsqlite3-dev header sqlite3.h
want libxxhash-dev header xxhash.h
if [ "${1:-build}" = test ]; then
    want python3 sh -c "command -v python3" # house rules (tests/structure.py)
    want g++ sh -c "command -v ${CXX:-c++}" # the CUDA kernels run on the host
    want libcmocka-dev sh -c 'printf "#include <stdarg.h>\n#include <stddef.h>\n#include <setjmp.h>\n#include <stdint.h>\n#include <cmocka.h>\n" | ${CC:-cc} -E -'
    # the exact-arithmetic verifier is built where these are
    want libflint-dev header flint/flint.h
    want libflint-arb-dev header arb.h
    want libcalcium-dev header ca.h
fi
if [ "${1:-build}" = deb ]; then
    want dpkg-dev sh -c "command -v dpkg-shlibdeps"
    want file sh -c "command -v file"
fi
[ -n "$need" ] || exit 0
if [ "$(id -u)" = 0 ]; then
    run=""
elif sudo -n true 2> /dev/null; then
    run="sudo"
else
    echo "missing packages. Run this, then try again:" >&2
    echo "    sudo apt-get install$need" >&2
    exit 1
fi
echo "installing:$need"
if ! $run apt-get install -y -qq --no-install-recommends $need > /dev/null 2>&1; then
    $run apt-get update -qq > /dev/null
    if ! DEBIAN_FRONTEND=noninteractive $run apt-get install -y -qq --no-install-recommends $need > /dev/null; then
        echo "apt-get could not install:$need" >&2
        echo "install them by hand, then try again" >&2
        exit 1
    fi
fi
