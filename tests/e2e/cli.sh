#!/usr/bin/env bash
# Checks the program's command line: verbs, options, exit statuses, and the verbs that need no
# model.
set -u
fails=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# expect STATUS PATTERN COMMAND...: checks the exit status and a pattern in the output.
expect() {
    local status=$1 pattern=$2 got
    shift 2
    "$@" >out 2>&1 </dev/null
    got=$?
    if [ $got -ne "$status" ] || ! grep -qe "$pattern" out; then
        echo "FAILED: $* (status $got, expected $status with '$pattern'):"
        head -5 out
        fails=$((fails + 1))
    fi
}

expect 0 '^usage: tare' "$TARE" --help
expect 2 '^usage: tare' "$TARE"
[ "$("$TARE" --help | awk 'length > 132' | wc -l)" = 0 ] || { echo "FAILED: --help has lines of more than 132 columns" && fails=$((fails + 1)); }
expect 0 '^tare [0-9]' "$TARE" --version
expect 0 '^tare [0-9]' "$TARE" -V
expect 2 "did you mean 'train'" "$TARE" trian
expect 2 "unknown verb 'zzzzzz'; .tare --help. lists the verbs" "$TARE" zzzzzz
expect 2 '`tare codebook` is now `tare cluster train`' "$TARE" codebook hashed --clusters 2
expect 2 '`tare embed` is now `tare cluster embed`' "$TARE" embed
expect 2 '`tare verify-run` is now `tare reproduce`' "$TARE" verify-run run
expect 2 "unknown option '--frobnicate'" "$TARE" --frobnicate
expect 2 usage "$TARE" config
expect 2 usage "$TARE" config show x
expect 0 '^usage: tare config' "$TARE" config --help
expect 0 'train.lr' "$TARE" config docs
expect 0 '^| `lr` |' "$TARE" config docs --md
expect 0 '^train.lr (default: ' "$TARE" config docs train.lr
expect 0 '^relift.lr (default: ' "$TARE" config docs lr
expect 0 '^\[lora\] ' "$TARE" config docs lora
expect 3 "did you mean 'lr'" "$TARE" config docs train.lrr
expect 0 "^TRL's learning_rate: train.lr" "$TARE" config docs learning_rate
expect 0 "^TRL's beta: loss.kl_coef" "$TARE" config docs beta
expect 3 'tare plugin info bv_blend. documents it' "$TARE" config docs estimator.bv_blend.gamma
expect 2 "'--num_generations': TRL's num_generations is rollout.group_size here" "$TARE" train good.ini --num_generations 8
expect 2 usage "$TARE" config docs --mad
expect 3 'none.ini: no such configuration file' "$TARE" config check none.ini
printf '[train]\nlr = 3e-4\n\n[estimator.grpo]\nddof = 1\n' >good.ini
printf '[train]\nlearning_rte = 1\n' >bad.ini
expect 3 'model.path is missing' "$TARE" config check good.ini
expect 3 "TRL's use_vllm has no counterpart here" "$TARE" config check good.ini use_vllm=true
expect 3 'did you mean estimator.plugin' "$TARE" config check good.ini estimator=grpo
expect 3 "has no key 'warmup'; did you mean 'warmup_ratio' or 'warmup_steps'" "$TARE" config check good.ini train.warmup=3
expect 3 "no estimator named 'GRPO'; did you mean grpo" "$TARE" config check good.ini estimator.plugin=GRPO
expect 3 'must be one number (.tare sweep. takes several' "$TARE" config check good.ini train.lr=1e-4,2e-4
quickstart=$SOURCE/configs/quickstart.ini
printf 'include = %s\n\n[data]\neval = nothere.jsonl\n' "$quickstart" >own.ini
expect 0 'scale is the divisor of the advantages: 1 where' "$TARE" estimate --help
expect 0 'quickstart.ini: no errors' "$TARE" config check "$quickstart"
"$TARE" -q config check "$quickstart" >out 2>&1 && [ ! -s out ] || { echo "FAILED: -q prints: $(cat out)" && fails=$((fails + 1)); }
expect 3 'bad.ini:2: ' "$TARE" config check bad.ini
expect 3 'command line: train.lr' "$TARE" config check good.ini train.lr=x
expect 3 'config.c:' "$TARE" -v config check bad.ini

# log.level; -v and -q before the verb override it. "debug" adds the source line of an error.
for verb in train sft eval sweep; do
    "$TARE" $verb good.ini log.level=debug run.dir=/dev/null/x >out 2>&1
    grep -q '[a-z]\.c:[0-9]' out || { echo "FAILED: $verb: log.level = debug adds no source line" && fails=$((fails + 1)); }
    "$TARE" -q $verb good.ini log.level=debug run.dir=/dev/null/x >out 2>&1
    grep -q '[a-z]\.c:[0-9]' out && echo "FAILED: $verb: log.level = debug overrides -q" && fails=$((fails + 1))
