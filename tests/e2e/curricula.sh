#!/usr/bin/env bash
# Checks curricula set by one key: shuffle is the default; each one trains in its own way, resumes
# bit-identically after a kill, and gives the same bits on two ranks. Invalid combinations are
# refused before anything starts.
. "$(dirname "$0")/common.inc"
tiny_config
"$TARE" sft sft.ini 2> /dev/null || { bad "the model was not made"; done_; }
easy_judge # there are rows to choose from
common="train.steps=7 train.lr=5e-3 log.progress=none log.rollouts=false data.train=builtin:arithmetic/train?rows=60"
train() { "$TARE" train tiny.ini $common "$@" > /dev/null 2>> log.txt; }
weights() { cksum < "$1/checkpoints/$(ls "$1/checkpoints" | tail -1)/model.safetensors"; }
state() { cksum < "$1/checkpoints/$(ls "$1/checkpoints" | tail -1)/training.state"; }
train run.dir=default || { bad "the run failed: $(tail -n 2 log.txt)"; done_; }
own="$FIXTURES/good_curriculum.so" # other numbers of rollouts, left out, only counted, replaced
points=(data:2 rollout:5 verify:6 update:4 apply:5 recorded:4 checkpoint:6 checkpoint.named:3 keep:5 cluster:6)
number=0
for name in $(basename -s .c "$SOURCE"/plugins/curricula/*.c) cppo-fill gfpo-adaptive "$own"; do
    dir=$(basename -s .so "$name")
    plugin=${name%-fill} plugin=${plugin%-adaptive}
    case $name in
        gfpo | pods) more=curriculum.$name.keep=2 ;;
        cppo-fill) more=curriculum.cppo.fill=true ;;
        gfpo-adaptive) more="curriculum.gfpo.keep=3 curriculum.gfpo.adaptive=true" ;;
        *) more=log.level=info ;;
    esac
    train run.dir="$dir" curriculum.plugin="$plugin" $more || { bad "$name: $(tail -n 2 log.txt)"; continue; }
    case $name in shuffle) want=same ;; *) want=other ;; esac
    got=$([ "$(weights "$dir")" = "$(weights default)" ] && echo same || echo other)
    [ $got = $want ] && ok || bad "$name: $got weights as with shuffle"
    grep -q '"kind": *"curriculum"' "$dir/manifest.json" && ok || bad "$name is not in the manifest"
    IFS=: read -r point step <<< "${points[number++ % ${#points[@]}]}"
    killed_at "$point" "$step" "$TARE" train tiny.ini $common run.dir="$dir-broken" curriculum.plugin="$plugin" $more && ok || bad "$name: not killed at $point:$step"
    resume=$([ -d "$dir-broken/checkpoints" ] && echo --resume || rm -rf "$dir-broken")
    train run.dir="$dir-broken" curriculum.plugin="$plugin" $more $resume || bad "$name: not resumed: $(tail -n 2 log.txt)"
    [ "$(weights "$dir")" = "$(weights "$dir-broken")" ] && ok || bad "$name: weights differ after resuming"
    [ "$(state "$dir")" = "$(state "$dir-broken")" ] && ok || bad "$name: the states differ after resuming"
    train run.dir="$dir-ranks" curriculum.plugin="$plugin" $more dist.ranks=2 || { bad "$name on two ranks: $(tail -n 2 log.txt)"; continue; }
    [ "$(weights "$dir")" = "$(weights "$dir-ranks")" ] && ok || bad "$name: weights differ on two ranks"
done
# Half of the rollouts are pruned from the loss, and twice as many questions replace them, so the
# loss has as many rollouts as without pruning.
train run.dir=filled train.steps=3 log.rollouts=true curriculum.plugin=cppo curriculum.cppo.fill=true || bad "cppo with fill: $(tail -n 2 log.txt)"
for step in 1 2 3; do
    lines=$(wc -l < filled/rollouts/step-00000$step.jsonl) counted=$(grep -c '"fate":"counted"' filled/rollouts/step-00000$step.jsonl || true)
    [ "$lines $counted" = "64 32" ] && ok || bad "step $step of cppo with fill: $lines rollouts, $counted of them pruned"
done
# Too few rounds are reported once, with the key; enough rounds are not reported.
for pruning in 0.5 0.75; do
    "$TARE" train tiny.ini $common train.steps=3 run.dir=short-$pruning rollout.refill_rounds=1 curriculum.plugin=cppo curriculum.cppo.fill=true curriculum.cppo.pruning=$pruning > out.txt 2> err.txt ||
        bad "cppo with one round: $(tail -n 2 err.txt)"
    told=$(grep -c ' cppo asks for .* more groups after rollout.refill_rounds = 1 rounds of 8;.*warned once' err.txt || true)
    [ "$pruning $told" = "0.5 0" ] || [ "$pruning $told" = "0.75 1" ] && ok || bad "pruning $pruning with one round: reported $told times: $(cat err.txt)"
done
[ "$(weights cppo-fill)" != "$(weights cppo)" ] && [ "$(weights gfpo-adaptive)" != "$(weights gfpo)" ] && ok || bad "fill or adaptive makes no difference"
train run.dir=mix curriculum.plugin=shuffle train.steps=9 --resume && bad "another curriculum resumes the run" || ok
train run.dir=mix curriculum.plugin=shuffle train.steps=9 --resume --allow-change && bad "shuffle reads the state of mix" || ok
# An estimator recomputes a step's advantages from its records, with the rollouts that were left out
# or only counted.
"$TARE" train tiny.ini $common log.rollouts=true run.dir=recorded estimator.plugin=grpo curriculum.plugin="$own" > /dev/null 2>> log.txt || bad "recorded: $(tail -n 2 log.txt)"
cat recorded/rollouts/*.jsonl > rollouts.jsonl
grep -c '"fate":"left_out"' rollouts.jsonl > /dev/null && grep -c '"fate":"counted"' rollouts.jsonl > /dev/null && ok || bad "the records do not have the rollouts that were left out"
"$TARE" estimate --replay recorded --step 5 > out.txt 2> err.txt && ok || bad "tare replay: $(tail -n 1 err.txt)"
# Shares of several files: 70 and 30 of 100 prompts, whatever the sizes of the files.
row() { printf '{"id":"%s-%d","question":"%d+1=","answer":"%d","subject":"%s"}\n' "$1" "$2" "$2" $(($2 + 1)) "$1"; }
for i in $(seq 1 9); do row a "$i" >> a.jsonl; done
for i in $(seq 10 70); do row b "$i" >> "b 1.jsonl"; done
"$TARE" train tiny.ini train.steps=10 rollout.prompts=10 rollout.group_size=2 log.progress=none log.rollouts=true run.dir=mixed \
    curriculum.plugin=mix "data.train=a.jsonl:0.7 b 1.jsonl:0.3" data.eval= > /dev/null 2>> log.txt || bad "mixed: $(tail -n 2 log.txt)"
[ "$(cat mixed/rollouts/*.jsonl | grep -c '"id":"a-')" = 140 ] && ok || bad "$(cat mixed/rollouts/*.jsonl | grep -c '"id":"a-') of 200 rollouts are of the file with 0.7"
[ "$(grep -c '"id":"a-' mixed/rollouts/step-000003.jsonl)" = 14 ] && ok || bad "a step's share is $(grep -c '"id":"a-' mixed/rollouts/step-000003.jsonl) of 20"
# The shares of a run are fixed.
status=0
"$TARE" train mixed --resume train.steps=12 --allow-change "data.train=a.jsonl:0.6 b 1.jsonl:0.4" > out.txt 2> err.txt || status=$?
[ $status != 0 ] && grep -q "file 1 of data.train had the share 0.7 in the run, and has 0.6 now" err.txt && ok || bad "other shares: status $status: $(tail -n 1 err.txt)"
# A fork may have other shares, and none where its curriculum reads none. It may not have other
# files.
fork() { "$TARE" fork mixed@5 --run-dir "$@" data.eval= log.progress=none > out.txt 2> err.txt; }
fork six "data.train=a.jsonl:0.6 b 1.jsonl:0.4" && ok || bad "a fork with other shares: $(tail -n 2 err.txt)"
[ "$(cat six/rollouts/step-00000[678].jsonl | grep -c '"id":"a-')" = 36 ] && cmp -s six/rollouts/step-000004.jsonl mixed/rollouts/step-000004.jsonl && ok ||
    bad "a fork with other shares: $(cat six/rollouts/step-00000[678].jsonl | grep -c '"id":"a-') of 60"
fork plain curriculum.plugin=shuffle && bad "shuffle accepts shares" || ok
fork plain curriculum.plugin=shuffle "data.train=a.jsonl, b 1.jsonl" && ok || bad "a fork to shuffle: $(tail -n 2 err.txt)"
"$TARE" reproduce plain > out.txt 2>&1 && ok || bad "a fork to shuffle, reproduce: $(tail -n 2 out.txt)"
fork other curriculum.plugin=shuffle data.train=a.jsonl && bad "a fork with other rows" || ok
# Refused before anything starts.
refuses() { # TEXT argument ...
    local text=$1 status=0
    shift
    "$TARE" config check tiny.ini "$@" > out.txt 2> err.txt || status=$?
    [ $status = 3 ] && grep -q -- "$text" err.txt && ok || bad "$*: status $status: $(tail -n 1 err.txt)"
}
refuses "no curriculum named 'mixx'; did you mean mix" curriculum.plugin=mixx
refuses "did you mean draw" curriculum.plugin=mix curriculum.mix.drow=random
refuses "low = 0.9 is above high = 0.8" curriculum.plugin=difficulty curriculum.difficulty.low=0.9
refuses "has weights of files, which curriculum shuffle does not read; set curriculum.plugin = mix" "data.train=a.jsonl:0.7 b 1.jsonl:0.3" data.eval=
refuses "1 of 2 files have a weight" curriculum.plugin=mix "data.train=a.jsonl:0.7, b 1.jsonl" data.eval=
refuses "invalid weight: must be in 1e-6 .. 1e6" curriculum.plugin=mix "data.train=a.jsonl:0 b 1.jsonl:1" data.eval=
refuses "data.eval has weights" data.eval=a.jsonl:1
status=0
"$TARE" sft sft.ini "data.train=a.jsonl:0.7 b 1.jsonl:0.3" sft.out=none > out.txt 2> err.txt || status=$?
[ $status = 3 ] && grep -q "supervised training takes every row once per epoch" err.txt && ok || bad "sft with weights: status $status: $(tail -n 1 err.txt)"
done_
