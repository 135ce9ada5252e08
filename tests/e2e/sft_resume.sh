#!/usr/bin/env bash
# Checks that tare sft, killed with SIGKILL at every point of a step and of a checkpoint and resumed
# each time, writes a model that is bit-identical to that of an uninterrupted training, from f32 and
# from bf16 weights. SIGINT leaves a checkpoint. An interrupted warm start continues automatically.
# Anything that does not belong to the training is refused.
. "$(dirname "$0")/common.inc"
tiny_config
SFT="$TARE sft sft.ini sft.steps=60 checkpoint.every=4"
newest() { ls "$1.training/checkpoints" 2> /dev/null | grep 'step-[0-9]*$' | tail -1 | tr -dc 0-9 || true; }

kill_and_resume() { # NAME [key=value ...]
    local name=$1 resume='' at point step found
    shift
    $SFT sft.out="whole-$name" "$@" > /dev/null 2>> log.txt || { bad "$name: the undisturbed training failed"; tail -3 log.txt; return; }
    [ ! -e "whole-$name.training" ] && ok || bad "$name: checkpoints remain after the result"
    # In the first step, in later ones, and in each part of a checkpoint. A checkpoint is the newest
    # only once it has its final name (0: no checkpoint).
    for at in data:1:0 update:7:4 data:10:8 checkpoint.files:16:12 checkpoint.listed:24:20 checkpoint.named:32:32 update:33:32; do
        IFS=: read -r point step found <<< "$at"
        killed_at "$point" "$step" $SFT sft.out="broken-$name" "$@" $resume || { bad "$name: not killed at $at"; return; }
        [ ! -e "broken-$name" ] && ok || bad "$name: killed at $at, but the result exists"
        [ "$((10#0$(newest "broken-$name")))" = "$found" ] && ok || bad "$name: killed at $at, the newest checkpoint is $(newest "broken-$name")"
        [ "$found" = 0 ] || resume=--resume
    done
    $SFT sft.out="broken-$name" "$@" --resume > /dev/null 2>> log.txt || { bad "$name: the resumed training failed"; tail -3 log.txt; }
    diff -r "whole-$name" "broken-$name" > /dev/null && ok || bad "$name: the models differ"
    [ ! -e "broken-$name.training" ] && ok || bad "$name: checkpoints remain after the resumed result"
}
kill_and_resume f32
grep -qE 'continuing after step 32' log.txt && ok || bad "no run continued from the last checkpoint"
kill_and_resume bf16 model.dtype=bf16 model.save_dtype=bf16 sft.train_on_prompt=true

# Killed between the model's final name and the removal of its checkpoints, and during the removal:
# --resume knows that the training is complete.
ended() { # WHAT [argument ...]: checks that the exit status is 0 and that only the model remains
    local what=$1
    shift
    $SFT sft.out=ended --resume "$@" > /dev/null 2> err.txt && grep -q 'ended is complete: the training had ended' err.txt && ok || { bad "$what: $(cat err.txt)"; }
    diff -r whole-f32 ended > /dev/null && [ ! -e ended.training ] && ok || bad "$what: the model differs, or checkpoints remain"
}
killed_at result 0 $SFT sft.out=ended && [ ! -e ended ] && ok || bad "not killed before the model has its name"
killed_at result 1 $SFT sft.out=ended --resume && [ -e ended ] && ok || bad "not killed after the model has its name"
cp -r ended.training kept
status=0
"$TARE" sft sft.ini sft.out=ended sft.steps=70 --resume > /dev/null 2> err.txt || status=$?
[ $status = 3 ] && grep -q 'sft.steps asks for 70 steps, but ended exists with 60; remove it or choose another sft.out' err.txt && ok || bad "more steps than the model has: $status, $(cat err.txt)"
diff -r -x lock kept ended.training > /dev/null && ok || bad "a refused --resume changes the training"
ended "killed after the model has its name"
cp -r kept ended.training
rm -r ended.training/checkpoints ended.training/config.ini
ended "killed while the checkpoints were removed"
mkdir ended.training
ended "killed when all but the folder was removed"
rm kept/ended
cp -r kept ended.training
$SFT sft.out=ended --resume > /dev/null 2> err.txt && bad "a model of another training counts as its own" || ok
ln -s nowhere dangling
$SFT sft.out=dangling > /dev/null 2> err.txt && bad "a model whose name is a dangling link" || ok
grep -q 'sft.out = dangling is a dangling link' err.txt && [ ! -e dangling.training ] && ok || bad "a dangling link: $(cat err.txt)"
rm dangling
$SFT sft.out=ended --resume > /dev/null 2> err.txt || true
grep -q 'ended exists already' err.txt && diff -r -x lock kept ended.training > /dev/null && ok || bad "another model: $(cat err.txt)"

