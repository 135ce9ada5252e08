#!/usr/bin/env bash
# Checks verifiers with submit and poll: completions are verified while others are sampled, also in
# training, bit-identical to verify; `command` is one of them.
source "$(dirname "$0")/common.inc"
waits=${FIXTURES:?}/waits.so
[ -e "$waits" ] || skip "the fixtures are not built"
for k in 1 2 3 4 5 6 7; do printf '{"id":"r%s","completion":"%s","answer":"3"}\n' $k $k; done > rows
"$TARE" verify "$waits" < rows > out 2> err || bad "verify: $(tail -n 3 err)"
"$TARE" verify "$waits" --isolate < rows > isolated 2> err || bad "verify --isolate: $(tail -n 3 err)"
if [ "$(grep -c '"verdict":"correct"' out)" = 1 ] && cmp -s out isolated; then ok; else bad "verdicts: $(cat out isolated)"; fi
printf '{"id":"late","completion":"never","answer":"3"}\n' | timeout 60 "$TARE" verify "$waits" --timeout 0.2 > out 2> err || bad "late: $(tail -n 3 err)"
if grep -q '"verdict":"timeout"' out; then ok; else bad "late: $(cat out)"; fi
printf '{"id":"x","completion":"broken","answer":"3"}\n' | "$TARE" verify "$waits" > out 2> err && bad "an error was accepted"
if grep -q 'row x, sample 0: verifier waits: take: the judge is out' err; then ok; else bad "an error: $(cat err)"; fi

tiny_config
easy_judge
train() { timeout 300 "$TARE" train tiny.ini train.steps=3 checkpoint.every=3 "$@" > log 2>&1; }
# The fixture counts the answers that came after a later one of their group: none when all
# completions are passed in order after all are sampled.
train run.dir=ahead verifier.plugins="$waits" verifier.workers=3 || bad "training: $(tail -n 3 log)"
early=$(grep -o '"verifier/early":[0-9]*' ahead/metrics.jsonl | tail -n 1 | cut -d : -f 2)
if [ "${early:-0}" -gt 0 ]; then ok; else bad "completions were not verified as they ended (early = $early)"; fi
same() { # NAME NAME: compares weights and rollouts
    if cmp -s "$1"/checkpoints/step-000003/model.safetensors "$2"/checkpoints/step-000003/model.safetensors &&
        cmp -s "$1"/rollouts/step-000003.jsonl "$2"/rollouts/step-000003.jsonl; then ok; else bad "$1 and $2 differ"; fi
}
train run.dir=apart verifier.plugins="$waits" verifier.isolate=process || bad "training, isolate: $(tail -n 3 log)"
same ahead apart
train run.dir=one verifier.workers=1 || bad "command, one at a time: $(tail -n 3 log)"
train run.dir=four verifier.workers=4 || bad "command, four at a time: $(tail -n 3 log)"
train run.dir=processes verifier.isolate=process || bad "command in processes: $(tail -n 3 log)"
same one four
same one processes
if until_ '! pgrep -f "sh $PWD/judge.sh" > left'; then ok; else bad "a program remains: $(cat left)"; fi
done_
