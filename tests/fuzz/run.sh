#!/usr/bin/env bash
# Lets every fuzz target run for a while, with the address and undefined-behaviour sanitizers: no crash, no leak, no hang.
#   tests/fuzz/run.sh [SECONDS each, default 60] [TARGET ...]      needs clang; what it finds lies in build-fuzz/found
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-60}
shift || true
command -v clang > /dev/null || { echo "SKIP: clang is not installed (apt-get install clang); the corpus is replayed by ctest -R fuzz/"; exit 77; }
dir=${FUZZ_DIR:-build-fuzz}
cmake -S . -B "$dir" -DCMAKE_C_COMPILER=clang -DTARE_FUZZ=ON -DTARE_SANITIZE=address,undefined > /dev/null
targets=${*:-jsonl template tokenizer_json safetensors math}
mkdir -p "$dir/found"
for name in $targets; do
    cmake --build "$dir" -j "$(nproc)" --target "fuzz_$name" > /dev/null
    mkdir -p "$dir/corpus/$name"
    "$dir/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
        -artifact_prefix="$dir/found/$name-" "$dir/corpus/$name" "tests/fuzz/corpus/$name" > "$dir/$name.log" 2>&1 ||
        { tail -40 "$dir/$name.log"; echo "fuzz_$name: failed; the input lies in $dir/found"; exit 1; }
    echo "fuzz_$name: $(grep -o 'stat::number_of_executed_units: *[0-9]*' "$dir/$name.log" | grep -o '[0-9]*$') inputs in $seconds s"
done