# The way that a training run over ranks sums its gradients does not change the supervised model.
for shards in 1 4; do
    "$TARE" sft sft.ini sft.steps=2 sft.out=shards-$shards dist.gradient_shards=$shards > /dev/null 2> err.txt || { bad "dist.gradient_shards = $shards"; cat err.txt; }
done
diff -r shards-1 shards-4 > /dev/null && ok || bad "the supervised model depends on dist.gradient_shards"

# SIGINT: after the current step, with its checkpoint.
status=0
TARE_FAULT=stage=update,step=10,kind=stop $SFT sft.out=stopped > /dev/null 2> err.txt || status=$?
[ $status = 130 ] && grep -qE 'interrupted after step 10 of 60; continue with: tare sft .*sft.out=stopped --resume$' err.txt && ok || { bad "SIGINT: exit status $status"; cat err.txt; }
[ "$((10#$(newest stopped)))" = 10 ] && ok || bad "SIGINT: no checkpoint of step 10"

refused() { # WHAT PATTERN [argument ...]
    local what=$1 pattern=$2 status=0
    shift 2
    "$TARE" sft sft.ini sft.steps=60 "$@" > /dev/null 2> err.txt || status=$?
    [ $status != 0 ] && grep -q "$pattern" err.txt && ok || { bad "$what: exit status $status"; cat err.txt; }
}
refused "a second start" 'holds an unfinished training; --resume' sft.out=stopped
refused "another seed" 'run.seed differs from the value this run started with' sft.out=stopped run.seed=2 --resume
refused "another batch" 'sft.batch differs from the value this run started with' sft.out=stopped sft.batch=16 --resume
refused "nothing to resume" 'no training to resume;' sft.out=nothing --resume
[ ! -e nothing.training ] && ok || bad "a refused start leaves a folder"
# Fewer steps than are done, or keys that change the training: refused with each difference, and no
# file changes; --allow-change accepts them.
# refused_whole WHAT PATTERN [argument ...]: checks that the exit status is 3 and that the folder
# does not change
refused_whole() {
    local what=$1 pattern=$2 status=0
    shift 2
    rm -rf before && cp -r stopped.training before
    "$TARE" sft sft.ini sft.out=stopped --resume "$@" > /dev/null 2> err.txt || status=$?
    [ $status = 3 ] && grep -q "$pattern" err.txt && ok || { bad "$what: exit status $status"; cat err.txt; }
    diff -r -x lock before stopped.training > /dev/null && [ ! -e stopped ] && ok || { bad "$what: the training was changed"; cp -rT before stopped.training; rm -rf stopped; }
}
same="sft.steps=60 checkpoint.every=4"
refused_whole "fewer steps than are done" 'sft.steps = 5, and stopped.training has done 10 already; .*steps' checkpoint.every=4 sft.steps=5
refused_whole "fewer steps, allowed" 'sft.steps = 5, and stopped.training has done 10 already' checkpoint.every=4 sft.steps=5 --allow-change
refused_whole "more steps under a schedule" 'another training: sft.steps (60 -> 80) (the learning rate falls.*over sft.steps' checkpoint.every=4 sft.steps=80
refused_whole "another objective" 'another training: objective.plugin (ppo -> gspo)' $same objective.plugin=gspo
refused_whole "another rate" 'another training: train.micro_tokens (16384 -> 99), train.lr (0.004 -> 0.01); .*stopped.training/config.ini.*--allow-change' $same train.lr=1e-2 train.micro_tokens=99
refused_whole "other rows" 'phase1?rows=1000 differs from the rows that' $same data.train='builtin:arithmetic/phase1?rows=1000'
grep -q 'data.train: builtin:arithmetic/phase1?rows=2000 -> builtin:arithmetic/phase1?rows=1000' err.txt && ok || { bad "other rows: the message does not name them"; cat err.txt; }
cp -r stopped.training changed.training
"$TARE" sft sft.ini $same sft.out=changed --resume train.lr=1e-2 --allow-change > /dev/null 2> err.txt && grep -q 'train.lr: 0.004 -> 0.01' err.txt && ok || { bad "allowed"; cat err.txt; }
[ -e changed ] && ! diff -r whole-f32 changed > /dev/null && ok || bad "another rate was allowed but not used"

