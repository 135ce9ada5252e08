#!/bin/bash
# Makes a folder with everything that a bare machine with a GPU needs to test and time the CUDA backend:
#   tools/gpu_bundle.sh [FOLDER, default build-gpu-bundle]   requires nvcc, no GPU; BUILD and ARCH as in tests/gpu/run.sh
# On the GPU machine, which needs no installation:   bash FOLDER/run.sh STAGE   (stages: see tests/gpu/stages.sh)
# The folder has the program, its tests and plugins, their shared libraries (except the C library and
# NVIDIA's large ones, which the GPU machine must have), tiny models and configurations. To check it
# without a GPU, use the stand-in device: DRY=1 bash FOLDER/run.sh STAGE
set -euo pipefail
ROOT=$(realpath "$(dirname "$0")/..")
case ${1:-} in -*) sed -n '2,7s/^# \?//p' "$0"; exit 2 ;; esac
to=$(realpath -m "${1:-$ROOT/build-gpu-bundle}")
cd "$ROOT"
BUILD=${BUILD:-build}
ARCH=${ARCH:-90a}
MOST=60 # MiB: limit for the transfer

say() { echo "gpu_bundle: $*" >&2; }
if [ -e "$to" ] && ! { [ -s "$to/glibc" ] && [ -s "$to/run.sh" ]; }; then
    say "$to exists and was not made by this script: choose another folder, or remove it"
    exit 1
fi
NVCC=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2> /dev/null) || { say "nvcc not found: install the CUDA toolkit"; exit 1; }

cmake -S . -B "$BUILD" -DBUILD_TESTING=ON -DTARE_COMPLETE=ON > "$BUILD.log" 2>&1 || { tail -20 "$BUILD.log" >&2; exit 1; }
rm -f "$BUILD.log"
cmake --build "$BUILD" -j "$(nproc)" > /dev/null
cmake --build "$BUILD" -j "$(nproc)" --target bench_gpu > /dev/null
cmake -S kernels/cuda -B "$BUILD/cuda-bundle" -DNVCC="$NVCC" -DTARE_CUDA_OUT="$(realpath "$BUILD")/cuda-bundle" -DTARE_CUDA_ARCHITECTURES="$ARCH" > /dev/null
cmake --build "$BUILD/cuda-bundle" -j "$(nproc)" > /dev/null

new=$(mktemp -d "$to.XXXXXX")
trap 'rm -rf "$new"' EXIT
mkdir -p "$new"/{build/plugins,build-dry,lib,tests/gpu,bench/gpu,models}
programs=("$BUILD/tare" "$BUILD"/test_*_device "$BUILD/test_comm_gpu" "$BUILD/bench_gpu")
cp "${programs[@]}" "$new/build/"
cp "$BUILD/cuda-bundle/libtare_cuda.so" "$BUILD"/libtare_nccl.so "$new/build/"
cp -r "$BUILD"/plugins/. "$new/build/plugins/"
find "$new/build/plugins" -type f ! -name '*.so' -delete
cp "$BUILD/libtare_fake.so" "$new/build-dry/"
cp tests/gpu/*.sh "$new/tests/gpu/"
cp bench/gpu/*.py bench/gpu/run.sh "$new/bench/gpu/"
cp -r configs tests/data "$new/" 2> /dev/null
mv "$new/data" "$new/tests/data"
if [ -d "${SHARED:-../shared}/models/tiny" ]; then
    mkdir -p "$new/models" && cp -rL "${SHARED:-../shared}/models/tiny" "$new/models/"
fi
printf '#!/bin/bash\nexec bash "$(dirname "$0")/tests/gpu/stages.sh" "$@"\n' > "$new/run.sh"

# Shared libraries from the loader's list, without those of the C library and of NVIDIA, which come
# from the machine that runs the bundle.
find "$new/build" -type f \( -perm -u+x -o -name '*.so' \) -print0 | xargs -0 -n1 ldd 2> /dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libutil|ld-linux[^/]*|libcublas[^/]*|libnccl|libcuda|libmpi|libopen-[^/]*)\.so' | while read -r library; do
    cp -L "$library" "$new/lib/"
done
find "$new/build" "$new/lib" -type f -print0 | xargs -0 strip --strip-unneeded 2> /dev/null || true

git rev-parse --short HEAD > "$new/commit" 2> /dev/null || echo unknown > "$new/commit"
ldd --version | sed -n '1s/.* //p' > "$new/glibc"
size=$(du -sm "$new" | cut -f1)
[ "$size" -le $MOST ] || { say "the bundle has $size MiB, more than the limit of $MOST MiB"; exit 1; }
rm -rf "$to"
chmod 755 "$new"
mv "$new" "$to"
echo "$to: $size MiB, commit $(cat "$to/commit"), code for sm_$ARCH, C library $(cat "$to/glibc") or newer"
