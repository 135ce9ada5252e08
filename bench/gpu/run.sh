#!/bin/bash
# The engine beside PyTorch on this machine's GPU, in one run of at most about 25 minutes:   bench/gpu/run.sh [OUT]
# Builds into build/ and build/cuda/ (or takes BUILD), writes one JSON object a line to OUT/results.jsonl and a table to OUT/table.txt.
# PYTHON: one with torch (default python3); without it the peer's lines are left out and said so. QUICK=1: the toy shape alone, to try the script.
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
cmake -S . -B "$BUILD" -DBUILD_TESTING=OFF > "$OUT/build.log" 2>&1 && cmake --build "$BUILD" -j "$(nproc)" --target bench_gpu tare >> "$OUT/build.log" 2>&1 &&
    cmake -S kernels/cuda -B "$BUILD/cuda" -DTARE_CUDA_OUT="$PWD/$BUILD" -DTARE_CUDA_ARCHITECTURES="${ARCH:-90a}" >> "$OUT/build.log" 2>&1 &&
    cmake --build "$BUILD/cuda" -j "$(nproc)" >> "$OUT/build.log" 2>&1 || { tail -20 "$OUT/build.log"; exit 1; }
echo "built in $SECONDS s"

PEER=1
"$PYTHON" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2> /dev/null || { PEER=0; echo "no torch with CUDA in $PYTHON: the peer is left out (set PYTHON)"; }

one() { # name, command...: a process of its own each, so that each has the whole device
    local name=$1
    shift
    if [ $SECONDS -gt "$LIMIT" ]; then
        echo "left out for want of time: $name"
        return
    fi
    if timeout 400 "$@" > "$OUT/last.json" 2> "$OUT/last.err"; then
        tee -a "$OUT/results.jsonl" < "$OUT/last.json"
    else
        echo "FAILED: $name: $(tail -1 "$OUT/last.err")"
        echo "{\"failed\":\"$name\"}" >> "$OUT/results.jsonl"
    fi
}
ours() { one "tare $*" "$BUILD/bench_gpu" "$@"; }
theirs() { [ $PEER = 0 ] || one "torch $*" "$PYTHON" bench/gpu/peer.py "$@"; }

ours bandwidth
theirs bandwidth
theirs matmul
if [ -n "$QUICK" ]; then
    ours train toy 0 512 none
    theirs train toy 0 512
    ours decode toy 0 16 256
    theirs decode toy 0 16 256
    ours step toy 0 4 4 64
else
    for N in 16 64 128; do ours decode 1.5b 0 $N 2048 && theirs decode 1.5b 0 $N 2048; done
    for T in 4096 8192; do ours train 1.5b 0 $T none && theirs train 1.5b 0 $T; done
    ours step 1.5b 0 16 8 1024
    # 7B: 18 bytes a parameter of weights, gradients and moments leave no room for all layers on one device; 8 of 28 have the same shapes
    for T in 4096 8192; do ours train 7b 8 $T none && theirs train 7b 8 $T; done
    for N in 16 64 128; do ours decode 7b 0 $N 2048 && theirs decode 7b 0 $N 2048; done
fi
"$PYTHON" bench/gpu/table.py "$OUT/results.jsonl" | tee "$OUT/table.txt"
