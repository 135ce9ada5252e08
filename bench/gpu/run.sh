#!/bin/bash
# Compares the engine with PyTorch on this machine's GPU, in one run of at most about 25 minutes:   bench/gpu/run.sh [OUT]
# Builds into build/ and build/cuda/ (or uses BUILD), writes one JSON object per line to OUT/results.jsonl and a table to OUT/table.txt.
# PYTHON: one with torch (default python3); without it the peer is skipped with a message. QUICK=1: only the toy shape, to try the script.
# BUILT=1: do not build. PARTS="bandwidth operations decode train": only those. STATE: a folder that keeps results, which are not measured again.
cd "$(dirname "$0")/../.." || exit 1
OUT=${1:-${OUT:-bench/gpu/out}}
BUILD=${BUILD:-build}
PYTHON=${PYTHON:-python3}
mkdir -p "$OUT"
: > "$OUT/results.jsonl"
SECONDS=0
LIMIT=${LIMIT:-1500}

if ! command -v nvidia-smi > /dev/null || ! nvidia-smi -L > "$OUT/gpu.txt" 2>&1; then
    echo "bench/gpu: this machine has no NVIDIA GPU that nvidia-smi sees" >&2
    exit 77
fi
cat "$OUT/gpu.txt"
build() {
    cmake -S . -B "$BUILD" -DBUILD_TESTING=OFF && cmake --build "$BUILD" -j "$(nproc)" --target bench_gpu tare &&
        cmake -S kernels/cuda -B "$BUILD/cuda" -DTARE_CUDA_OUT="$(realpath "$BUILD")" -DTARE_CUDA_ARCHITECTURES="${ARCH:-90a}" && cmake --build "$BUILD/cuda" -j "$(nproc)"
}
[ -n "${BUILT:-}" ] || build > "$OUT/build.log" 2>&1 || { tail -20 "$OUT/build.log"; exit 1; }
echo "built after $SECONDS s"

PEER=1
"$PYTHON" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2> /dev/null || { PEER=0; echo "no torch with CUDA in $PYTHON: the peer is left out (set PYTHON)"; }

one() { # name, command...: each in a separate process, so that it has the whole device
    local name=$1 kept left=$((LIMIT - SECONDS))
    shift
    kept=${STATE:+$STATE/$(echo "$name" | tr ' /' '__').json}
    if [ -s "$kept" ]; then
        tee -a "$OUT/results.jsonl" < "$kept"
    elif [ $left -lt 10 ]; then
        echo "CUT left out for want of time: $name"
    elif timeout $((left < 400 ? left : 400)) "$@" > "$OUT/last.json" 2> "$OUT/last.err"; then
        tee -a "$OUT/results.jsonl" < "$OUT/last.json"
        [ -z "$kept" ] || cp "$OUT/last.json" "$kept"
    else
        echo "FAILED: $name: $(tail -1 "$OUT/last.err")"
        echo "{\"failed\":\"$name\"}" >> "$OUT/results.jsonl"
    fi
}
ours() { one "tare $*" env TARE_CUDA_WGMMA=1 "$BUILD/bench_gpu" "$@"; }
apart() { one "tare apart $*" env TARE_CUDA_CHAIN=0 "$BUILD/bench_gpu" "$@"; } # without programmatic dependent launches
mma() { one "tare mma $*" env TARE_CUDA_WGMMA=0 "$BUILD/bench_gpu" "$@"; }
theirs() { [ $PEER = 0 ] || one "torch $*" "$PYTHON" bench/gpu/peer.py "$@"; }

part_bandwidth() {
    ours bandwidth
    theirs bandwidth
    theirs matmul
}
part_operations() { # one at a time
    local n
    if [ -n "${QUICK:-}" ]; then
        ours operations toy 4
        ours operations toy 257 && ours operations toy 257 invariant && mma operations toy 257 invariant
        return
    fi
    # many rows: by cuBLASLt, and with batch_invariant by wgmma (if the check found it identical to mma) and by mma
    for n in 4096 512; do
        ours operations 7b $n
        ours operations 7b $n invariant
        mma operations 7b $n invariant
    done
    for n in 1 16 32 64 256; do ours operations 7b $n; done
    ours operations 1.5b 16
}
part_decode() {
    if [ -n "${QUICK:-}" ]; then
        ours decode toy 0 16 256 && apart decode toy 0 16 256 && theirs decode toy 0 16 256
        return
    fi
    local n
    for n in 16 64 128; do ours decode 1.5b 0 $n 2048 && theirs decode 1.5b 0 $n 2048; done
    for n in 16 64 128; do ours decode 7b 0 $n 2048 && theirs decode 7b 0 $n 2048; done
    apart decode 7b 0 16 2048
    apart decode 1.5b 0 16 2048
}
part_train() {
    if [ -n "${QUICK:-}" ]; then
        ours train toy 0 512 none && theirs train toy 0 512
        ours step toy 0 4 4 64
        return
    fi
    local t
    for t in 4096 8192; do ours train 1.5b 0 $t none && theirs train 1.5b 0 $t; done
    ours step 1.5b 0 16 8 1024
    # 7B: weights, gradients and moments of 18 bytes per parameter do not fit on one device; 8 of the 28 layers have the same shapes
    for t in 4096 8192; do ours train 7b 8 $t none && theirs train 7b 8 $t; done
}
for part in ${PARTS:-bandwidth operations decode train}; do "part_$part"; done
if command -v "$PYTHON" > /dev/null; then
    "$PYTHON" bench/gpu/table.py "$OUT/results.jsonl" | tee "$OUT/table.txt"
else
    echo "no table: $PYTHON is not there; the results are in $OUT/results.jsonl"
fi
