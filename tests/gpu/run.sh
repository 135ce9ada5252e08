#!/bin/bash
# Runs every check that needs a GPU:   tests/gpu/run.sh [OUT]
# Prints a line PASS, FAIL or SKIP with the reason for each check.
#   kernels     every device test on the GPU (each kernel against ref, attention, products, sampling,
#               decode sessions as CUDA graphs), and whether wgmma is bit-identical to mma there
#   parity      tiny models against the goldens, in fp32 and bf16 (SHARED, default ../shared)
#   sanitizer   the device tests under compute-sanitizer: memcheck, racecheck, synccheck, initcheck
#   quickstart  on CUDA and on the CPU: accuracy before and after
#   resume      a CUDA run that is killed and resumed is bit-identical to an undisturbed one
#   nccl        the collectives of several GPUs, with one rank
# Exit status: 0 when nothing failed (77 without a GPU). BUILD and ARCH as in bench/gpu/run.sh;
# ONLY=kernels,parity,... runs these checks only. BUILT=1: nothing is built. PROGRAMS="attention ...":
# these device tests only. TOOLS="memcheck ...": these tools of the sanitizer only. STATE: a folder
# that records the passed checks, which are not repeated.
cd "$(dirname "$0")/../.." || exit 1
ROOT=$PWD
OUT=${1:-${OUT:-tests/gpu/out}}
BUILD=$(realpath -m "${BUILD:-build}")
SHARED=${SHARED:-$ROOT/../shared}
ONLY=${ONLY:-kernels,parity,sanitizer,quickstart,resume,nccl}
mkdir -p "$OUT"
OUT=$(realpath "$OUT")
failed=0
pass() {
    echo "PASS $*"
    [ -z "${STATE:-}" ] || echo "$*" >> "$STATE/passed"
}
passed() { # NAME: succeeds, and prints it, if the check has passed before
    [ -n "${STATE:-}" ] && grep -F -- "$1: " "$STATE/passed" 2> /dev/null | tail -1 | sed 's/^/PASS (before) /' | grep .
}
fail() { echo "FAIL $*"; failed=$((failed + 1)); }
skip() { echo "SKIP $*"; }
wanted() { case ",$ONLY," in *",$1,"*) return 0 ;; *) return 1 ;; esac; }

if ! command -v nvidia-smi > /dev/null || ! nvidia-smi -L > "$OUT/gpu.txt" 2>&1; then
    skip "all: nvidia-smi sees no GPU on this machine"
    exit 77
fi
cat "$OUT/gpu.txt"
export SHARED SOURCE=$ROOT TARE=$BUILD/tare TARE_PLUGIN_PATH=$BUILD/plugins
[ -n "${BUILT:-}" ] || {
    cmake -S . -B "$BUILD" -DBUILD_TESTING=ON && cmake --build "$BUILD" -j "$(nproc)" &&
        cmake -S kernels/cuda -B "$BUILD/cuda" -DTARE_CUDA_OUT="$BUILD" -DTARE_CUDA_ARCHITECTURES="${ARCH:-90a}" && cmake --build "$BUILD/cuda" -j "$(nproc)"
} > "$OUT/build.log" 2>&1 || { tail -20 "$OUT/build.log"; fail "build (see $OUT/build.log)"; exit 1; }
TARE_CUDA_WGMMA=1 "$BUILD/tare" doctor > "$OUT/doctor.txt" 2>&1
grep -i cuda "$OUT/doctor.txt" | head -3

# Runs a cmocka program's tests whose names end in _on_cuda (or are test_cuda). Skipped tests are
# reported separately from passed ones.
device_tests=()
for t in "$BUILD"/test_*_device; do [ -x "$t" ] && [ "${t##*/}" != test_shapes_device ] && device_tests+=("$t"); done

