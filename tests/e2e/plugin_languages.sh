#!/usr/bin/env bash
# tare plugin new --lang cpp | rust, against an installed SDK with no source tree in sight: built and checked; an exception and a panic are errors.
set -eu
build=${BUILD:-$(dirname "$TARE")}
PATH=$PATH:${HOME:-}/.cargo/bin
command -v make > /dev/null && command -v cmake > /dev/null || { echo "SKIP: make or cmake is missing"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" > "$work/install.log" || { cat "$work/install.log"; exit 1; }
unset TARE_PLUGIN_PATH
PATH=$work/prefix/bin:$PATH
cd "$work"
languages='' skipped=''
if command -v c++ > /dev/null; then languages="$languages cpp"; else skipped="c++ is not installed"; fi
if command -v rustc > /dev/null && rustc --version > /dev/null 2>&1; then languages="$languages rust"; else skipped="${skipped:+$skipped; }rustc is not installed"; fi
[ -n "$languages" ] || { echo "SKIP: neither c++ nor rustc is here"; exit 77; }
for lang in $languages; do
    for kind in estimator verifier encoder codebook objective curriculum; do
        name=${lang}_$kind
        tare plugin new $kind $name --lang $lang > /dev/null
        ! grep -rq '@[A-Z]*@' $name || { echo "a placeholder is left in $name"; exit 1; }
        make -s -C $name check > log 2>&1 || { cat log; exit 1; }
        grep -q ' 0 failed' log && tail -n 1 log | grep -q '^ok$' || { cat log; exit 1; }
    done
done
case $languages in *cpp*)
    cmake -S cpp_verifier -B cmake_cpp -DCMAKE_PREFIX_PATH="$work/prefix" -DTARE_INCLUDE=/nowhere > log 2>&1 && cmake --build cmake_cpp >> log 2>&1 || { cat log; exit 1; }
    sed -i 's|const auto answer = view|if (a.completion.size == 3) throw std::runtime_error("three is too few");\n        const auto answer = view|; s|<string_view>|<string_view>\n#include <stdexcept>|' cpp_verifier/cpp_verifier.cpp
    make -s -C cpp_verifier
    if echo '{"completion":"abc","answer":"b"}' | tare verify cpp_verifier/cpp_verifier.so 2> log; then echo "an exception was not an error"; exit 1; fi
    grep -q 'verifier cpp_verifier: verify: three is too few' log || { cat log; exit 1; } ;;
esac
case $languages in *rust*)
    sed -i 's|let right = |assert!(a.completion.len() != 3, "three is too few"); let right = |' rust_verifier/rust_verifier.rs
    make -s -C rust_verifier
    if echo '{"completion":"abc","answer":"b"}' | tare verify rust_verifier/rust_verifier.so 2> log; then echo "a panic was not an error"; exit 1; fi
    grep -q 'verifier rust_verifier: verify: panicked: three is too few' log && [ "$(wc -l < log)" = 1 ] || { cat log; exit 1; } ;;
esac
if tare plugin new verifier other --lang fortran 2> log; then echo "a language that is not there was taken"; exit 1; fi
grep -q 'there are c, cpp and rust' log && [ ! -e other ]
echo "languages:$languages; four kinds each"
[ -z "$skipped" ] || { echo "SKIP: $skipped"; exit 77; }
