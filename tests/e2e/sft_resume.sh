#!/usr/bin/env bash
# tare sft, killed with SIGKILL at random moments and resumed each time, writes the model that an uninterrupted one writes, bit for bit, from f32 and from
# bf16 weights; SIGINT leaves a checkpoint; a warm start that was interrupted goes on by itself; what does not belong to the training is refused.
. "$(dirname "$0")/common.inc"
tiny_config
sft() { "$TARE" sft sft.ini sft.steps=60 checkpoint.every=4 "$@" > /dev/null 2>> log.txt; }
newest() { ls "$1.training/checkpoints" 2> /dev/null | grep 'step-[0-9]*$' | tail -1 | tr -dc 0-9 || true; }
behind() { # FOLDER STEP PID: waits until there is a checkpoint of at least that step
    while kill -0 "$3" 2> /dev/null; do
        local step
        step=$(newest "$1")
        [ -n "$step" ] && [ "$((10#$step))" -ge "$2" ] && return
        sleep 0.01
    done
}

kill_and_resume() { # NAME [key=value ...]
    local name=$1 kills=0 tries=0 resume= at pid
    shift
    sft sft.out=whole-$name "$@" || { bad "$name: the whole training failed"; tail -3 log.txt; return; }
    [ ! -e whole-$name.training ] && ok || bad "$name: checkpoints are left behind the result"
    while [ $kills -lt 3 ] && [ $tries -lt 20 ]; do
        tries=$((tries + 1))
        "$TARE" sft sft.ini sft.steps=60 checkpoint.every=4 sft.out=broken-$name "$@" $resume > /dev/null 2>> log.txt &
        pid=$!
        at=$((16 * kills + 4 + RANDOM % 13))
        behind broken-$name $at $pid
        sleep 0.0$((RANDOM % 6))
        kill -9 $pid 2> /dev/null && kills=$((kills + 1))
        wait $pid 2> /dev/null || true
        [ -e broken-$name ] && { bad "$name: it was done before it was killed"; return; }
        [ -d broken-$name.training ] && resume=--resume
    done
    [ $kills = 3 ] && ok || bad "$name: only $kills kills hit a running process"
    sft sft.out=broken-$name "$@" $resume || { bad "$name: the resumed training failed"; tail -3 log.txt; }
    diff -r whole-$name broken-$name > /dev/null && ok || bad "$name: the models differ"
    [ ! -e broken-$name.training ] && ok || bad "$name: checkpoints are left behind the resumed result"
}
kill_and_resume f32
grep -q 'going on behind step' log.txt && ok || bad "no run went on from a checkpoint"
kill_and_resume bf16 model.dtype=bf16 model.save_dtype=bf16 sft.train_on_prompt=true

# SIGINT: behind the step under way, with a checkpoint of it
"$TARE" sft sft.ini sft.steps=60 checkpoint.every=4 sft.out=stopped > /dev/null 2> err.txt &
pid=$!
behind stopped 8 $pid
kill -INT $pid
status=0
wait $pid || status=$?
[ $status = 130 ] && grep -q 'interrupted behind step [0-9]* of 60; go on with --resume' err.txt && ok || { bad "SIGINT: exit status $status"; cat err.txt; }
step=$(sed -n 's/.*interrupted behind step \([0-9]*\) of.*/\1/p' err.txt)
[ "$((10#$(newest stopped)))" = "$step" ] && ok || bad "SIGINT: no checkpoint of step $step"

refused() { # WHAT PATTERN [argument ...]
    local what=$1 pattern=$2 status=0
    shift 2
    "$TARE" sft sft.ini sft.steps=60 "$@" > /dev/null 2> err.txt || status=$?
    [ $status != 0 ] && grep -q "$pattern" err.txt && ok || { bad "$what: exit status $status"; cat err.txt; }
}
refused "a second start" 'holds a training that was not finished; --resume' sft.out=stopped
refused "another seed" 'run.seed is not what this run was started with' sft.out=stopped run.seed=2 --resume
refused "another batch" 'sft.batch is not what this run was started with' sft.out=stopped sft.batch=16 --resume
refused "nothing to resume" 'no training to resume is there' sft.out=nothing --resume
[ ! -e nothing.training ] && ok || bad "a refused start leaves a folder"
sft sft.out=stopped --resume || bad "resumed behind SIGINT: failed"
diff -r whole-f32 stopped > /dev/null && ok || bad "resumed behind SIGINT: the models differ"

# as a warm start: the same command again
sed -i 's/^steps = 30/steps = 60/; $a [checkpoint]\nevery = 4' sft.ini
"$TARE" train tiny.ini run.dir=run log.progress=none train.steps=1 > /dev/null 2>> log.txt &
pid=$!
behind base 8 $pid
kill -9 $pid
wait $pid 2> /dev/null || true
[ ! -e base ] && [ -n "$(newest base)" ] && ok || bad "the warm start was not interrupted"
"$TARE" train tiny.ini run.dir=run log.progress=none train.steps=1 > /dev/null 2> err.txt && ok || { bad "train behind an interrupted warm start"; cat err.txt; }
grep -q 'going on behind step' err.txt && ok || bad "the warm start did not go on"
diff -r whole-f32 base > /dev/null && ok || bad "the warm start's model differs"
done_
