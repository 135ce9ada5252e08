#!/usr/bin/env bash
# Lets every fuzz target run for a while, with the address and undefined-behaviour sanitizers: no crash, no leak, no hang.
#   tests/fuzz/run.sh [SECONDS each, default 60] [TARGET ...]      new inputs every time; what was found before is kept in build-fuzz/corpus
#   tests/fuzz/run.sh --inputs N [TARGET ...]                      the same N inputs every time, for CI: a fixed seed, from the corpus of the tree
# Needs clang. An input that fails lies in build-fuzz/found.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=60 inputs=
if [ "${1:-}" = --inputs ]; then
    inputs=$2
    shift 2
elif [ $# -gt 0 ]; then
    seconds=$1
    shift
fi
command -v clang > /dev/null || { echo "SKIP: clang is not installed (apt-get install clang); the corpus is replayed by ctest -R fuzz/"; exit 77; }
dir=${FUZZ_DIR:-build-fuzz}
configure() { cmake -S . -B "$dir" -DCMAKE_C_COMPILER=clang -DTARE_FUZZ=ON -DTARE_SANITIZE=address,undefined > /dev/null; }
configure
grep -q '^TARE_FUZZ:[A-Z]*=ON' "$dir/CMakeCache.txt" || configure # CMake forgets the options where the compiler's path is another than before
targets=
all='jsonl template tokenizer_json safetensors state chain ini codebook wire ranks math'
[ -n "$inputs" ] || all="$all train" # the whole engine: compiled for minutes; the corpus is replayed by the tests
for name in ${*:-$all}; do
    if grep -q "/fuzz_$name.dir" "$dir/CMakeFiles/TargetDirectories.txt"; then
        targets="$targets $name"
    else
        echo "fuzz_$name: SKIP, what it needs is not installed"
    fi
done
mkdir -p "$dir/found"
found=$(cd "$dir/found" && pwd) # train works in a folder of its own
# shellcheck disable=SC2086 # a list
cmake --build "$dir" -j "$(nproc)" --target $(printf 'fuzz_%s ' $targets) > "$dir/build.log" 2>&1 || { tail -40 "$dir/build.log"; exit 1; }

# An input that took too long once and does not when it is run alone shows a busy machine, not a hang.
only_late() { # NAME LIMIT
    local input
    input=$(sed -n 's/.*Test unit written to \(.*-timeout-.*\)/\1/p' "$dir/$1.log" | tail -1)
    [ -n "$input" ] && "$dir/fuzz_$1" -timeout="$2" "$input" > "$dir/$1-again.log" 2>&1 || return 1
    echo "fuzz_$1: an input was late once, and is not when it is run alone; going on"
    rm -f "$input"
}
run_one() {
    local name=$1 log=$dir/$1.log kept=$dir/corpus/$1 began=$SECONDS total=0 late=0 until limit=10
    [ "$name" != train ] || limit=60
    if [ -n "$inputs" ]; then
        kept=$dir/inputs/$name
        rm -rf "$kept"
    fi
    mkdir -p "$kept"
    while :; do
        until=-max_total_time=$((seconds - SECONDS + began))
        if [ -n "$inputs" ]; then
            until="-runs=$inputs -seed=1"
            case $name in wire | ini) until="-runs=$((inputs / 10)) -seed=1" ;; esac # half of them open plugins; each is loaded up to four times, from files
        fi
        local status=0
        # shellcheck disable=SC2086 # a list
        "$dir/fuzz_$name" $until -print_funcs=0 -timeout=$limit -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
            -artifact_prefix="$found/$name-" "$kept" "tests/fuzz/corpus/$name" > "$log" 2>&1 || status=$?
        total=$((total + $(grep -o 'stat::number_of_executed_units: *[0-9]*' "$log" | grep -o '[0-9]*$' || echo 0)))
        [ $status != 0 ] || break
        late=$((late + 1))
        [ $late -le 3 ] && only_late "$name" $limit || { tail -40 "$log"; echo "fuzz_$name: failed; the input lies in $dir/found"; return 1; }
        [ -n "$inputs" ] || [ $((SECONDS - began)) -lt "$seconds" ] || break
    done
    echo "fuzz_$name: $total inputs in $((SECONDS - began)) s"
}

# Two at a time: a target is one thread.
failed=0
set -- $targets
while [ $# -gt 0 ]; do
    run_one "$1" & first=$!
    second=
    if [ $# -gt 1 ]; then run_one "$2" & second=$!; shift; fi
    shift
    wait $first || failed=1
    if [ -n "$second" ]; then wait "$second" || failed=1; fi
done
exit $failed
