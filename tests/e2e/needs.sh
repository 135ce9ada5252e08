#!/usr/bin/env bash
# The one list of packages (tools/needs.list): the script that installs from it, CMake and doctor name the package and what is missing without it; the documents
# and the container file say nothing else.
. "$(dirname "$0")/common.inc"
NEEDS=$SOURCE/tools/needs.sh

# every row has five columns, a known set, a check that needs.sh knows
sed '/^#/d; s/ *| */|/g' "$SOURCE/tools/needs.list" > rows
[ "$(wc -l < rows)" -gt 25 ] && ! grep -vE '^[a-z0-9+.-]+\??\|(build|test|deb|ci)\|[a-z]+\|(program|header|mpi|python):[^|]+\|[^|]+$' rows && ok || bad "a row of the list"
[ "$(cut -d '|' -f 1 rows | sort | uniq -d)" = "" ] && ok || bad "a package is listed twice"
sh "$NEEDS" --packages nonsense > /dev/null 2>&1 && bad "a set that is none was taken" || ok

# what is missing is named, with what it is for; a machine without any of it, and one that lacks one thing
mkdir bare
for tool in sh sed printf echo cat dirname tr grep env ls; do ln -s "$(command -v $tool)" bare/; done
PATH=$PWD/bare sh "$NEEDS" --missing test > missing.txt && bad "a bare machine lacks nothing" || ok
for package in gcc cmake libopenmpi-dev python3 python3-venv dpkg-dev; do
    grep -q "^ *$package  *[a-zA-Z]" missing.txt && ok || bad "--missing does not name $package"
done
# without a compiler headers are looked for in the system's folders
if sh "$NEEDS" --missing build > /dev/null && grep -q 'lib.*math verifier' missing.txt; then bad "no compiler, and so no header: $(cat missing.txt)"; else ok; fi
CC="cc -nostdinc" sh "$NEEDS" --missing build > missing.txt && bad "no header, and nothing is missing" || ok
grep 'libantic-dev' missing.txt | grep -q 'math verifier' && ok || bad "--missing does not say what libantic-dev is for"
grep -q 'libxxhash-dev .*checkpoints' missing.txt && ! grep -q '^ *cmake' missing.txt && ok || bad "headers: $(cat missing.txt)"
if sh "$NEEDS" --missing test > missing.txt; then # then the build finds them too
    "$TARE" doctor > doctor.txt || true
    grep -q '^ok *verifier .*math' doctor.txt && grep -q '^ok *mpi' doctor.txt && ok || bad "nothing is missing, and doctor says otherwise: $(grep -v '^ok' doctor.txt)"
fi

# CMake: an optional part is left out with its packages, or an error; what is needed is named
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

# doctor: a plugin of ours that is lost is an error
cp -r "${TARE_PLUGIN_PATH%%:*}" fewer
rm fewer/verifiers/number.so
TARE_PLUGIN_PATH=$PWD/fewer "$TARE" doctor > doctor.txt && [ ! -e "$(dirname "$TARE")/plugins" ] && bad "doctor misses nothing" || ok
cp "$TARE" lone
TARE_PLUGIN_PATH=$PWD/fewer ./lone doctor > doctor.txt && bad "doctor does not miss a plugin" || ok
grep -q '^bad *plugin *verifiers/number.so is part of tare' doctor.txt && ok || bad "doctor: $(grep bad doctor.txt)"
PATH=$PWD/bare ./lone doctor > doctor.txt || true
grep -q '^no *python .*apt-get install python3' doctor.txt && grep -qE '^no *mpi .*apt-get install' doctor.txt && ok || bad "doctor without programs: $(grep -E 'python|mpi' doctor.txt)"

# no other list of packages
sed -n '/^| package | what for |/,/^$/p' "$SOURCE/docs/install.md" | sed '/^$/d' > documented.txt
sh "$NEEDS" --markdown ci > table.txt
cmp -s table.txt documented.txt && ok || bad "docs/install.md: its table is not what tools/needs.sh --markdown ci prints"
for package in $(grep -o 'apt-get install[^&;]*' "$SOURCE/Containerfile" | tr ' ' '\n' | grep -E '^[a-z]' | grep -vE '^(apt-get|install)$'); do
    grep -qE "^$package\\??\|" rows && ok || bad "Containerfile: $package is not in tools/needs.list"
done
done_
