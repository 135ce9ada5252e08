#!/usr/bin/env bash
# Checks train.on_nonfinite: rows whose reward (1e60, finite) makes the gradient overflow stop a
# run, cost it an optimizer step, or send it back to a checkpoint. A run that went back, was killed
# around it, interrupted, resumed, or repeated on other ranks, ends bit-identical. It goes back a
# bounded number of times.
. "$(dirname "$0")/common.inc"
tiny_config
rows() { # FILE STEPS...: 24 steps of 8 rows; the named steps have a row that overflows
    local file=$1 bad=" ${*:2} " i
    for ((i = 0; i < 192; i++)); do
        local a=$((i % 10)) b=$((i / 10 % 10))
        if [ $((i % 8)) = 3 ] && [[ $bad == *" $((i / 8 + 1)) "* ]]; then
            echo "{\"subject\":\"add\",\"question\":\"$a+$b=\",\"answer\":\"huge\"}"
        else
            echo "{\"subject\":\"add\",\"question\":\"$a+$b=\",\"answer\":\"$((a + b))\"}"
        fi
    done > "$file"
}
rows one.jsonl 8
rows many.jsonl {7..24}
train() { "$TARE" train tiny.ini log.progress=none data.train="$data" data.shuffle=false data.eval= verifier.plugins="${FIXTURES:?}/overflows.so" \
    estimator.plugin=dr_grpo train.on_nonfinite=rollback "$@" > out.txt 2> err.txt; }
records() { # RUN: prints every metric except times and sizes
    sed -E 's/"(time|memory|speculation)\/[^"]*":[^,}]*,?//g; s/"tokens_per_second":[^,}]*,?//g' "$1/metrics.jsonl"
}
same_as_whole() { # RUN WHAT
    cmp -s whole/checkpoints/step-000012/model.safetensors "$1/checkpoints/step-000012/model.safetensors" && ok || bad "$2: the weights differ"
    records whole > a
    records "$1" > b
    cmp -s a b && ok || bad "$2: the metrics differ: $(diff a b | head -3)"
    "$TARE" reproduce "$1" > sums.txt 2>&1 && ok || bad "$2: reproduce: $(tail -3 sums.txt)"
    grep -A4 '"rollbacks"' "$1/manifest.json" | grep -q '"to": 6' && [ "$(grep -c '"to":' "$1/manifest.json")" = 1 ] && ok || bad "$2: the manifest does not record it exactly once"
}
"$TARE" sft sft.ini 2> /dev/null || bad "warm start"

data=one.jsonl
train run.dir=stop train.on_nonfinite=stop && bad "an overflow does not stop the run"
grep -q '^tare: step 8, update: .*not finite' err.txt && ok || bad "the error has no place: $(cat err.txt)"
train run.dir=skip train.on_nonfinite=skip && ok || bad "skip: $(tail -2 err.txt)"
grep '"step":8,' skip/metrics.jsonl > line && grep -q '"skipped_updates":1' line && ok || bad "a skipped step is not counted: $(cat line)"

train run.dir=whole && ok || { bad "rollback: $(tail -2 err.txt)"; done_; }
grep -q 'back to the checkpoint of step 6; step 8 is repeated' err.txt && ok || bad "it is not reported: $(cat err.txt)"
[ "$(grep -c '"rollbacks":1' whole/metrics.jsonl)" = 5 ] && ! sed -n 7p whole/metrics.jsonl | grep -q rollbacks && ok || bad "the metrics do not count it from step 8 on"
[ "$(wc -l < whole/metrics.jsonl)" = 12 ] && ok || bad "$(wc -l < whole/metrics.jsonl) lines of metrics for 12 steps"
cmp -s base/model.safetensors whole/checkpoints/step-000012/model.safetensors && bad "nothing is learnt" || ok
same_as_whole whole "as it was made"

for at in rollback:8 sample:8 update:8 rollback:8:again apply:8 recorded:8 data:9 checkpoint.files:9 checkpoint.named:9 update:11; do
    IFS=: read -r point step again <<< "$at"
    rm -rf broken
    killed_at "$point" "$step" train run.dir=broken || { bad "not killed at $at"; continue; }
    "$TARE" reproduce broken > sums.txt 2>&1 && ok || bad "killed at $at: reproduce: $(tail -3 sums.txt)"
    [ -z "$again" ] || killed_at "$point" "$step" train run.dir=broken --resume || bad "not killed twice at $at"
    train run.dir=broken --resume && ok || bad "killed at $at: $(tail -2 err.txt)"
    same_as_whole broken "killed at $at"
done

