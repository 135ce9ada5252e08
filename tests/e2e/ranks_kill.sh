#!/usr/bin/env bash
# Kills a rank in each stage. The job ends everywhere, long before dist.timeout_s (1800), with one
# message that names rank, stage and cause. The last checkpoint is intact, and --resume continues on
# another number of ranks, bit-identical to a run that was never killed. Then several kills in a row
# at random points: RANKS_KILLS of them (3; bench/ranks_kills.sh runs ten).
. "$(dirname "$0")/ranks.inc"
tiny_config
KILLS=${RANKS_KILLS:-3}
STEPS=8
"$TARE" sft sft.ini 2> /dev/null
run() { # RANKS [key=value ...]
    local n=$1
    shift
    timeout 600 $MPIRUN -n "$n" "$TARE" -q train tiny.ini log.progress=none log.rollouts=true train.steps=$STEPS checkpoint.every=2 "$@"
}
whole() { # checks that the last complete checkpoint of a run can be read, and prints its step
    local last
    last=$(ls "$1/checkpoints" 2> /dev/null | grep -x 'step-[0-9]*' | tail -1)
    [ -n "$last" ] && [ -s "$1/checkpoints/$last/complete.json" ] && echo "$last"
}
same() { # RUN: is bit-identical to the run that was never killed
    cmp -s "whole/checkpoints/step-00000$STEPS/model.safetensors" "$1/checkpoints/step-00000$STEPS/model.safetensors"
}
run 2 run.dir=whole > out.txt 2> err.txt || { bad "the undisturbed run failed"; cat err.txt; done_; exit 1; }

# Weights that overflow on every rank: all ranks go back to the same checkpoint, and again after a
# kill.
for i in $(seq 0 63); do echo "{\"subject\":\"add\",\"question\":\"$((i % 10))+1=\",\"answer\":\"$([ "$i" = 43 ] && echo huge || echo $((i % 10 + 1)))\"}"; done > rows.jsonl
back() { # RANKS RUN ...: the sixth step overflows
    local n=$1 dir=$2
    shift 2
    run "$n" run.dir="$dir" data.train=rows.jsonl data.shuffle=false data.eval= verifier.plugins="${FIXTURES:?}/overflows.so" estimator.plugin=dr_grpo train.on_nonfinite=rollback "$@"
}
back 1 back1 2> err.txt && back 2 back2 2> err.txt && ok || bad "a rollback on two ranks fails: $(tail -2 err.txt)"
TARE_FAULT=rank=1,stage=rollback,step=6,kind=kill back 2 back3 2> err.txt && bad "no rank was killed in a rollback"
back 3 back3 --resume 2> err.txt && ok || bad "a killed rollback cannot be resumed: $(tail -2 err.txt)"
for dir in back2 back3; do
    cmp -s "back1/checkpoints/step-00000$STEPS/model.safetensors" "$dir/checkpoints/step-00000$STEPS/model.safetensors" && [ "$(grep -c '"rollbacks":1' $dir/metrics.jsonl)" = 3 ] &&
        ok || bad "$dir: a rollback on several ranks is not bit-identical"
done

ranks=2
for stage in rollout verify update checkpoint; do
    step=5
    [ $stage = checkpoint ] && step=6
    for kind in kill fail; do
        dir=$stage-$kind
        status=0
        TARE_FAULT=rank=1,stage=$stage,step=$step,kind=$kind timeout 600 $MPIRUN -n $ranks "$TARE" -q train tiny.ini log.progress=none \
            train.steps=$STEPS checkpoint.every=2 log.rollouts=true run.dir=$dir > out.txt 2> err.txt || status=$?
        [ $status != 0 ] && [ $status != 124 ] && ok || bad "$stage, $kind: exit status $status"
        [ "$(messages err.txt)" = 1 ] && ok || { bad "$stage, $kind: $(messages err.txt) messages"; cat err.txt; }
        grep -q "^tare: rank 1 (host .*) failed in $stage of step $step: " err.txt && ok || { bad "$stage, $kind: the message lacks the rank, the stage or the step"; cat err.txt; }
        [ "$(left_behind)" = 0 ] && ok || bad "$stage, $kind: a process remains"
        [ "$(whole $dir)" = step-000004 ] && ok || bad "$stage, $kind: last checkpoint $(whole $dir), expected step-000004"
        [ $kind = fail ] && continue
        other=$((ranks == 2 ? 4 : 2))
        run $other run.dir=$dir --resume > out.txt 2> err.txt && ok || { bad "$stage: does not continue with $other ranks"; cat err.txt; }
        same $dir && ok || bad "$stage: resumed with $other ranks, the weights differ"
        ranks=$other
    done
