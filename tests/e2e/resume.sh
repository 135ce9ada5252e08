#!/usr/bin/env bash
# Checks that a run killed with SIGKILL at points of a step and of a checkpoint, and resumed each
# time, ends bit-identical to one that was never killed: weights, every metric except times, in
# JSONL, TensorBoard and SQLite. No step is missing or written twice.
. "$(dirname "$0")/common.inc"
tiny_config
run() { "$TARE" train tiny.ini log.progress=none log.rollouts=true train.steps=40 "$@" > /dev/null 2>> log.txt; }
"$TARE" sft sft.ini 2> /dev/null

run run.dir=whole || { bad "the undisturbed run failed"; cat log.txt; done_; }

resume=
for at in rollout:2:0 verify:5:3 update:8:6 apply:11:9 recorded:14:12 checkpoint:15:12 checkpoint.files:18:15 checkpoint.listed:21:18 \
    checkpoint.named:24:24 data:25:24 recorded:30:27 evaluate:35:33 checkpoint.named:40:40; do
    IFS=: read -r point step found <<< "$at"
    killed_at "$point" "$step" "$TARE" train tiny.ini log.progress=none log.rollouts=true train.steps=40 run.dir=broken $resume && ok ||
        { bad "not killed at $at"; tail -3 log.txt; done_; exit 1; }
    newest=$(ls broken/checkpoints 2> /dev/null | grep 'step-[0-9]*$' | tail -1 | tr -dc 0-9 || true)
    [ "$((10#0$newest))" = "$found" ] && ok || bad "killed at $at, the newest checkpoint is $newest"
    if [ "$found" = 0 ]; then rm -rf broken; else resume=--resume; fi
done
run run.dir=broken $resume || bad "the resumed run failed"
diff <(ls whole/checkpoints) <(ls broken/checkpoints) && ok || bad "other checkpoints remain: checkpoint.keep"

last=$(ls whole/checkpoints | tail -1)
cmp -s "whole/checkpoints/$last/model.safetensors" "broken/checkpoints/$last/model.safetensors" && ok || bad "weights differ after resuming"
strip() { python3 - "$1" <<'PY'
import json, sys
for line in open(sys.argv[1]):
    row = json.loads(line)
    print(json.dumps({k: v for k, v in row.items() if not k.startswith("time/") and k != "tokens_per_second" and not k.startswith("memory/")}))
PY
}
if has_python; then
    strip whole/metrics.jsonl > a
    strip broken/metrics.jsonl > b
    cmp -s a b && ok || { bad "metrics.jsonl differs"; diff a b | head -5; }
    [ "$(wc -l < a)" = 40 ] && ok || bad "$(wc -l < a) lines of metrics for 40 steps"
fi
# The other two sinks hold the values of metrics.jsonl: every (step, name) once. A TensorBoard
# record is length, crc, an Event (step: field 2, summary: field 5), crc.
if has_python; then
    if python3 - <<'PY'
import collections, glob, json, sqlite3, struct, sys
jsonl = collections.Counter()
for line in open("broken/metrics.jsonl"):
    row = json.loads(line)
    for name, value in row.items():
        if name != "step" and value is not None: jsonl[row["step"], name] += 1
assert max(jsonl.values()) == 1
db = sqlite3.connect("runs.db")
run, = db.execute("select id from runs where dir like '%broken'").fetchone()
sql = collections.Counter((s, n) for s, n in db.execute("select step, name from metrics where run = ? and value is not null", (run,)))
assert sql == jsonl, ("sqlite", len(sql), len(jsonl))
def varint(d, i):
    v = shift = 0
    while True:
        v |= (d[i] & 127) << shift; shift += 7; i += 1
        if d[i - 1] < 128: return v, i
def fields(d):
    i = 0
    while i < len(d):
        key, i = varint(d, i)
        if key & 7 == 0: v, i = varint(d, i)
        elif key & 7 == 1: v, i = d[i:i + 8], i + 8
        elif key & 7 == 5: v, i = d[i:i + 4], i + 4
        else:
            n, i = varint(d, i); v, i = d[i:i + n], i + n
        yield key >> 3, v
tb = collections.Counter()
for path in glob.glob("broken/tensorboard/*"):
    d = open(path, "rb").read(); i = 0
    while i < len(d):
        n, = struct.unpack("<Q", d[i:i + 8]); event = list(fields(d[i + 12:i + 12 + n])); i += 16 + n
        step = next((v for f, v in event if f == 2), 0)
        for f, v in event:
            if f == 5:
                for g, value in fields(v):
                    tag = next((x.decode() for h, x in fields(value) if h == 1), None)
                    if tag: tb[step, tag] += 1
assert set(tb) == set(jsonl) and max(tb.values()) == 1, ("tensorboard", len(tb), len(jsonl), list(set(jsonl) ^ set(tb))[:3])
PY
    then ok; else bad "a step is missing or twice in SQLite or TensorBoard"; fi
fi
for file in whole/rollouts/*; do cmp -s "$file" "broken/${file#whole/}" || bad "${file#whole/} differs"; done
ok

# A resumed run finds the plugins next to the configuration it was started with, from any folder.
mkdir -p project/plugins/estimators
cp "${TARE_PLUGIN_PATH%%:*}/estimators/grpo.so" project/plugins/estimators/mine.so
cp tiny.ini project
cp sft.ini project
if "$TARE" -q train project/tiny.ini estimator.plugin=mine run.dir=mine train.steps=1 > out.txt 2>&1 &&
    (mkdir elsewhere && cd elsewhere && "$TARE" -q train "$WORK/mine" --resume --allow-change train.steps=2 model.path="$WORK/base" log.rollouts=false > ../out.txt 2>&1) &&
    [ "$(wc -l < mine/metrics.jsonl)" = 2 ]; then ok; else bad "a run does not find the plugins next to its configuration: $(cat out.txt)"; fi
"$TARE" config diff mine project/tiny.ini estimator.plugin=mine train.steps=2 run.dir=mine model.path="$WORK/base" log.rollouts=false > out.txt 2>&1 && ! grep -q plugins out.txt &&
    ok || bad "the recorded folder of plugins counts as a difference: $(cat out.txt)"
# With rollback, checkpoints that an older checkpoint.every may still go back to are kept when a
# process continues.
TARE_FAULT=stage=update,step=5,kind=stop "$TARE" train tiny.ini log.progress=none run.dir=back train.on_nonfinite=rollback checkpoint.every=3 checkpoint.keep=1 train.steps=8 \
    > /dev/null 2> err.txt || true
killed_at rollout 6 "$TARE" train back --resume log.progress=none checkpoint.every=2 && ok || bad "not killed in step 6: $(cat err.txt)"
[ -e back/checkpoints/step-000003 ] && [ -e back/checkpoints/step-000005 ] && ok || bad "a checkpoint to go back to was removed: $(ls back/checkpoints)"

done_