# An interruption leaves a checkpoint between those of checkpoint.every: the run does not go back to
# it, and checkpoint.keep keeps the one that it goes back to.
for at in step=7 step=8 step=8,count=2; do # the last: in the step that is repeated
    rm -rf broken
    TARE_FAULT=stage=data,$at,kind=stop train run.dir=broken checkpoint.keep=1 && bad "not interrupted at $at"
    grep -q '^tare: interrupted after step' err.txt && ok || bad "$at: $(tail -2 err.txt)"
    train run.dir=broken --resume checkpoint.keep=1 && ok || bad "interrupted at $at: $(tail -2 err.txt)"
    same_as_whole broken "interrupted at $at"
done
"$TARE" reproduce whole --steps 11 > out.txt 2>&1 && ok || bad "a step after a rollback cannot be reproduced: $(tail -3 out.txt)"
train run.dir=replay checkpoint.keep=0 && "$TARE" reproduce replay --steps 7-9 > out.txt 2>&1 && ok || bad "the steps of a rollback cannot be reproduced: $(tail -3 out.txt)"

# A curriculum's state goes back as well: it learns from the repeated steps only once, also when the
# run is killed there.
of_curriculum() { train curriculum.plugin=replay "$@"; }
of_curriculum run.dir=chosen && ok || bad "a curriculum with a state: $(tail -2 err.txt)"
grep -q 'back to the checkpoint of step' err.txt && ok || bad "the curriculum never met the row that overflows: $(cat err.txt)"
back=$(sed -n 's/.*back to the checkpoint of step [0-9]*; step \([0-9]*\) is repeated.*/\1/p' err.txt | head -n 1)
for at in "rollback:$back" "data:$((back + 1))" "apply:$back"; do
    rm -rf broken
    killed_at "${at%:*}" "${at#*:}" of_curriculum run.dir=broken || { bad "a curriculum: not killed at $at"; continue; }
    of_curriculum run.dir=broken --resume && ok || bad "a curriculum, killed at $at: $(tail -2 err.txt)"
    cmp -s chosen/checkpoints/step-000012/model.safetensors broken/checkpoints/step-000012/model.safetensors &&
        cmp -s chosen/checkpoints/step-000012/training.state broken/checkpoints/step-000012/training.state && ok || bad "a curriculum, killed at $at: other weights or states"
done

# A spike is finite: it is reported at its step only, and not before twenty steps.
rows one.jsonl 10 23
sed -i s/huge/high/ one.jsonl
train run.dir=spike train.lr=1e-5 train.steps=24 && [ "$(grep -c 'gradient norm spiked' err.txt)" = 1 ] &&
    grep -qE 'step 23: the gradient norm spiked to [0-9.e+-]+, (more than 10000|[0-9]{2,5}) times the median of the 20 steps before' err.txt && ok || bad "a spike: $(cat err.txt)"
rows one.jsonl 8

# Bounds
data=many.jsonl
train run.dir=many && bad "ten steps that overflow do not end the run"
grep -q 'the run has rolled back 3 times (train.max_rollbacks) and stops' err.txt && [ "$(wc -l < many/metrics.jsonl)" = 6 ] && ok || bad "no bound: $(tail -2 err.txt)"
train run.dir=many --resume && bad "a resumed run has other bounds"
data=one.jsonl
TARE_FAULT=stage=sample,step=8,kind=nan train run.dir=sampler && bad "logits that are never finite do not end the run"
grep -q 'rolled back 3 times' err.txt && grep -q 'step 8, rollout' err.txt && ok || bad "the sampler: $(tail -2 err.txt)"
rows one.jsonl 2
train run.dir=early && bad "without a checkpoint to go back to, the run did not end"
grep -q 'missing checkpoint of step 0' err.txt && ok || bad "before the first checkpoint: $(tail -2 err.txt)"
rows one.jsonl 8
TARE_FAULT=stage=update,step=8,kind=kill train run.dir=flipped 2> /dev/null || true
printf '\001' | dd of=flipped/checkpoints/step-000003/training.state bs=1 seek=100 conv=notrunc 2> /dev/null
printf '\001' | dd of=flipped/checkpoints/step-000006/training.state bs=1 seek=100 conv=notrunc 2> /dev/null
train run.dir=flipped --resume && bad "a damaged checkpoint was used"
for keys in checkpoint.every=0 checkpoint.optimizer=false; do
    train run.dir=keys $keys && bad "rollback with $keys was accepted"
    grep -q "$(echo "${keys%=*}" | sed 's/[.]/[.]/')" err.txt && [ ! -e keys ] && ok || bad "$keys: $(cat err.txt)"
done
"$TARE" sft sft.ini sft.out=other train.on_nonfinite=rollback 2> err.txt && bad "sft accepts rollback"
grep -q 'rollback works only with' err.txt && ok || bad "sft: $(cat err.txt)"
done_
