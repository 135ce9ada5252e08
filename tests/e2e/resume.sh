#!/usr/bin/env bash
# A run killed with SIGKILL at random moments and resumed each time ends with the same bits as one that was never killed: weights, every
# metric but times, in JSONL, TensorBoard and SQLite; no step twice or missing.
. "$(dirname "$0")/common.inc"
tiny_config
run() { "$TARE" train tiny.ini log.progress=none log.rollouts=true train.steps=40 "$@" > /dev/null 2>> log.txt; }
"$TARE" sft sft.ini 2> /dev/null

began=$(date +%s%N)
run run.dir=whole || { bad "the whole run failed"; cat log.txt; done_; }
took=$((($(date +%s%N) - began) / 1000000))

kills=0
tries=0
resume=
while [ $kills -lt 3 ] && [ $tries -lt 30 ]; do
    tries=$((tries + 1))
    "$TARE" train tiny.ini log.progress=none log.rollouts=true train.steps=40 run.dir=broken $resume > /dev/null 2>> log.txt &
    pid=$!
    sleep "$(awk -v ms="$took" -v r="$RANDOM" 'BEGIN { print (0.15 + 0.6 * r / 32768) * ms / 1000 / 2 }')"
    kill -9 $pid 2> /dev/null && kills=$((kills + 1))
    wait $pid 2> /dev/null || true
    [ -d broken/checkpoints ] && ls broken/checkpoints | grep -q 'step-[0-9]*$' && resume=--resume
    [ -z "$resume" ] && rm -rf broken
done
run run.dir=broken $resume || bad "the resumed run failed"
[ $kills = 3 ] && ok || bad "only $kills kills hit a running process"

last=$(ls whole/checkpoints | tail -1)
cmp -s "whole/checkpoints/$last/model.safetensors" "broken/checkpoints/$last/model.safetensors" && ok || bad "weights differ after resuming"
strip() { python3 - "$1" <<'PY'
import json, sys
for line in open(sys.argv[1]):
    row = json.loads(line)
    print(json.dumps({k: v for k, v in row.items() if not k.startswith("time/") and k != "tokens_per_second" and not k.startswith("memory/")}))
PY
}
if command -v python3 > /dev/null; then
    strip whole/metrics.jsonl > a
    strip broken/metrics.jsonl > b
    cmp -s a b && ok || { bad "metrics.jsonl differs"; diff a b | head -5; }
    [ "$(wc -l < a)" = 40 ] && ok || bad "$(wc -l < a) lines of metrics for 40 steps"
fi
for step in $(ls whole/rollouts); do cmp -s "whole/rollouts/$step" "broken/rollouts/$step" || bad "rollouts of $step differ"; done
ok
done_
