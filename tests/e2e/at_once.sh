#!/usr/bin/env bash
# Two processes at once into one folder: one has it, and its result is whole and that of a process which was alone; the other is told, by message and exit status. Either meets
# the other's lock, before it is signed and after, or comes when the other has ended though nothing was there at its first look.
. "$(dirname "$0")/common.inc"
tiny_config
KEYS="train.steps=3 checkpoint.every=1 checkpoint.keep=3 eval.before=false eval.after=false log.progress=none"
quiet() { "$TARE" -q "$@" > out.txt 2>&1; }
quiet sft sft.ini sft.steps=3 && cp -r base made || { bad "the model was not made: $(cat out.txt)"; done_; exit 1; }
# first STAGE STEP command...: the command comes to that point and stops there
first() { frozen_at "$@" > first.txt 2>&1 && ok || bad "not stopped: $*: $(cat first.txt)"; }
# second STATUS PATTERN command...: the same at that time
second() {
    local status=0 wanted=$1 pattern=$2
    shift 2
    "$@" > second.txt 2>&1 || status=$?
    [ $status = "$wanted" ] && grep -qE "$pattern" second.txt && ok || bad "the other: $*: exit status $status, expected $wanted with '$pattern': $(cat second.txt)"
    ! grep -q '()' second.txt || bad "no process is named: $(cat second.txt)"
}
# goes_on STATUS [PATTERN]: the first, from that point to its end
goes_on() {
    local status=0
    kill -CONT $pid || { bad "the first has ended: $(cat first.txt)"; return; }
    wait $pid || status=$?
    [ $status = "$1" ] && grep -qE "${2:-}" first.txt && ok || bad "the first: exit status $status, expected $1 with '${2:-}': $(cat first.txt)"
}
whole() { # RUN
    cmp -s alone/checkpoints/step-000003/model.safetensors "$1/checkpoints/step-000003/model.safetensors" && quiet reproduce "$1" && ok || bad "$1 is not whole: $(cat out.txt)"
}
unsigned='another process writes this run; wait for it'

# a run
train() { echo "$TARE" train tiny.ini $KEYS run.dir="$1"; }
$(train alone) > out.txt 2>&1 || bad "alone: $(cat out.txt)"
first opening 0 $(train run)
second 1 "run: $unsigned" $(train run)
goes_on 0
whole run
first update 2 $(train signed)
second 1 'signed: holds a run already' $(train signed)
second 1 "signed: another process \($pid\) writes this run" "$TARE" train signed --resume
goes_on 0
whole signed
first locking 0 $(train late)
second 0 '' $(train late)
goes_on 1 'late: holds a run already'
whole late
# continued: the lock names the process before until it is signed
$(train more) --until 2 > out.txt 2>&1 || bad "two steps: $(cat out.txt)"
first opening 0 "$TARE" train more --resume
second 1 "more: $unsigned" "$TARE" train more --resume
goes_on 0
whole more
# whoever looks whether a lock is held is waited for
if command -v flock > /dev/null; then
    mkdir looked
    exec 9> looked/lock
    flock -s 9
    first locking 2 $(train looked)
    flock -u 9
    goes_on 0
    whole looked
else
    skip_part "flock is missing"
fi

# a supervised training
sft() { echo "$TARE" sft sft.ini sft.steps=3 sft.out="$1"; }
first update 2 $(sft tuned)
second 1 "tuned.training: another process \($pid\) writes this run" $(sft tuned)
goes_on 0
diff -r made tuned > out.txt && [ ! -e tuned.training ] && ok || bad "supervised: $(cat out.txt)"
for out in after again; do
    first locking 0 $(sft $out)
    second 0 '' $(sft $out)
    [ $out = after ] || rm -r $out # the place is free
    [ $out = after ] && goes_on 1 'sft.out = after was made by another process meanwhile' || goes_on 0
    diff -r made $out > out.txt && [ ! -e $out.training ] && ok || bad "supervised, one after the other: $(cat out.txt)"
done
first locking 0 $(sft stopped)
killed_at update 3 $(sft stopped) checkpoint.every=1 && ok || bad "not killed"
goes_on 1 'stopped.training: holds an unfinished training'
quiet sft sft.ini sft.steps=3 sft.out=stopped --resume && diff -r made stopped > /dev/null && ok || bad "supervised, a training that another one would have begun anew: $(cat out.txt)"

# an evaluation: it is continued by whoever comes, so one that comes after the other has its result
evaluate() { echo "$TARE" eval alone "${@:2}" log.progress=none eval.out="$1"; }
$(evaluate one) > out.txt 2>&1 || bad "an evaluation: $(cat out.txt)"
first questions 8 $(evaluate two) eval.chunk=8
second 1 "two: another process \($pid\) writes this run" $(evaluate two) eval.chunk=8
goes_on 0
first locking 0 $(evaluate three)
second 0 '' $(evaluate three)
goes_on 0
for out in two three; do cmp -s one/samples.jsonl $out/samples.jsonl && cmp -s one/questions.jsonl $out/questions.jsonl && ok || bad "evaluation $out: another result"; done

# a sweep
cp tiny.ini sweep.ini
printf '[sweep]\nname = grid\nbaseline = train.lr=1e-3\ntrain.lr = 1e-3, 5e-4\n' >> sweep.ini
sweep="$TARE sweep sweep.ini $KEYS train.steps=1 sweep.metric=reward/mean sweep.concurrent=1"
first cell 1 $sweep
second 1 "runs/grid: another process \($pid\) writes this run" $sweep
goes_on 0
[ "$(cat runs/grid/*/metrics.jsonl | wc -l)" = 2 ] && ok || bad "a sweep of two cells: $(ls runs/grid)"
for run in runs/grid/*/; do quiet reproduce "$run" && ok || bad "$run: $(cat out.txt)"; done

# a fork: put together in NAME.part, which one process has
fork() { echo "$TARE" fork alone@"$2" --run-dir "$1" log.progress=none "${@:3}"; }
first checkpoint.files 2 $(fork branch 2)
second 1 'branch.part: another process is making this fork; wait for it' $(fork branch 2)
goes_on 0
whole branch
first locking 1 $(fork twig 2)
second 0 '' $(fork twig 2)
goes_on 1 'twig: holds a run already'
whole twig
# the folder is taken where the steps before are made again, too, and when states are left out
rm -r alone/checkpoints/step-000002
for key in '' estimator.plugin=grpo; do
    rm -rf leaf
    first checkpoint.files 1 $(fork leaf 2 $key)
    second 1 'leaf.part: another process is making this fork; wait for it' $(fork leaf 2 $key)
    goes_on 0
    quiet reproduce leaf && ok || bad "a fork between checkpoints: $(cat out.txt)"
    [ -n "$key" ] || whole leaf
done
# and by luck, all at the same time
for i in 1 2 3; do
    pids=''
    for k in 1 2 3; do $(fork luck$i 1) > luck$k.txt 2>&1 & pids="$pids $!"; done
    won=0
    for pid in $pids; do ! wait $pid || won=$((won + 1)); done
    [ $won = 1 ] && [ "$(cat luck?.txt | grep -cE 'another process is making this fork|holds a run already')" = 2 ] && ok || bad "$won of three forks: $(cat luck?.txt)"
    whole luck$i
done
[ -z "$(ls -d ./*.part* ./*.training 2> /dev/null)" ] && ok || bad "left: $(ls -d ./*.part* ./*.training)"
done_
