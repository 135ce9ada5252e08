#!/bin/bash
# The checks and measurements on a GPU in stages of at most nine minutes each, the most telling first:   stages.sh STAGE [OUT]
#   1  what is there, bandwidth and the ceiling of matrix products, every device test, memcheck of attention and products
#   2  racecheck, initcheck, synccheck
#   3  single operations; decoding at 1.5B and 7B shapes beside torch
#   4  training at 1.5B and 7B shapes beside torch
#   5  quickstart, resume, mismatch, NCCL with one rank
# Works on what tools/gpu_bundle.sh made, or on a build (BUILD). Writes OUT/stage-N.txt and OUT/stage-N.json. What has passed is noted in STATE and not done
# again, so that a stage that was cut off is continued by the same command. DRY=1: no GPU but the stand-in device, to see that nothing is missing; it has
# 4 GB, its memory is not a GPU's, and NVIDIA's libraries need not be there, so what depends on these is left out or said with DRY in front.
cd "$(dirname "$0")/../.." || exit 1
stage=${1:-} OUT=${2:-${OUT:-out}}
case $stage in [1-5]) ;; *)
    sed -n '2,10s/^# \?//p' "$0"
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

# NVIDIA's large libraries: the toolkit's, or those that came with torch.
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
    [ $? != 124 ] || echo "CUT the time of this stage was over: the same command continues it"
} 2>&1 | tee "$text"

{ # the lines PASS, FAIL, SKIP, CUT and what the benches printed as JSON
    printf '{"stage":%d,"commit":"%s","lines":[' "$stage" "$(cat commit 2> /dev/null)"
    grep -E '^(PASS|FAIL|SKIP|CUT|FAILED:?) ' "$text" | sed 's/[\\"]/\\&/g; s/[[:cntrl:]]/ /g; s/.*/"&"/' | paste -sd,
    printf '],"results":['
    grep '^{' "$text" | paste -sd,
    printf ']}\n'
} > "$OUT/stage-$stage.json"
! grep -qE '^(FAIL|FAILED|CUT)' "$text"
