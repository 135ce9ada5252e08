#!/bin/bash
# The checks and measurements on a GPU in stages of at most nine minutes each, the most informative
# ones first:   stages.sh STAGE [OUT]
#   1  the machine, bandwidth and the peak of matrix products, every device test, memcheck of
#      attention and products
#   2  racecheck, initcheck, synccheck
#   3  single operations; decoding at 1.5B and 7B shapes, compared with torch
#   4  training at 1.5B and 7B shapes, compared with torch
#   5  quickstart, resume, mismatch, NCCL with one rank
# Runs in the folder made by tools/gpu_bundle.sh, or in a build (BUILD). Writes OUT/stage-N.txt and
# OUT/stage-N.json. Passed checks are recorded in STATE and not repeated, so that the same command
# continues a stage that was cut off. DRY=1: runs on the fake device instead of a GPU, to find missing
# parts. It has 4 GB, its memory is not a GPU's, and NVIDIA's libraries may be missing; checks that
# depend on these are left out, or have DRY in front.
cd "$(dirname "$0")/../.." || exit 1
stage=${1:-} OUT=${2:-${OUT:-out}}
case $stage in [1-5]) ;; *)
    sed -n '2,14s/^# \?//p' "$0"
    exit 2
    ;;
esac
export BUILT=1 BUILD=${BUILD:-$PWD/build} STATE=${STATE:-$PWD/state} SECONDS_MOST=${SECONDS_MOST:-540}
mkdir -p "$OUT" "$STATE"
OUT=$(realpath "$OUT") STATE=$(realpath "$STATE")
work=$STATE/work
mkdir -p "$work"
text=$OUT/stage-$stage.txt
deadline=$((SECONDS + SECONDS_MOST))
left() { echo $((deadline - SECONDS > 1 ? deadline - SECONDS : 1)); }

# NVIDIA's large libraries: the toolkit's, or those installed with torch.
for name in libcublasLt.so.13 libcudart.so.13 libnccl.so.2; do
    for place in /usr/local/cuda/lib64 $(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' 2> /dev/null)/nvidia/*/lib; do
        [ -e "$place/$name" ] && LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$place && break
    done
done
export LD_LIBRARY_PATH=$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} TARE_PLUGIN_PATH=$BUILD/plugins
if [ -n "${DRY:-}" ]; then
    export TARE_CUDA=$PWD/build-dry/libtare_fake.so QUICK=1
    mkdir -p "$STATE/dry"
    printf '#!/bin/sh\necho "GPU 0: the stand-in device"\n' > "$STATE/dry/nvidia-smi" && chmod +x "$STATE/dry/nvidia-smi"
    PATH=$STATE/dry:$PATH
fi
[ -d models/tiny ] && export SHARED=$PWD TARE_SHARED=$PWD

{
    echo "stage $stage, commit $(cat commit 2> /dev/null || git rev-parse --short HEAD), $(date -u +%Y-%m-%dT%H:%M:%SZ)"
    case $stage in
        1)
            if missing=$(ldd "$BUILD/tare" "$BUILD/libtare_cuda.so" 2>&1 | grep 'not found'); then
                echo "${DRY:+DRY }FAIL libraries: $(echo "$missing" | tr -s ' \t\n' ' ')(C library here: $(ldd --version | sed -n '1s/.* //p'), wanted $(cat glibc 2> /dev/null))"
            fi
            PARTS=${DRY:+decode}
            PARTS=${PARTS:-bandwidth} timeout "$(left)" bash bench/gpu/run.sh "$work/bench"
            ONLY=kernels,parity PROGRAMS=${DRY:+parity products sampler} timeout "$(left)" bash tests/gpu/run.sh "$work"
            ONLY=sanitizer TOOLS=memcheck PROGRAMS="attention products" timeout "$(left)" bash tests/gpu/run.sh "$work"
            ;;
        2) ONLY=sanitizer TOOLS="racecheck initcheck synccheck" timeout "$(left)" bash tests/gpu/run.sh "$work" ;;
        3) PARTS="operations decode" LIMIT=$(left) bash bench/gpu/run.sh "$work/bench" ;;
        4) PARTS=train LIMIT=$(left) bash bench/gpu/run.sh "$work/bench" ;;
        5) ONLY=quickstart,resume,nccl timeout "$(left)" bash tests/gpu/run.sh "$work" ;;
    esac
    [ $? != 124 ] || echo "CUT the time of this stage is over: the same command continues it"
} 2>&1 | tee "$text"

{ # the lines PASS, FAIL, SKIP, CUT and the JSON that the benches printed
    printf '{"stage":%d,"commit":"%s","lines":[' "$stage" "$(cat commit 2> /dev/null)"
    grep -E '^(PASS|FAIL|SKIP|CUT|FAILED:?) ' "$text" | sed 's/[\\"]/\\&/g; s/[[:cntrl:]]/ /g; s/.*/"&"/' | paste -sd,
    printf '],"results":['
    grep '^{' "$text" | paste -sd,
    printf ']}\n'
} > "$OUT/stage-$stage.json"
! grep -qE '^(FAIL|FAILED|CUT)' "$text"