$SFT sft.out=stopped --resume dist.gradient_shards=3 train.max_rollbacks=7 > /dev/null 2>> log.txt || bad "resumed after SIGINT: failed"
grep -q 'train.max_rollbacks: 3 -> 7 (allowed); dist.gradient_shards: .* -> 3 (allowed)' log.txt && ok || { bad "a setting without effect is not reported"; tail -3 log.txt; }
diff -r whole-f32 stopped > /dev/null && ok || bad "resumed after SIGINT: the models differ"

# As a warm start: the same command again.
sed -i 's/^steps = 30/steps = 60/; $a [checkpoint]\nevery = 4' sft.ini
killed_at update 10 "$TARE" train tiny.ini run.dir=run log.progress=none train.steps=1 && ok || bad "the warm start was not interrupted"
[ ! -e base ] && [ "$((10#$(newest base)))" = 8 ] && ok || bad "the warm start: result or checkpoint differ from before"
"$TARE" train tiny.ini run.dir=run log.progress=none train.steps=1 > /dev/null 2> err.txt && ok || { bad "train after an interrupted warm start"; cat err.txt; }
grep -qE 'continuing after step 8' err.txt && ok || bad "the warm start did not continue"
diff -r whole-f32 base > /dev/null && ok || bad "the warm start's model differs"
# Killed just after the model got its final name: the next run removes the remaining files next to
# it.
rm -rf base base.training run
killed_at result 1 "$TARE" train tiny.ini run.dir=run log.progress=none train.steps=1 && [ -e base.training/ended ] && ok || bad "the warm start was not killed at its end"
"$TARE" train tiny.ini run.dir=run log.progress=none train.steps=1 > /dev/null 2> err.txt && [ ! -e base.training ] && ok || { bad "a warm start that was killed at its end remains"; cat err.txt; }
# A resumed training has no more checkpoints than it may keep.
K="$SFT sft.out=fewer checkpoint.keep=1"
killed_at checkpoint.named 8 $K && killed_at data 10 $K --resume && [ "$(ls fewer.training/checkpoints | wc -l)" = 1 ] && ok || bad "checkpoint.keep = 1: $(ls fewer.training/checkpoints | xargs)"
# Files next to the result are not read.
mkdir own.tmp own.tokenizer && echo mine | tee own.tmp/file > own.tokenizer/file
"$TARE" sft sft.ini sft.steps=2 sft.out=own > /dev/null 2> err.txt && [ "$(cat own.tmp/file own.tokenizer/file | xargs)" = "mine mine" ] && ok || { bad "a foreign folder next to the result was removed"; cat err.txt; }
# Nor are files whose names only begin like those of a training.
mkdir -p alike.training/checkpoints-of-mine && echo mine > alike.training/config.ini.bak
"$TARE" sft sft.ini sft.steps=2 sft.out=alike > /dev/null 2> err.txt && bad "a training removed files whose names only begin like its own" || ok
grep -q 'alike.training: .* does not belong to the training' err.txt && [ "$(cat alike.training/config.ini.bak)" = mine ] && ok || bad "similar names: $(cat err.txt)"
# A slash at the end, and equivalent paths.
for out in slash/ dot/. more/.//; do
    "$TARE" sft sft.ini sft.steps=2 sft.out=$out > /dev/null 2> err.txt && [ -e "${out%%/*}/config.json" ] && [ ! -e "${out%%/*}.training" ] && ok ||
        bad "sft.out=$out: $(cat err.txt)"
