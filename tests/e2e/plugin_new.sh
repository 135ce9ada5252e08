#!/usr/bin/env bash
# Checks the way from nothing to a checked plugin, against an installed SDK without a source tree:
# every kind, with make and with CMake.
set -eu
build=${BUILD:-$(dirname "$TARE")}
command -v make > /dev/null && command -v cc > /dev/null && command -v cmake > /dev/null || { echo "SKIP: make, cc or cmake is missing"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" > "$work/install.log" || { cat "$work/install.log"; exit 1; }
unset TARE_PLUGIN_PATH
PATH=$work/prefix/bin:$PATH
cd "$work"
[ "$(command -v tare)" = "$work/prefix/bin/tare" ]
tare plugin list | grep -q '^estimator  bv_blend '
for kind in estimator verifier encoder codebook objective curriculum environment; do
    tare plugin new $kind my_$kind > /dev/null
    ! grep -rq '@[A-Z]*@' my_$kind || { echo "a placeholder remains in my_$kind"; exit 1; }
    make -s -C my_$kind check > log 2>&1 || { cat log; exit 1; }
    grep -q ' 0 failed' log && tail -n 1 log | grep -q '^ok$' || { cat log; exit 1; }
    cmake -S my_$kind -B cmake_$kind -DCMAKE_PREFIX_PATH="$work/prefix" -DTARE_INCLUDE=/nowhere > log 2>&1 && cmake --build cmake_$kind >> log 2>&1 || { cat log; exit 1; }
    tare plugin check cmake_$kind/my_$kind.so > log || { cat log; exit 1; }
done
# The first block of C in docs/writing-plugins.md is a whole plugin.
mkdir page
awk '/^```c$/ { on = 1; next } on && /^```$/ { exit } on' "$SOURCE/docs/writing-plugins.md" > page/page.c
[ -s page/page.c ] || { echo "docs/writing-plugins.md has no block of C"; exit 1; }
cc -std=c17 -Wall -Wextra -Werror -O2 -fPIC -shared -I "$work/prefix/include" page/page.c -o page/page.so
tare plugin check page/page.so > log || { cat log; exit 1; }
if tare plugin new estimator my_estimator 2> log; then echo "an existing folder was overwritten"; exit 1; fi
grep -q 'exists already' log
for taken in "estimator grpo" "verifier exact" "codebook kmeans" "objective ppo" "curriculum mix"; do
    status=0
    tare plugin new $taken 2> log || status=$?
    [ $status != 0 ] && [ ! -e "${taken#* }" ] && grep -q "${taken#* } is the name of one of tare's own" log || { echo "$taken: status $status: $(cat log)"; exit 1; }
done
tare plugin new verifier grpo > /dev/null # a name of another kind is free
echo "seven kinds: built with make and with CMake, checked"
