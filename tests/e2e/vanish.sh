#!/usr/bin/env bash
# Files go, shrink or change under a running process: the run ends by itself, in order or with a message that names what is missing, never by a signal, and never as
# done when its results are gone; what can be resumed is, with the same bits. A verifier's program does it, in the middle of a step.
. "$(dirname "$0")/common.inc"
tiny_config
for i in $(seq 0 63); do echo "{\"subject\":\"add\",\"question\":\"$((i % 10))+$((i / 10))=\",\"answer\":\"$((i % 10 + i / 10))\"}"; done > rows.jsonl
cat > act.sh <<'SH'
n=0
while IFS= read -r line; do
    n=$((n + 1))
    [ $n != 150 ] || [ ! -e action ] || . ./action 1>&2 # in step 5: 32 completions a step, one worker
    case $line in *1*) echo 1 ;; *) echo 0 ;; esac
done
SH
train() { # RUN ...: exit status in `status`
    status=0
    "$TARE" -q train tiny.ini log.progress=none data.train=rows.jsonl data.eval= verifier.plugins=command verifier.workers=1 verifier.command.command='sh act.sh' \
        checkpoint.every=2 train.steps=8 run.dir="$1" "${@:2}" > out.txt 2> err.txt || status=$?
}
by_itself() { # WHAT
    [ $status -lt 124 ] && ok || bad "$1: exit status $status: $(tail -1 err.txt)"
    [ $status = 0 ] || { grep -q '^tare: ' err.txt && ok || bad "$1: no message"; }
}
same() { # RUN WHAT
    cmp -s whole/checkpoints/step-000008/model.safetensors "$1/checkpoints/step-000008/model.safetensors" && ok || bad "$2: other bits"
}
fresh() { rm -rf base; cp -r kept base; cp kept.jsonl rows.jsonl; rm -rf run; }
"$TARE" -q sft sft.ini 2> err.txt || bad "warm start: $(cat err.txt)"
cp -r base kept
cp rows.jsonl kept.jsonl
train whole
[ $status = 0 ] && ok || { bad "the whole run: $(cat err.txt)"; done_; }

# What the run was made from is read when it begins: it may go, shrink and change.
for action in 'rm rows.jsonl' ': > rows.jsonl' 'tr 0-9 7 < kept.jsonl > rows.jsonl' 'rm base/model.safetensors' ': > base/model.safetensors' 'head -c 5000 kept/model.safetensors > base/model.safetensors'; do
    fresh
    echo "$action; touch acted" > action
    rm -f acted
    train run
    [ -e acted ] && ok || bad "$action: was not done"
    by_itself "$action"
    [ $status = 0 ] && same run "$action" || bad "$action: $(tail -1 err.txt)"
done
# A checkpoint has the tokenizer's files of the model's folder: without it there is none, it is told, and with it the run continues.
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
# The run's own folder
for action in 'rm -rf run' 'rm -rf run/rollouts run/estimator' 'mv run moved' 'rm -rf run/checkpoints' 'rm run/metrics.jsonl' 'rm runs.db' 'rm run/lock run/config.ini run/manifest.json'; do
    fresh
    rm -rf moved runs.db
    echo "$action; touch acted" > action
    train run
    by_itself "$action"
    rm -f action
    if [ $status = 0 ]; then
        [ -e run/checkpoints/step-000008/complete.json ] && same run "$action" || bad "$action: called done, and the last checkpoint is not there"
        "$TARE" -q verify-run run > sums.txt 2>&1 || { ! grep -v ': is missing$' sums.txt | grep -vE '^(tare|run): |^note: ' | grep -q . && ok || bad "$action: $(cat sums.txt)"; }
    fi
    [ ! -e moved ] || { rm -rf run; mv moved run; train run --resume; [ $status = 0 ] && same run "$action, resumed" || bad "$action, resumed: $(tail -1 err.txt)"; }
done
# A plugin that is exchanged (moved over, as installers do) is not loaded twice: the run goes on with the one it began with, and a resumed run says that it is another.
mkdir -p plugins/estimators
cp "${TARE_PLUGIN_PATH%%:*}/estimators/grpo.so" mine.so
fresh
echo "cp ${TARE_PLUGIN_PATH%%:*}/estimators/dr_grpo.so other.so; mv other.so mine.so" > action
train run estimator.plugin=./mine.so
by_itself "a plugin that is exchanged"
rm -f action
cp "${TARE_PLUGIN_PATH%%:*}/estimators/grpo.so" mine.so
train again estimator.plugin=./mine.so
cmp -s run/checkpoints/step-000008/model.safetensors again/checkpoints/step-000008/model.safetensors && ok || bad "a plugin that is exchanged changes a run in the middle"
done_
