#!/usr/bin/env bash
# Checks that a build for aarch64 has no warnings and gives the same results as this one, bit by
# bit: the C library's functions that numbers of a run pass through, the kernels' tests, and ten
# steps of the quickstart, all run by qemu-aarch64. Skipped without qemu or the libraries of the
# other architecture (docs/install.md). Takes about two minutes of CPU time, most of it the build.
. "$(dirname "$0")/common.inc"
[ "$(uname -m)" = x86_64 ] || skip "another processor: the comparison begins on x86-64"
for program in qemu-aarch64 aarch64-linux-gnu-gcc; do
    command -v $program > /dev/null || skip "another processor: $program is not installed"
done
for library in inih jansson pcre2-8 utf8proc sqlite3 xxhash cmocka; do
    [ -e /usr/lib/aarch64-linux-gnu/lib$library.so ] || skip "another processor: lib$library is not installed for arm64"
done

# exp2, cbrt, erfc and lgamma may differ (docs/dev/processors.md).
cc -O1 -fno-builtin -ffp-contract=off "$SOURCE/tests/arm/libm.c" -o libm-here -lm
aarch64-linux-gnu-gcc -O1 -fno-builtin -ffp-contract=off "$SOURCE/tests/arm/libm.c" -o libm-there -lm
./libm-here 100000 > here.txt
qemu-aarch64 ./libm-there 100000 > there.txt
same_values() { # FUNCTION: the checksums of its values are the same here and there
    cmp -s <(grep "^$1 " here.txt) <(grep "^$1 " there.txt) && ok || bad "$1 differs: $(diff here.txt there.txt | grep -m 1 " $1 ")"
}
if grep -qw fma /proc/cpuinfo; then # without FMA the C library computes these in another way
    for name in exp log log1p cos sin pow pow_theta log2 log10; do same_values $name; done
    sed -i '/^exp 0 /s/.$/x/' there.txt
    planted 'a wrong value of exp' same_values exp
fi

# Those of products, attention and low rank take minutes under qemu; ctest -R kernels/ runs them (docs/install.md).
TESTS='test_kernels_exact test_kernels_rows test_kernels_gradient test_kernels_sample test_kernels_int8'
PLUGINS='plugin_exact plugin_field plugin_bv_blend plugin_ppo plugin_shuffle'
# shellcheck disable=SC2086 # lists of words
cmake -S "$SOURCE" -B there -DCMAKE_TOOLCHAIN_FILE="$SOURCE/tools/aarch64.cmake" -DBUILD_TESTING=ON -DTARE_WERROR=ON -DTARE_SERVE=OFF -DTARE_LAB=OFF > build.txt 2>&1 &&
    cmake --build there -j "$(nproc)" --target tare $PLUGINS $TESTS >> build.txt 2>&1 && ok || { bad "the build: $(tail -5 build.txt)"; done_; exit 1; }

grep -q 'PACKAGE_ARCHITECTURE "arm64"' there/CPackConfig.cmake && ok || bad "the Debian package would not be for arm64"

# Each table of kernels against ref, and NEON is among them.
for name in $TESTS; do
    qemu-aarch64 "there/$name" > test.txt 2>&1 && ok || bad "$name: $(grep -m 3 -E 'FAILED|error' test.txt)"
    ! grep -q 'not here: neon' test.txt && ok || bad "$name does not test NEON"
done

# A short warm start by this program, then ten steps by both.
QUICK=(log.progress=none data.eval= eval.before=false eval.after=false train.steps=10 train.warmup_steps=2 rollout.prompts=4 train.minibatch=16 checkpoint.every=10)
"$TARE" -q sft "$SOURCE/configs/quickstart-phase1.ini" sft.steps=60 sft.out=runs/quickstart-base-1 run.dir=warm > log.txt 2>&1 && ok || bad "warm start: $(tail -1 log.txt)"
"$TARE" -q train "$SOURCE/configs/quickstart.ini" "${QUICK[@]}" run.dir=on-x86 > log.txt 2>&1 && ok || bad "x86-64: $(tail -1 log.txt)"
TARE_PLUGIN_PATH=$PWD/there/plugins qemu-aarch64 there/tare -q train "$SOURCE/configs/quickstart.ini" "${QUICK[@]}" run.dir=on-arm > log.txt 2>&1 && ok || { bad "aarch64: $(tail -1 log.txt)"; done_; exit 1; }
same() { # FILE: the weights of both runs are the same
    cmp -s on-x86/checkpoints/step-000010/model.safetensors "$1" && ok || bad "the weights of aarch64 differ from those of x86-64"
}
same on-arm/checkpoints/step-000010/model.safetensors
grep -q '"kernels": *"neon"' on-arm/manifest.json && ok || bad "the run on aarch64 did not use NEON: $(grep kernels on-arm/manifest.json)"
cp on-arm/checkpoints/step-000010/model.safetensors flipped
flip flipped
planted 'one flipped bit of the weights' same flipped
done_
