#!/usr/bin/env bash
# Checks every mode of bench_gpu on the fake device (tests/device/fake.c), so that no mode fails for
# the first time on a borrowed GPU.
. "$(dirname "$0")/common.inc"
bench=$(dirname "$TARE")/bench_gpu
[ -e "${TARE_FAKE:-}" ] && [ -e "$bench" ] || { skip_part "the fake device or bench_gpu is not built"; done_; exit; }
export TARE_CUDA=$TARE_FAKE
# measured LINES WORDS...: checks that there are LINES JSON objects and that their numbers are
# finite
measured() {
    local lines=$1
    shift
    if "$bench" "$@" > out.json 2> err.txt && [ "$(grep -c '^{.*}$' out.json)" = "$lines" ] && ! grep -qE ':-?(nan|inf)' out.json; then
        ok
    else
        bad "bench_gpu $*: $(cat out.json err.txt)"
    fi
}
measured 10 operations toy 4
measured 6 operations toy 257 # many rows: only products and norms
grep -q '"deterministic":"true"' out.json && ok || bad "no mode is given for the products: $(cat out.json)"
measured 6 operations toy 257 invariant
grep -q '"deterministic":"batch_invariant, mma"' out.json && ok || bad "no mode is given for the products: $(cat out.json)"
measured 1 decode toy 0 4 128
grep -q '"launches":"chained"' out.json && ok || bad "the timed launches are missing: $(cat out.json)"
TARE_CUDA_CHAIN=0 measured 1 decode toy 0 4 128
grep -q '"launches":"apart"' out.json && ok || bad "the timed launches are missing: $(cat out.json)"
measured 1 train toy 0 64 none
measured 1 step toy 0 2 2 8
if "$bench" operations toy 0 > out.json 2> err.txt; then
    bad "0 rows were accepted"
else
    grep -q 'bench_gpu operations: ROWS = 0: must be at least 1' err.txt && ok || bad "0 rows: $(cat err.txt)"
fi
done_
