#!/usr/bin/env bash
# Builds the SDK's examples in C, C++ and Rust against an installed SDK only, checks them, and
# trains three steps with each.
source "$(dirname "$0")/common.inc"
build=${BUILD:-$(dirname "$TARE")}
PATH=$PATH:${HOME:-}/.cargo/bin
for tool in make cmake cc pkg-config; do command -v $tool > /dev/null || skip "$tool is missing"; done
cmake --install "$build" --prefix "$WORK/prefix" > install.log || { cat install.log; exit 1; }
unset TARE_PLUGIN_PATH
export PATH="$WORK/prefix/bin:$PATH" PKG_CONFIG_PATH="$(dirname "$(find "$WORK/prefix" -name tare-sdk.pc)")"
cp -r "$WORK/prefix/share/tare/sdk/examples" .
tiny_config
train() { # NAME CONFIGURATION...: makes three steps of the tiny run
    local name=$1
    shift
    if tare train tiny.ini run.dir="run_$name" train.steps=3 checkpoint.every=3 "$@" > "log_$name" 2>&1 &&
        [ "$(grep -c '"reward/mean"' "run_$name/metrics.jsonl")" = 3 ]; then ok; else bad "$name: $(tail -n 5 "log_$name")"; fi
}
built() { # FOLDER COMPILER
    command -v "$2" > /dev/null && "$2" --version > /dev/null 2>&1 || { skip_part "$1: no $2"; return 1; }
    if make -s -C "examples/$1" check > "check_$1" 2>&1 && grep -q ' 0 failed' "check_$1"; then ok; else bad "$1: $(cat "check_$1")"; return 1; fi
}
if built median cc; then
    train median estimator.plugin=./examples/median/median.so
    case $(echo '{"groups":[{"rewards":[1,0,0,9]}]}' | tare estimate examples/median/median.so divide=true delta=0.5) in
    '{"advantages":[[0.5,-0.5,-0.5,8.5]]'*) ok ;;
    *) bad "median" ;;
    esac
fi
if built baseline c++; then
    train baseline estimator.plugin=./examples/baseline/baseline.so estimator.baseline.rate=0.5
    # A thrown exception is an error: in create, and in the middle of a run.
    if tare estimate examples/baseline/baseline.so start=2 limit=1 < /dev/null 2> log; then bad "create"; fi
    if grep -q 'estimator baseline: create: start = 2 is beyond limit = 1' log; then ok; else bad "create: $(cat log)"; fi
    if tare train tiny.ini run.dir=run_throws train.steps=3 verifier.overlong=linear verifier.overlong_buffer=6 verifier.overlong_penalty=100 \
        estimator.plugin=./examples/baseline/baseline.so estimator.baseline.limit=5 > log 2>&1; then bad "an exception did not stop the run"; fi
    if grep -q 'estimator baseline: compute.*beyond limit; is the verifier right' log; then ok; else bad "compute: $(tail -n 3 log)"; fi
fi
if built closeness rustc; then
    train closeness verifier.plugins=./examples/closeness/closeness.so
    got=$(printf '%s\n' '{"completion":"about 41.5","answer":"42"}' '{"completion":"no","answer":"42"}' '{"completion":"= 42","answer":"42"}' |
        tare verify examples/closeness/closeness.so scale=0.5 | grep -o '"reward":[0-9.]*' | cut -c 1-16 | tr '\n' ' ')
    if [ "$got" = '"reward":0.36787 "reward":0 "reward":1 ' ]; then ok; else bad "closeness: $got"; fi
fi
done_
