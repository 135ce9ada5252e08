#!/usr/bin/env bash
# Checks a running process whose files vanish, shrink or change: the run ends in order, or with a
# message that names the missing file. It never ends by a signal, and never as done when its results
# are missing. A resumable run is resumed and bit-identical. A verifier's program changes the files
# in the middle of a step.
. "$(dirname "$0")/common.inc"
tiny_config
for i in $(seq 0 63); do echo "{\"subject\":\"add\",\"question\":\"$((i % 10))+$((i / 10))=\",\"answer\":\"$((i % 10 + i / 10))\"}"; done > rows.jsonl
cat > act.sh <<'SH'
n=0
while IFS= read -r line; do
    n=$((n + 1))
    # In step 5: 32 completions per step, one worker.
    [ $n != 150 ] || [ ! -e action ] || . ./action 1>&2
    case $line in *1*) echo 1 ;; *) echo 0 ;; esac
done
SH
train() { # RUN ...: stores the exit status in `status`
    status=0
    "$TARE" -q train tiny.ini log.progress=none data.train=rows.jsonl data.eval= verifier.plugins=command verifier.workers=1 verifier.command.command='sh act.sh' \
        checkpoint.every=2 train.steps=8 run.dir="$1" "${@:2}" > out.txt 2> err.txt || status=$?
}
by_itself() { # WHAT: checks that the change was made, and how the run ended
    [ -e acted ] && ok || bad "$1: the change was not made"
    [ $status -lt 124 ] && ok || bad "$1: exit status $status: $(tail -1 err.txt)"
    [ $status = 0 ] || { grep -q '^tare: ' err.txt && ok || bad "$1: no message"; }
}
same() { # RUN WHAT
    cmp -s whole/checkpoints/step-000008/model.safetensors "$1/checkpoints/step-000008/model.safetensors" && ok || bad "$2: not bit-identical"
}
# check_planted PLANT WHAT: checks that a faulty program, which ends by a signal, prints nothing, or counts
# as done without its results, is reported (tests/faults/interpose.c).
check_planted() {
    local before=$failed
    touch acted # this check has no action
    LD_PRELOAD=$INTERPOSE TARE_INTERPOSE=alloc=200 TARE_INTERPOSE_PLANT=$1 train planted
    { by_itself "planted $1"; [ $status != 0 ] || same planted "planted $1"; } > told.txt
    [ "$failed" -gt "$before" ] && { failed=$before; ok; } || bad "planted ($1): the faulty program was not reported"
}
fresh() { rm -rf base; cp -r kept base; cp kept.jsonl rows.jsonl; rm -rf run acted; }
"$TARE" -q sft sft.ini 2> err.txt || bad "warm start: $(cat err.txt)"
cp -r base kept
cp rows.jsonl kept.jsonl
train whole
[ $status = 0 ] && ok || { bad "the undisturbed run: $(cat err.txt)"; done_; }
[ ! -e "${INTERPOSE:-}" ] || for plant in crash quiet 'done'; do check_planted "$plant"; done

# The run's inputs are read when it begins: they may vanish, shrink and change.
for action in 'rm rows.jsonl' ': > rows.jsonl' 'tr 0-9 7 < kept.jsonl > rows.jsonl' 'rm base/model.safetensors' ': > base/model.safetensors' 'head -c 5000 kept/model.safetensors > base/model.safetensors'; do
    fresh
    echo "$action; touch acted" > action
    train run
    by_itself "$action"
    [ $status = 0 ] && same run "$action" || bad "$action: $(tail -1 err.txt)"
done
# A checkpoint has the tokenizer's files of the model's folder. Without them no checkpoint is made,
# which is reported; with them the run continues.
for action in 'rm -rf base' 'rm base/tokenizer.json' 'mv base away; mkdir base'; do
    fresh
    rm -rf away
    echo "$action; touch acted" > action
    train run
    by_itself "$action"
    [ "$status" = 1 ] && [ -e run/checkpoints/step-000004/complete.json ] && ok || bad "$action: status $status: $(tail -1 err.txt)"
    rm -f action
    rm -rf base
    cp -r kept base
    train run --resume
    [ $status = 0 ] && same run "$action, resumed" || bad "$action, resumed: $(tail -1 err.txt)"