done
# Its folder is on another file system, from which the model could not be renamed.
if mkdir -p /dev/shm/tare-sft-$$ 2> /dev/null && [ "$(stat -c %d /dev/shm)" != "$(stat -c %d .)" ]; then
    ln -s /dev/shm/tare-sft-$$ away.training
    "$TARE" sft sft.ini sft.steps=2 sft.out=away > /dev/null 2> err.txt && bad "a folder of checkpoints on another file system" || ok
    grep -q 'away.training: is on another file system' err.txt && [ ! -e away ] && ok || bad "another file system: $(cat err.txt)"
fi
rm -rf /dev/shm/tare-sft-$$
# Invalid checksums of models; a pipe instead of a file.
echo '{"models":{"model.path":5}}' > fewer.training/manifest.json
$K --resume > /dev/null 2> err.txt && bad "a number as the checksum of a model" || ok
grep -q 'fewer.training/manifest.json: models, model.path: must be an object with "files"' err.txt && ok || bad "a number as the checksum of a model: $(cat err.txt)"
for file in ended lock manifest.json; do
    mv fewer.training/$file was 2> /dev/null || rm -f was
    mkfifo fewer.training/$file
    status=0
    timeout 60 $K --resume > /dev/null 2> err.txt || status=$?
    [ $status = 1 ] && grep -q "fewer.training/$file: is not a regular file" err.txt && ok || bad "a pipe as $file: exit status $status: $(cat err.txt)"
    rm fewer.training/$file && [ ! -e was ] || mv was fewer.training/$file
done
# A dangling link does not count as a file that never existed.
mv fewer.training/manifest.json was && ln -s nowhere fewer.training/manifest.json
$K --resume > /dev/null 2> err.txt && bad "a dangling link as manifest.json" || ok
grep -q 'fewer.training/manifest.json: is a dangling link' err.txt && ok || bad "a dangling link: $(cat err.txt)"
rm fewer.training/manifest.json && mv was fewer.training/manifest.json
# The messages of a lock and of a full disk name both keys.
exec 8>> fewer.training/lock
flock -n 8 || bad "no process holds the lock"
$K --resume > /dev/null 2> err.txt && bad "a held lock" || ok
grep -q 'another process.*(run.dir, or sft.out)' err.txt && ok || bad "a lock: $(cat err.txt)"
exec 8>&-
# A pipe as the lock of another process's warm start is not waited for, either.
rm -rf base run && mkdir base.training && mkfifo base.training/lock
status=0
timeout 60 "$TARE" train tiny.ini run.dir=run log.progress=none train.steps=1 > /dev/null 2> err.txt || status=$?
[ $status = 1 ] && grep -q 'base.training/lock: is not a regular file' err.txt && ok || bad "a pipe as a warm start's lock: exit status $status: $(cat err.txt)"
# Two warm starts that start from each other would wait for each other.
sed -e 's/^path = .*/path = two\nwarm_start = two.ini/' -e 's/^out = .*/out = one/' sft.ini > one.ini
sed -e 's/^path = .*/path = one\nwarm_start = one.ini/' -e 's/^out = .*/out = two/' sft.ini > two.ini
status=0
timeout 60 "$TARE" sft one.ini > /dev/null 2> err.txt || status=$?
[ $status = 3 ] && grep -q 'model.warm_start leads back to two, which is to be made' err.txt && ok || bad "a cycle of two warm starts: exit status $status: $(cat err.txt)"
# A warm start that starts from its own result would wait for itself.
sed -e 's/^path = .*/path = itself\nwarm_start = itself.ini/' -e 's/^out = .*/out = itself/' sft.ini > itself.ini
timeout 60 "$TARE" sft itself.ini > /dev/null 2> err.txt && bad "a warm start of itself" || ok
grep -q 'sft.out = itself is also model.path, so model.warm_start would make the model that this training makes' err.txt && ok || bad "a warm start of itself: $(cat err.txt)"

done_
