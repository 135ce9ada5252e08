#!/usr/bin/env bash
# Checks that of two processes writing into one folder at the same time, one gets the folder and its
# result is complete and equal to that of a process which was alone; the other ends with a message
# and an exit status. The second process meets the lock before it is signed, after it is signed, or
# starts when the first has ended although its folder did not exist at the second's first look.
. "$(dirname "$0")/common.inc"
tiny_config
KEYS="train.steps=3 checkpoint.every=1 checkpoint.keep=3 eval.before=false eval.after=false log.progress=none"
quiet() { "$TARE" -q "$@" > out.txt 2>&1; }
quiet sft sft.ini sft.steps=3 && cp -r base made || { bad "the model was not made: $(cat out.txt)"; done_; exit 1; }
# first STAGE STEP command...: runs the command until it stops itself at that point.
first() { frozen_at "$@" > first.txt 2>&1 && ok || bad "not stopped: $*: $(cat first.txt)"; }
# second STATUS PATTERN command...: runs the same command at that time and checks its status and
# message.
second() {
    local status=0 wanted=$1 pattern=$2
    shift 2
    "$@" > second.txt 2>&1 || status=$?
    [ $status = "$wanted" ] && grep -qE "$pattern" second.txt && ok || bad "the other: $*: exit status $status, expected $wanted with '$pattern': $(cat second.txt)"
    ! grep -q '()' second.txt || bad "the message names no process: $(cat second.txt)"
}
# goes_on STATUS [PATTERN]: lets the first command continue from that point to its end.
goes_on() {
    local status=0
    kill -CONT $pid || { bad "the first has ended: $(cat first.txt)"; return; }
    wait $pid || status=$?
    [ $status = "$1" ] && grep -qE "${2:-}" first.txt && ok || bad "the first: exit status $status, expected $1 with '${2:-}': $(cat first.txt)"
}
whole() { # RUN
    cmp -s alone/checkpoints/step-000003/model.safetensors "$1/checkpoints/step-000003/model.safetensors" && quiet reproduce "$1" && ok || bad "$1 is not complete or not equal: $(cat out.txt)"
}
unsigned='another process writes this run; wait for it'

# a run
train() { echo "$TARE" train tiny.ini $KEYS run.dir="$1"; }
$(train alone) > out.txt 2>&1 || bad "run alone: $(cat out.txt)"
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
# A resumed run: until the lock is signed, it names the previous process.
$(train more) --until 2 > out.txt 2>&1 || bad "two steps: $(cat out.txt)"
first opening 0 "$TARE" train more --resume
second 1 "more: $unsigned" "$TARE" train more --resume
goes_on 0
whole more
# A process that checks whether a lock is held holds it for a moment; the others wait for it.
if command -v flock > /dev/null; then
    mkdir looked
    exec 9> looked/lock
    flock -s 9
    first locking 2 $(train looked)
    flock -u 9
    goes_on 0
    whole looked
else
    skip_part "flock is not installed"
fi

# Supervised training.
sft() { echo "$TARE" sft sft.ini sft.steps=3 sft.out="$1"; }
first update 2 $(sft tuned)
second 1 "tuned.training: another process \($pid\) writes this run" $(sft tuned)
goes_on 0
diff -r made tuned > out.txt && [ ! -e tuned.training ] && ok || bad "supervised training: $(cat out.txt)"
for out in after again; do
    first locking 0 $(sft $out)
    second 0 '' $(sft $out)
    [ $out = after ] || rm -r $out # the folder is free
    [ $out = after ] && goes_on 1 'sft.out = after was made by another process meanwhile' || goes_on 0
    diff -r made $out > out.txt && [ ! -e $out.training ] && ok || bad "two supervised trainings, one after the other: $(cat out.txt)"
done
first locking 0 $(sft stopped)
killed_at update 3 $(sft stopped) checkpoint.every=1 && ok || bad "not killed"
goes_on 1 'stopped.training: holds an unfinished training'
quiet sft sft.ini sft.steps=3 sft.out=stopped --resume && diff -r made stopped > /dev/null && ok || bad "a second supervised training started from the beginning: $(cat out.txt)"

# An evaluation: the second process continues the first one's samples, so it gets the same result.
evaluate() { echo "$TARE" eval alone "${@:2}" log.progress=none eval.out="$1"; }
$(evaluate one) > out.txt 2>&1 || bad "an evaluation: $(cat out.txt)"
first questions 8 $(evaluate two) eval.chunk=8
second 1 "two: another process \($pid\) writes this run" $(evaluate two) eval.chunk=8
goes_on 0
first locking 0 $(evaluate three)
second 0 '' $(evaluate three)
goes_on 0
for out in two three; do cmp -s one/samples.jsonl $out/samples.jsonl && cmp -s one/questions.jsonl $out/questions.jsonl && ok || bad "evaluation $out: the result differs"; done

# A sweep.
cp tiny.ini sweep.ini
printf '[sweep]\nname = grid\nbaseline = train.lr=1e-3\ntrain.lr = 1e-3, 5e-4\n' >> sweep.ini
sweep="$TARE sweep sweep.ini $KEYS train.steps=1 sweep.metric=reward/mean sweep.concurrent=1"
first cell 1 $sweep
second 1 "runs/grid: another process \($pid\) writes this run" $sweep
goes_on 0
[ "$(cat runs/grid/*/metrics.jsonl | wc -l)" = 2 ] && ok || bad "a sweep of two cells: $(ls runs/grid)"
for run in runs/grid/*/; do quiet reproduce "$run" && ok || bad "$run: $(cat out.txt)"; done

# A fork is assembled in NAME.part, which only one process holds.
fork() { echo "$TARE" fork alone@"$2" --run-dir "$1" log.progress=none "${@:3}"; }
first checkpoint.files 2 $(fork branch 2)
second 1 'branch.part: another process is making this fork; wait for it' $(fork branch 2)
goes_on 0
whole branch
first locking 1 $(fork twig 2)
second 0 '' $(fork twig 2)
goes_on 1 'twig: holds a run already'
whole twig
# The folder is also locked while steps between two checkpoints are recomputed and when states are
# left out.
rm -r alone/checkpoints/step-000002
for key in '' estimator.plugin=grpo; do
    rm -rf leaf
    first checkpoint.files 1 $(fork leaf 2 $key)
    second 1 'leaf.part: another process is making this fork; wait for it' $(fork leaf 2 $key)
    goes_on 0
    quiet reproduce leaf && ok || bad "a fork between checkpoints: $(cat out.txt)"
    [ -n "$key" ] || whole leaf
done
# Several forks started at the same time without synchronisation.
for i in 1 2 3; do
    pids=''
    for k in 1 2 3; do $(fork luck$i 1) > luck$k.txt 2>&1 & pids="$pids $!"; done
    won=0
    for pid in $pids; do ! wait $pid || won=$((won + 1)); done
    [ $won = 1 ] && [ "$(cat luck?.txt | grep -cE 'another process is making this fork|holds a run already')" = 2 ] && ok || bad "$won of three forks succeeded: $(cat luck?.txt)"
    whole luck$i
done
[ -z "$(ls -d ./*.part* ./*.training 2> /dev/null)" ] && ok || bad "files remain: $(ls -d ./*.part* ./*.training)"
done_