done

# A hang is found by its timeout. So is a rank that a busy machine keeps from its work for that
# long, hence the second attempt.
for seconds in 10 100; do
    rm -rf hang
    status=0
    TARE_FAULT=rank=1,stage=update,step=3,kind=hang timeout 600 $MPIRUN -n 2 "$TARE" -q train tiny.ini log.progress=none train.steps=$STEPS checkpoint.every=2 \
        run.dir=hang dist.timeout_s=$seconds > out.txt 2> err.txt || status=$?
    grep -q "^tare: rank 1 (host .*) failed in update of step 3: it hangs; rank 0 has waited for it in " err.txt && break
done
[ $status != 0 ] && [ $status != 124 ] && ok || bad "hang: exit status $status"
grep -q "^tare: rank 1 (host .*) failed in update of step 3: it hangs; rank 0 has waited for it in " err.txt && ok || { bad "hang: the message does not name it"; cat err.txt; }
[ "$(messages err.txt)" = 1 ] && [ "$(left_behind)" = 0 ] && ok || bad "hang: more than one message, or a process remains"
run 2 run.dir=hang --resume > out.txt 2> err.txt && same hang && ok || bad "hang: not bit-identical after --resume: $(tail -2 err.txt)"

# An evaluation has no --resume: the same command continues it.
status=0
TARE_FAULT=rank=1,stage=questions,step=1,kind=kill timeout 600 $MPIRUN -n 2 "$TARE" -q eval tiny.ini eval.out=answers eval.chunk=1 > out.txt 2> err.txt || status=$?
[ $status != 0 ] && [ $status != 124 ] && grep 'rank 1 .*; the job ends on all ranks, the same command resumes from the saved answers$' err.txt > found.txt && ok ||
    { bad "a killed evaluation: exit status $status"; cat err.txt; }
grep -e --resume err.txt > found.txt && bad "an evaluation has no --resume: $(cat err.txt)" || ok

# Several kills in a row, each resumed on another number of ranks: any rank, any stage, some
# milliseconds into it (drawn by RANKS_SEED). A kill that comes after the end hits no rank and is
# tried again.
RANDOM=${RANKS_SEED:-1}
STAGES=(data rollout verify gather cluster estimate update apply evaluate)
hits=0 tries=0 resume=
while [ $hits -lt "$KILLS" ] && [ $tries -lt $((6 * KILLS)) ]; do
    tries=$((tries + 1))
    n=$((2 + RANDOM % 3))
    last=$(whole random || true)
    step=$((10#0${last#step-} + 1 + RANDOM % 2))
    [ $step -lt $STEPS ] || { rm -rf random; resume=; step=2; }
    fault="rank=$((RANDOM % n)),stage=${STAGES[RANDOM % ${#STAGES[@]}]},step=$step,kind=kill,after=0.00$((RANDOM % 10))"
    status=0
    TARE_FAULT=$fault run $n run.dir=random $resume > out.txt 2> err.txt || status=$?
    if [ $status != 0 ]; then
        hits=$((hits + 1))
        [ $status != 124 ] && ok || bad "kill $hits ($fault): the job does not end"
        [ "$(messages err.txt)" = 1 ] && ok || { bad "kill $hits ($fault): $(messages err.txt) messages"; cat err.txt; }
        [ "$(left_behind)" = 0 ] && ok || bad "kill $hits ($fault): a process remains"
        echo "kill $hits: $n ranks, $fault: $(grep -o 'rank [0-9]* .*: ' err.txt | head -1)"
    fi
    resume=
    [ -n "$(whole random)" ] && resume=--resume || rm -rf random
done
[ $hits = "$KILLS" ] && ok || bad "only $hits of $KILLS kills hit a running rank"
run 3 run.dir=random $resume > out.txt 2> err.txt && ok || { bad "the run does not continue after the kills"; cat err.txt; }
same random && ok || bad "after $hits kills the weights differ"
done_