done
expect 3 "log.level = 'loud' is unknown; allowed: debug, info, warn, error" "$TARE" train good.ini log.level=loud
expect 0 '^lr = 0.0003' "$TARE" config dump good.ini
"$TARE" train good.ini log.level=error >out 2>&1
[ "$(wc -l <out)" = 1 ] || { echo "FAILED: log.level = error: more than the error: $(cat out)" && fails=$((fails + 1)); }
"$TARE" config dump good.ini train.steps=7 run.name=good >one.ini && "$TARE" config dump one.ini >two.ini && cmp one.ini two.ini ||
    fails=$((fails + 1))
if [ -w /dev/full ]; then
    "$TARE" config docs >/dev/full 2>err && echo "FAILED: a full standard output is not noticed" && fails=$((fails + 1))
fi
expect 0 '^ok   kernels ' "$TARE" doctor
expect 0 '^ok   estimator .*grpo' "$TARE" doctor good.ini
SHARED=nowhere expect 0 '^no   references .*tests use the part of it in tests/data' "$TARE" doctor
[ -e /dev/nvidiactl ] || expect 1 '^bad  gpu' "$TARE" doctor run.device=cuda
[ -e /dev/nvidiactl ] || TARE_CUDA_GRAPH=off expect 1 '^no   switch *TARE_CUDA_GRAPH=off has no effect' "$TARE" doctor run.device=cuda
for verb in train sft eval sweep plan report; do
    "$TARE" $verb good.ini --stepz 3 >out 2>&1
    [ $? = 2 ] && grep -q "^tare: '--stepz'" out || { echo "FAILED: $verb --stepz: the message does not name the argument: $(head -1 out)" && fails=$((fails + 1)); }
done
expect 2 "^tare: '--what'" "$TARE" doctor --what
expect 3 '^tare: command line: data.train: nothere.jsonl: No such file' "$TARE" config check "$quickstart" data.train=nothere.jsonl
expect 3 '^tare: own.ini:4: data.eval: nothere.jsonl: No such file' "$TARE" config check own.ini
expect 3 'unknown section' "$TARE" doctor nothing.x=1
# A filter ends quietly, like other filters, when its reader closes the pipe. More is written than
# the pipe's buffer holds.
awk 'BEGIN { for (i = 0; i < 20000; i++) print "{\"completion\":\"1\",\"answer\":\"1\"}" }' > many.jsonl
{ "$TARE" verify exact < many.jsonl 2> err.txt || echo $? > status.txt; } | head -1 > /dev/null || true
[ "$(cat status.txt)" = 141 ] && [ ! -s err.txt ] && fails=$fails || { echo "FAILED: verify | head: status $(cat status.txt), $(cat err.txt)" && fails=$((fails + 1)); }
expect 0 '^  config     init | check | dump | diff | docs ...  *create, check, print' "$TARE" --help
printf '{"question":"1+1=","answer":"2"}\n' >part-1.jsonl
printf '{"question":"1+2=","answer":"3"}\n{"question":"1+1=","answer":"2"}\n' >part-2.jsonl
expect 0 'part-1.jsonl: 1 row, no problems found; the answers were not checked' "$TARE" data check part-1.jsonl
expect 0 'part-1.jsonl: 1 row, no problems found$' "$TARE" data check part-1.jsonl verifier=exact
for files in 'part-?.jsonl' 'part-1.jsonl,part-2.jsonl' 'part-1.jsonl part-2.jsonl'; do
    case $files in *' '*) expect 1 '3 rows, 1 of them invalid' "$TARE" data check part-1.jsonl part-2.jsonl ;; *) expect 1 '3 rows, 1 of them' "$TARE" data check "$files" ;; esac
    grep -q '"where":"part-2.jsonl:2".*duplicate question, first in part-1.jsonl:1' out || { echo "FAILED: data check $files" && fails=$((fails + 1)); }
done
expect 1 'part-9' "$TARE" data check 'part-9*.jsonl'
echo '{"groups":[{"clusterr":1,"rewards":[1,0]}]}' >group.json
"$TARE" estimate grpo <group.json >out 2>&1 && echo "FAILED: clusterr was accepted" && fails=$((fails + 1))
grep -q 'unknown key "clusterr"; did you mean "cluster"' out || { echo "FAILED: clusterr: $(cat out)" && fails=$((fails + 1)); }
# a clone that was moved after its build has its own SDK, not the one of the old place
mkdir -p moved/build && cp "$TARE" moved/build/tare && cp -r "$SOURCE/sdk" moved/sdk
expect 0 'mv1' moved/build/tare plugin new estimator mv1
grep "TARE_INCLUDE.*$PWD/moved/sdk/include" mv1/Makefile >found.txt || { echo "FAILED: a moved clone: $(cat out; grep TARE_INCLUDE mv1/Makefile)" && fails=$((fails + 1)); }
[ $fails -eq 0 ] && echo "all passed"
exit $((fails > 0))