asked() { # PROGRAM: succeeds if it is one of PROGRAMS
    local of=${1##*/test_}
    of=${of%_device}
    [[ " ${PROGRAMS:-$of} " == *" $of "* ]]
}
program() { # NAME, LOG, command...
    local name=$1 log=$2
    shift 2
    passed "$name" && return
    local status=0
    timeout 560 env TARE_TEST_CASE="*cuda*" "$@" > "$log" 2>&1 || status=$?
    if grep -q "SKIP: .*\(GPU\|CUDA\|libtare_cuda\)" "$log"; then
        fail "$name: skipped although there is a GPU: $(grep -m1 'SKIP:' "$log" | cut -c1-160)"
    elif [ $status != 0 ]; then
        fail "$name: $(grep -m1 -E 'ERROR|FAILED|error|fail' "$log" | cut -c1-200)"
    else
        pass "$name: $(grep -c '\[       OK \]' "$log") tests"
    fi
}

if wanted kernels; then
    about=$(grep -o 'products of many rows with batch_invariant.*' "$OUT/doctor.txt")
    case $about in
        '') ;;
        *'use wgmma'*) pass "wgmma: $about" ;;
        *'compute capability is'*) skip "wgmma: $about" ;;
        *) fail "wgmma: $about" ;;
    esac
    [ ${#device_tests[@]} -gt 0 ] || fail "kernels: no test_*_device program was built"
    # The shapes of real models come first. The sanitizer would be too slow for them.
    for t in "$BUILD/test_shapes_device" "${device_tests[@]}"; do asked "$t" && program "kernels $(basename "$t")" "$OUT/$(basename "$t").log" "$t"; done
fi

# Greedy texts of the tiny models on CUDA and on the CPU (whose logprobs test_parity compares with
# the goldens): the same ids, logprobs within 1e-4 (fp32). bf16 is compared by its logprobs up to
# the first difference of the texts.
if wanted parity; then
    models=("$SHARED"/models/tiny/*/config.json)
    if ! command -v python3 > /dev/null; then
        skip "parity: python3 is not installed; it compares the texts"
    elif [ ! -e "${models[0]}" ]; then
        skip "parity: $SHARED/models/tiny is missing; set SHARED"
    else
        for config in "${models[@]}"; do
            model=$(dirname "$config")
            for dtype in f32 bf16; do
                name="parity $(basename "$model") $dtype"
                passed "$name" && continue
                for device in cpu cuda; do
                    for i in 1 2 3 4 5 6; do echo "{\"id\":\"$i\",\"ids\":[$((i * 3)),$((i * 5 + 7)),$((i + 20)),11,$((40 - i))]}"; done |
                        "$BUILD/tare" generate "$model" run.device=$device model.dtype=$dtype rollout.temperature=0 rollout.group_size=1 \
                            rollout.max_new_tokens=48 > "$OUT/parity-$device.jsonl" 2> "$OUT/parity-$device.err" || echo "failed" > "$OUT/parity-$device.jsonl"
                done
                if answer=$(python3 - "$OUT/parity-cpu.jsonl" "$OUT/parity-cuda.jsonl" $dtype 2>&1 << 'EOF'
import json, sys
a, b = ([json.loads(l) for l in open(p)] for p in sys.argv[1:3])
exact, limit = sys.argv[3] == "f32", 1e-4 if sys.argv[3] == "f32" else 0.1
worst = same = 0
assert a and len(a) == len(b), "%d and %d completions" % (len(a), len(b))
for x, y in zip(sorted(a, key=lambda r: r["id"]), sorted(b, key=lambda r: r["id"])):
    n = next((i for i, (p, q) in enumerate(zip(x["ids"], y["ids"])) if p != q), min(len(x["ids"]), len(y["ids"])))
    same += x["ids"] == y["ids"]
    assert not exact or x["ids"] == y["ids"], "%s: the texts differ from token %d on" % (x["id"], n)
    worst = max([worst] + [abs(p - q) for p, q in zip(x["logprobs"][:n], y["logprobs"][:n])])
assert worst <= limit, "logprobs differ by %g" % worst
print("%d of %d texts are equal, logprobs within %.2g" % (same, len(a), worst))
EOF
                ); then pass "$name: $answer"; else fail "$name: $(echo "$answer" | tail -1) $(head -1 "$OUT/parity-cuda.err")"; fi
            done
        done
    fi
fi

if wanted sanitizer; then
    if ! command -v compute-sanitizer > /dev/null; then
        skip "sanitizer: compute-sanitizer is not installed on this machine"
    else
        for tool in ${TOOLS:-memcheck racecheck synccheck initcheck}; do
            for t in "${device_tests[@]}"; do
                asked "$t" || continue
                passed "$tool $(basename "$t")" && continue
                log=$OUT/$tool-$(basename "$t").log
                if timeout 300 compute-sanitizer --tool $tool --error-exitcode 9 "$t" > "$log" 2>&1; then
                    pass "$tool $(basename "$t"): $(grep -m1 'ERROR SUMMARY' "$log")"
                else
                    fail "$tool $(basename "$t"): $(grep -m1 -E 'ERROR SUMMARY|=========|FAILED' "$log" | cut -c1-200)"
                fi
            done
        done
    fi
fi

# Prints the last evaluation in a run's metrics.
accuracy() { grep -o '"eval/[^"]*":[0-9.eE+-]*' "$1/metrics.jsonl" | tail -1; }

# train NAME device key=value ...: trains the quickstart in a separate folder, so that each run
# makes its own base model.
train() {
    local name=$1 device=$2
    shift 2
    mkdir -p "$OUT/$name"
    (cd "$OUT/$name" && timeout 560 "$BUILD/tare" -q train "$ROOT/configs/quickstart.ini" run.device="$device" run.dir=run log.progress=none "$@") > "$OUT/$name.log" 2>&1
}

if wanted quickstart; then
    for device in cpu cuda; do
        passed "quickstart on $device" && continue
        if train quickstart-$device $device; then
            pass "quickstart on $device: $(accuracy "$OUT/quickstart-$device/run")"
        else
            fail "quickstart on $device: $(tail -1 "$OUT/quickstart-$device.log")"
        fi
    done
fi

if wanted resume && ! passed resume; then
    rm -rf "$OUT/whole" "$OUT/killed"
    short="train.steps=8 checkpoint.every=2"
    # shellcheck disable=SC2086 # a list
    if train whole cuda $short; then
        # The base model first; otherwise step 5 of its training would be killed.
        mkdir -p "$OUT/killed" && cp -r "$OUT/whole/runs" "$OUT/killed/"
        TARE_FAULT=rank=0,stage=update,step=5,kind=kill train killed cuda $short
        train killed cuda $short --resume
        if cmp -s "$OUT/whole/run/checkpoints/step-000008/model.safetensors" "$OUT/killed/run/checkpoints/step-000008/model.safetensors"; then
            pass "resume: killed in step 5 and resumed, the same weights after step 8"
        else
            fail "resume: the weights after step 8 differ from those of a run that was never killed (or it was not resumed: $(tail -1 "$OUT/killed.log"))"
        fi
    else
        fail "resume: $(tail -1 "$OUT/whole.log")"
    fi
fi
if wanted nccl; then
    if [ -x "$BUILD/test_comm_gpu" ]; then
        if [ -n "${DRY:-}" ]; then skip "nccl: no GPU"; else program "nccl" "$OUT/nccl.log" "$BUILD/test_comm_gpu"; fi
    else
        skip "nccl: test_comm_gpu was not built (NCCL is missing)"
    fi
fi
[ $failed = 0 ] && echo "nothing failed" || echo "$failed checks failed"
[ $failed = 0 ]
