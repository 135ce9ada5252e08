#!/usr/bin/env bash
# Checks that a verifier's error ends a run but keeps the steps before it: a checkpoint of the last
# complete step is saved, the error names it, and the resumed run is bit-identical to one whose
# verifier never failed. The error comes in the first round of a step, and in a later round, when
# clusters are counted already.
. "$(dirname "$0")/common.inc"
tiny_config
"$TARE" -q sft sft.ini 2> /dev/null
# The verifier counts its calls. While the file `fail` names a count, it answers that call without
# JSON.
cat > judge.sh << 'SH'
n=$(cat "$1/count" 2> /dev/null || echo 0)
while read -r line; do
    n=$((n + 1))
    echo $n > "$1/count"
    if [ "$(cat "$1/fail" 2> /dev/null)" = $n ]; then echo nonsense; continue; fi
    case $line in *[02468]\",*) echo '{"reward":1}' ;; *) echo '{"reward":0}' ;; esac
done
SH
printf '[verifier.command]\ncommand = sh %s/judge.sh %s\n' "$WORK" "$WORK" >> tiny.ini
train() { "$TARE" -q train tiny.ini log.progress=none verifier.plugins=command verifier.workers=1 eval.before=false eval.after=false data.eval= train.steps=6 checkpoint.every=100 "$@" > out.txt 2> err.txt; }
records() { sed -E 's/"(time|memory|speculation)\/[^"]*":[^,}]*,?//g; s/"tokens_per_second":[^,}]*,?//g; s/,}/}/' "$1/metrics.jsonl"; }
same() { # RUN WHAT
    for f in model.safetensors training.state optimizer-00000-of-00001.state; do
        [ ! -e "whole/checkpoints/step-000006/$f" ] || { cmp -s "whole/checkpoints/step-000006/$f" "$1/checkpoints/step-000006/$f" && ok || bad "$2: $f differs"; }
    done
    cmp -s <(records whole) <(records "$1") && ok || bad "$2: the metrics differ"
    "$TARE" -q reproduce "$1" > sums.txt 2>&1 && ok || bad "$2: checksums: $(tail -n 2 sums.txt)"
}
tried() { # WHAT COUNT STEP option...: the verifier fails at that count, in the step after STEP
    local what=$1 count=$2 step=$3 status=0
    shift 3
    rm -rf run count
    echo "$count" > fail
    train run.dir=run "$@" || status=$?
    [ $status = 1 ] && [ "$(wc -l < err.txt)" = 1 ] && grep "^tare: step $((step + 1)), verify: row .*; step $step, the last complete one, is saved: tare train .*run --resume$" err.txt > found.txt && ok ||
        bad "$what: status $status: $(cat err.txt)"
    [ -e "run/checkpoints/step-00000$step/complete.json" ] && ok || bad "$what: no checkpoint of step $step: $(ls run/checkpoints 2> /dev/null)"
    rm fail
    train run.dir=run "$@" --resume && ok || bad "$what: the run does not continue: $(cat err.txt)"
    same run "$what"
}
rm -f count
train run.dir=whole && ok || { bad "a run whose verifier does not fail: $(cat err.txt)"; done_; }
asked=$(cat count)
[ "$asked" = 192 ] && ok || bad "the verifier was called $asked times, expected 192"
tried "in the fourth step" 100 3
tried "in the second step, the last of its answers" 64 1
# Before the first step there is nothing to save.
rm -rf run count
echo 5 > fail
train run.dir=run && bad "the verifier's error does not end the run"
grep '^tare: step 1, verify: row ' err.txt > found.txt && ! grep saved err.txt > found.txt && [ ! -e run/checkpoints/step-000000 ] && ok || bad "in the first step: $(cat err.txt)"
# Started again, the run names the two remedies, and both work.
rm fail
train run.dir=run && bad "a run was overwritten"
grep 'run: holds a run already, without a checkpoint; remove the folder to start over, or --resume starts at the first step again' err.txt > found.txt && ok || bad "started again after a first step that failed: $(cat err.txt)"
train run.dir=run --resume && ok || bad "resumed from the first step: $(cat err.txt)"
same run 'resumed from the first step'
train run.dir=run && bad "a run was overwritten"
grep 'run: holds a run already; --resume continues it' err.txt > found.txt && ok || bad "started again although there are checkpoints: $(cat err.txt)"
rm -r run && train run.dir=run && ok || bad "started from the beginning: $(cat err.txt)"
same run 'started from the beginning'
# Dropped groups are replaced: the error comes in a round after the first, when the groups of the
# first round are counted in their clusters.
rm -rf whole fail count
more="estimator.plugin=dapo"
train run.dir=whole $more && ok || bad "with replaced groups: $(cat err.txt)"
asked=$(cat count)
[ "$asked" -gt 192 ] && ok || bad "no group was replaced: $asked"
in_round=0 before=0
# The groups sampled by the step, with four answers each; the first 32 answers are those of its
# first round.
for step in $(seq 6); do
    groups=$(sed -n "${step}p" whole/metrics.jsonl | sed -n 's/.*"rollout\/groups_sampled":\([0-9]*\).*/\1/p')
    count=$((before + 33)) before=$((before + 4 * groups))
    [ "$step" -gt 1 ] && [ "$groups" -gt 8 ] || continue
    tried "in a later round of step $step" $count $((step - 1)) $more
    in_round=$((in_round + 1))
done
[ $in_round -ge 1 ] && ok || bad "no step after the first replaced a group"
done_