done
# The run's own folder.
for action in 'rm -rf run' 'rm -rf run/rollouts run/estimator' 'mv run moved' 'rm -rf run/checkpoints' 'rm run/metrics.jsonl' 'rm runs.db' 'rm run/lock run/config.ini run/manifest.json'; do
    fresh
    rm -rf moved runs.db
    echo "$action; touch acted" > action
    train run
    by_itself "$action"
    rm -f action
    if [ $status = 0 ]; then
        [ -e run/checkpoints/step-000008/complete.json ] && same run "$action" || bad "$action: ended as done, but the last checkpoint is missing"
        "$TARE" -q reproduce run > sums.txt 2>&1 || { ! grep -v ': is missing$' sums.txt | grep -vE '^(tare|run): |^note: ' | grep -q . && ok || bad "$action: $(cat sums.txt)"; }
    fi
    [ ! -e moved ] || { rm -rf run; mv moved run; train run --resume; [ $status = 0 ] && same run "$action, resumed" || bad "$action, resumed: $(tail -1 err.txt)"; }
done
# A replaced plugin (moved over, as installers do) is not loaded twice: the run continues with the
# plugin that it began with, and a resumed run reports the change.
plugins=${TARE_PLUGIN_PATH%%:*}
anew() { cp "$plugins/$1" "$2"; } # PLUGIN FILE: replaced by a build that gives the same bytes
# By a build that gives others.
otherwise() { cp "$plugins/$1" new.so; printf x >> new.so; mv new.so "$2"; }
warns() { # FILE
    [ $status = 0 ] && grep "warning: run is resumed with a changed plugin" err.txt | grep -q ": $WORK/$1\$\|: $WORK/$1;" && ok || bad "$1 was replaced, but this was not reported: status $status: $(cat err.txt)"
}
silent() { [ $status = 0 ] && ! grep -q 'changed plugin' err.txt && ok || bad "no plugin was replaced: status $status: $(cat err.txt)"; }
anew estimators/grpo.so mine.so
fresh
echo "cp $plugins/estimators/dr_grpo.so other.so; mv other.so mine.so; touch acted" > action
train run estimator.plugin=./mine.so --until 6
by_itself "a plugin that is exchanged"
rm -f action
cp -r run exchanged
anew estimators/grpo.so mine.so
train again estimator.plugin=./mine.so --until 6
cmp -s run/checkpoints/step-000006/model.safetensors again/checkpoints/step-000006/model.safetensors && ok || bad "a replaced plugin changes a run in the middle"
more() { train run estimator.plugin=./mine.so --resume "$@"; }
more
silent
rm -rf run && mv exchanged run
anew estimators/dr_grpo.so mine.so
more
[ $status = 1 ] && grep -q 'the state of estimator grpo, but the configuration has estimator dr_grpo' err.txt && ok || bad "another estimator accepted the state: $(cat err.txt)"
otherwise estimators/grpo.so mine.so
more --until 7
warns mine.so
more # the newest process counts
silent
for kind in objectives/ppo:objective.plugin curricula/shuffle:curriculum.plugin verifiers/exact:verifier.plugins clusterers/field:codebook.plugin; do
    key=${kind#*:} kind=${kind%:*}
    name=${kind#*/}
    fresh
    anew $kind.so $name.so
    train run $key=./$name.so --until 2
    anew $kind.so $name.so
    train run $key=./$name.so --until 3 --resume
    silent
    otherwise $kind.so $name.so
    train run $key=./$name.so --until 4 --resume
    warns $name.so
    train run $key=./$name.so --until 5 --resume
    silent
done

# Worker processes that are started again after a crash load the same file as their predecessors.
# Otherwise the run ends there, and continues with the new file when allowed.
cp "${FIXTURES:?}/verdicts.so" crash.so
cat > act.sh <<'SH'
while IFS= read -r line; do
    echo >> asked
    # In step 3; each call belongs to a new process.
    [ "$(wc -l < asked)" != 70 ] || [ ! -e action ] || . ./action 1>&2
    case $line in *1*) echo 1 ;; *) echo 0 ;; esac
done
SH
crashing() { train run verifier.plugins='command,./crash.so' verifier.isolate=process verifier.verdicts.always=segfault verifier.max_crash_share=1 train.steps=4 "$@"; }
fresh
: > asked
echo "cp crash.so new.so; printf x >> new.so; mv new.so crash.so; touch acted" > action
crashing
by_itself "a worker's plugin that is exchanged"
[ $status = 1 ] && grep -q "$WORK/crash.so: the file was replaced while in use" err.txt && ok || bad "a worker's plugin was replaced: status $status: $(cat err.txt)"
rm -f action
crashing --resume
warns crash.so
rm -rf run
cp "$FIXTURES/verdicts.so" crash.so
: > asked
echo "cp crash.so new.so; mv new.so crash.so; touch acted" > action
crashing
by_itself "a worker's plugin that is built again"
[ $status = 0 ] && ok || bad "a worker's plugin was built again: $(cat err.txt)"
done_
