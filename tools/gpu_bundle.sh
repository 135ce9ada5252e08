#!/bin/bash
# A folder with all that a bare machine with a GPU needs to test and to time the CUDA backend, built on a machine without one:
#   tools/gpu_bundle.sh [FOLDER, default build-gpu-bundle]      wants nvcc; BUILD and ARCH as in tests/gpu/run.sh
# There, where nothing can be installed:   bash FOLDER/run.sh STAGE      (tests/gpu/stages.sh, which says what the stages are)
# In the folder: the program, its tests and plugins, the shared libraries they were linked with (but the C library and NVIDIA's large ones, which are
# looked for over there), tiny models, configurations. A check of it without a GPU: DRY=1 bash FOLDER/run.sh STAGE, with the stand-in device.
set -euo pipefail
cd "$(dirname "$0")/.."
to=${1:-build-gpu-bundle}
BUILD=${BUILD:-build}
ARCH=${ARCH:-90a}
MOST=60 # MiB: what travels is bounded

say() { echo "gpu_bundle: $*" >&2; }
NVCC=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2> /dev/null) || { say "nvcc is not there: install the CUDA toolkit"; exit 1; }

cmake -S . -B "$BUILD" -DBUILD_TESTING=ON -DTARE_COMPLETE=ON > "$BUILD.log" 2>&1 || { tail -20 "$BUILD.log" >&2; exit 1; }
rm -f "$BUILD.log"
cmake --build "$BUILD" -j "$(nproc)" > /dev/null
cmake --build "$BUILD" -j "$(nproc)" --target bench_gpu > /dev/null
cmake -S kernels/cuda -B "$BUILD/cuda-bundle" -DNVCC="$NVCC" -DTARE_CUDA_OUT="$(realpath "$BUILD")/cuda-bundle" -DTARE_CUDA_ARCHITECTURES="$ARCH" > /dev/null
cmake --build "$BUILD/cuda-bundle" -j "$(nproc)" > /dev/null

rm -rf "$to.new"
mkdir -p "$to.new"/{build/plugins,build-dry,lib,tests/gpu,bench/gpu,models}
programs=("$BUILD/tare" "$BUILD"/test_*_device "$BUILD/test_comm_gpu" "$BUILD/bench_gpu")
cp "${programs[@]}" "$to.new/build/"
cp "$BUILD/cuda-bundle/libtare_cuda.so" "$BUILD"/libtare_nccl.so "$to.new/build/"
cp -r "$BUILD"/plugins/. "$to.new/build/plugins/"
find "$to.new/build/plugins" -type f ! -name '*.so' -delete
cp "$BUILD/libtare_fake.so" "$to.new/build-dry/"
cp tests/gpu/*.sh "$to.new/tests/gpu/"
cp bench/gpu/*.py bench/gpu/run.sh "$to.new/bench/gpu/"
cp -r configs tests/data "$to.new/" 2> /dev/null
mv "$to.new/data" "$to.new/tests/data"
if [ -d "${SHARED:-../shared}/models/tiny" ]; then
    mkdir -p "$to.new/models" && cp -rL "${SHARED:-../shared}/models/tiny" "$to.new/models/"
fi
printf '#!/bin/bash\nexec bash "$(dirname "$0")/tests/gpu/stages.sh" "$@"\n' > "$to.new/run.sh"

# What they were linked with: the loader's own list, without the C library's parts (those of the machine that runs it) and NVIDIA's.
find "$to.new/build" -type f \( -perm -u+x -o -name '*.so' \) -print0 | xargs -0 -n1 ldd 2> /dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libutil|ld-linux[^/]*|libcublas[^/]*|libnccl|libcuda|libmpi|libopen-[^/]*)\.so' | while read -r library; do
    cp -L "$library" "$to.new/lib/"
done
find "$to.new/build" "$to.new/lib" -type f -print0 | xargs -0 strip --strip-unneeded 2> /dev/null || true

git rev-parse --short HEAD > "$to.new/commit" 2> /dev/null || echo unknown > "$to.new/commit"
ldd --version | sed -n '1s/.* //p' > "$to.new/glibc"
size=$(du -sm "$to.new" | cut -f1)
[ "$size" -le $MOST ] || { say "$to.new has $size MiB, more than the $MOST that travel"; exit 1; }
rm -rf "$to"
mv "$to.new" "$to"
echo "$to: $size MiB, commit $(cat "$to/commit"), code for sm_$ARCH, C library $(cat "$to/glibc") or newer"
