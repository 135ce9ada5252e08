#!/usr/bin/env bash
# Every SDK header alone, as C11, C17 and C++17, with every compiler that is there, without a warning.
set -eu
root=${SOURCE:-$(dirname "$0")/../..}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
compiled=0
for header in base estimator verifier clusterer plugin sdk; do
    printf '#include <tare/%s.h>\n#include <tare/%s.h>\ntypedef int not_empty;\n' $header $header > "$work/$header.c"
    cp "$work/$header.c" "$work/$header.cpp"
    for cc in gcc clang; do
        command -v $cc > /dev/null || continue
        for std in c11 c17; do
            $cc -std=$std -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wpadded -Werror -I"$root/sdk/include" -c "$work/$header.c" -o "$work/out.o"
            compiled=$((compiled + 1))
        done
    done
    for cxx in g++ clang++; do
        command -v $cxx > /dev/null || continue
        $cxx -std=c++17 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wpadded -Werror -I"$root/sdk/include" -c "$work/$header.cpp" -o "$work/out.o"
        compiled=$((compiled + 1))
    done
done
printf '#include <tare/sdk.hpp>\n#include <tare/sdk.hpp>\ntypedef int not_empty;\n' > "$work/hpp.cpp"
for cxx in g++ clang++; do
    command -v $cxx > /dev/null || continue
    for std in c++17 c++20; do
        $cxx -std=$std -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wpadded -Werror -I"$root/sdk/include" -c "$work/hpp.cpp" -o "$work/out.o"
        compiled=$((compiled + 1))
    done
done
[ $compiled -gt 0 ] || { echo "SKIP: no compiler is here"; exit 77; }
echo "$compiled compilations"
