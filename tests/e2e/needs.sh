#!/usr/bin/env bash
# Checks that tools/needs.list is the only list of packages: the installing script, CMake and doctor
# name the package and the part that needs it; the documents and the container file have the same
# names.
. "$(dirname "$0")/common.inc"
NEEDS=$SOURCE/tools/needs.sh

# Every row has five columns, a known set, and a check that needs.sh knows.
sed '/^#/d; s/ *| */|/g' "$SOURCE/tools/needs.list" > rows
[ "$(wc -l < rows)" -gt 25 ] && ! grep -vE '^[a-z0-9+.-]+\??\|(build|test|deb|ci)\|[a-z]+\|(program|header|mpi|python):[^|]+\|[^|]+$' rows && ok || bad "a row of the list is invalid"
[ "$(cut -d '|' -f 1 rows | sort | uniq -d)" = "" ] && ok || bad "a package is listed twice"
sh "$NEEDS" --packages nonsense > /dev/null 2>&1 && bad "an unknown set was accepted" || ok

# A missing package is named with its purpose: on a machine without any, and on one that lacks one.
mkdir bare
for tool in sh sed printf echo cat dirname tr grep env ls; do ln -s "$(command -v $tool)" bare/; done
PATH=$PWD/bare sh "$NEEDS" --missing test > missing.txt && bad "nothing is missing on an empty machine" || ok
for package in gcc cmake libopenmpi-dev python3 python3-venv dpkg-dev; do
    grep -q "^ *$package  *[a-zA-Z]" missing.txt && ok || bad "--missing does not name $package"
done
# Without a compiler, headers are looked for in the system's folders.
if sh "$NEEDS" --missing build > /dev/null && grep -q 'lib.*math verifier' missing.txt; then bad "no header is found without a compiler: $(cat missing.txt)"; else ok; fi
CC="cc -nostdinc" sh "$NEEDS" --missing build > missing.txt && bad "the missing header is not reported" || ok
grep 'libantic-dev' missing.txt | grep -q 'math verifier' && ok || bad "--missing does not give the purpose of libantic-dev"
grep -q 'libxxhash-dev .*checkpoints' missing.txt && ! grep -q '^ *cmake' missing.txt && ok || bad "headers: $(cat missing.txt)"
if sh "$NEEDS" --missing test > missing.txt; then # then the build finds them too
    "$TARE" doctor > doctor.txt || true
    grep -q '^ok *verifier .*math' doctor.txt && grep -q '^ok *mpi' doctor.txt && ok || bad "nothing is missing, but doctor reports: $(grep -v '^ok' doctor.txt)"
fi

# CMake: an optional part without its packages is left out, or is an error; a needed package is
# named.
configure() { cmake -S "$SOURCE" -B made -DBUILD_TESTING=OFF "$@" > configured.txt 2>&1; }
said() { tr '\n' ' ' < configured.txt | tr -s ' ' | grep -qF "$1"; }
configure -DFLINT_LIBRARY= && said "verifier math: left out of this build" && said "apt-get install libgmp-dev libmpfr-dev libflint-dev" && said libantic-dev && ok ||
    bad "CMake without FLINT: $(tail -5 configured.txt)"
configure -DFLINT_LIBRARY= -DTARE_COMPLETE=ON && bad "the complete build continues without FLINT" || ok
said "verifier math: required packages are missing" && said "sh tools/needs.sh build" && ok || bad "no advice: $(tail -5 configured.txt)"
rm -rf made
configure -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON -DTARE_COMPLETE=ON && bad "the complete build continues without MPI" || ok
said "several ranks" && said "libopenmpi-dev openmpi-bin" && ok || bad "no advice: $(tail -5 configured.txt)"
rm -rf made
PATH=$PWD/bare "$(command -v cmake)" -S "$SOURCE" -B made > configured.txt 2>&1 && bad "CMake continues without a compiler" || ok
said "gcc C compiler" && said "make runs the build" && said "sh tools/needs.sh build" && ok || bad "CMake without a compiler: $(tail -5 configured.txt)"
rm -rf made
for tool in "$(command -v cc)" "$(command -v make)" "$(command -v pkg-config)"; do ln -s "$tool" bare/; done
PATH=$PWD/bare CC="cc -nostdinc" "$(command -v cmake)" -S "$SOURCE" -B made > configured.txt 2>&1 && bad "CMake continues without the C library's headers" || ok
said "libc6-dev C library" && ! said "gcc C compiler" && ok || bad "CMake without the C library's headers: $(tail -5 configured.txt)"
rm -rf made
configure -DINIH_LIBRARY= -DINIH_INCLUDE= && bad "CMake continues without inih" || ok
said "sh tools/needs.sh build installs what is missing" && ok || bad "CMake without inih: $(tail -5 configured.txt)"

# doctor: a missing plugin of tare is an error.
cp -r "${TARE_PLUGIN_PATH%%:*}" fewer
rm fewer/verifiers/number.so
TARE_PLUGIN_PATH=$PWD/fewer "$TARE" doctor > doctor.txt && [ ! -e "$(dirname "$TARE")/plugins" ] && bad "doctor does not fail" || ok
cp "$TARE" lone
TARE_PLUGIN_PATH=$PWD/fewer ./lone doctor > doctor.txt && bad "doctor does not report the missing plugin" || ok
grep -q '^bad *plugin *verifiers/number.so is part of tare' doctor.txt && ok || bad "doctor: $(grep bad doctor.txt)"
PATH=$PWD/bare ./lone doctor > doctor.txt || true
grep -q '^no *python .*apt-get install python3' doctor.txt && grep -qE '^no *mpi .*apt-get install' doctor.txt && ok || bad "doctor without programs: $(grep -E 'python|mpi' doctor.txt)"

# No other file has a list of packages.
sed -n '/^| package | what for |/,/^$/p' "$SOURCE/docs/install.md" | sed '/^$/d' > documented.txt
sh "$NEEDS" --markdown ci > table.txt
cmp -s table.txt documented.txt && ok || bad "docs/install.md: its table differs from the output of tools/needs.sh --markdown ci"
for package in $(grep -oh 'apt-get install[^&;]*' "$SOURCE/Containerfile" "$SOURCE/packaging/release.containerfile" | tr ' ' '\n' | grep -E '^[a-z]' | grep -vE '^(apt-get|install)$'); do
    grep -qE "^$package\\??\|" rows && ok || bad "a container file: $package is not in tools/needs.list"
done
done_
