#!/usr/bin/env bash
# Checks [relift]: questions that no rollout solved get supervised updates between those of the
# policy. Killed in the new stages and resumed, and on two ranks, a run ends bit-identical. A
# question is counted once. Refusals name the key; tare plan counts the second optimizer.
. "$(dirname "$0")/common.inc"
tiny_config
"$TARE" sft sft.ini 2> /dev/null || { bad "the model was not made"; done_; }
# Rows 1 to 24 have a demonstration, the others do not.
for i in $(seq 1 32); do
    a=$((i % 9 + 1)) b=$((i % 7 + 1))
    demonstration=",\"completion\":\"$((a + b))\""
    [ "$i" -gt 24 ] && demonstration=
    echo "{\"id\":\"q$i\",\"question\":\"$a+$b=\",\"answer\":\"$((a + b))\",\"subject\":\"add\"$demonstration}"
done > train.jsonl
KEYS="data.train=train.jsonl data.eval= eval.before=false eval.after=false eval.every=0 train.steps=10 checkpoint.keep=0 log.progress=none log.rollouts=true
    relift.rows=12 relift.minibatch=4 relift.lr=2e-3 relift.entropy_coef=0.001"
# shellcheck disable=SC2086
run() { "$TARE" train tiny.ini $KEYS "$@" > /dev/null 2>> log.txt; }
run run.dir=whole || { bad "the run failed: $(tail -3 log.txt)"; done_; }
grep -q '24 of 32 rows have a demonstration; each supervised update uses 12 of them' log.txt && ok || bad "the number of demonstrations is not printed: $(head -5 log.txt)"

# The queue follows from the records: rows with a demonstration and no reward, the newest first; one
# update per step, of three optimizer steps.
checked "the updates do not follow from the rollouts" << 'PY'
import json
rows = {r["id"]: r for r in map(json.loads, open("train.jsonl"))}
waiting = steps = updates = 0
losses = []
for line in open("whole/metrics.jsonl"):
    m = json.loads(line)
    groups = {}
    for r in map(json.loads, open("whole/rollouts/step-%06d.jsonl" % m["step"])): groups.setdefault((r["group"] if "group" in r else r["id"]), []).append(r)
    hard = sum(all(r["reward"] <= 0 for r in g) and "completion" in rows[g[0]["id"]] for g in groups.values())
    assert m["relift/hard_questions"] == hard, (m["step"], m["relift/hard_questions"], hard)
    waiting += hard
    trained = waiting >= 12
    if trained:
        waiting -= 12
        steps += 3
        updates += 1
        losses.append(m["relift/loss"])
        assert m["relift/grad_norm"] > 0 and m["relift/lr"] == 2e-3 and m["relift/entropy"] > 0, m
    assert ("relift/loss" in m and m["relift/loss"] is not None) == trained, m["step"]
    assert m["relift/waiting"] == waiting and m["relift/optimizer_steps"] == steps, (m["step"], m["relift/waiting"], waiting)
    assert m["policy/sampler_mismatch"] == 0
assert updates >= 3, updates
assert losses[-1] < 0.9 * losses[0], losses
print(updates, "updates, loss", losses[0], "to", losses[-1])
PY

resume=
for at in relift:4:3 hard:5:3 update:7:6 checkpoint.named:9:9; do
    IFS=: read -r point step found <<< "$at"
    # shellcheck disable=SC2086
    killed_at "$point" "$step" "$TARE" train tiny.ini $KEYS run.dir=broken $resume && ok || { bad "not killed at $at: $(tail -3 log.txt)"; done_; exit 1; }
    newest=$(ls broken/checkpoints | grep 'step-[0-9]*$' | tail -1 | tr -dc 0-9)
    [ "$((10#0$newest))" = "$found" ] && ok || bad "killed at $at, the newest checkpoint is $newest"
    resume=--resume
done
run run.dir=broken --resume || bad "the resumed run failed: $(tail -3 log.txt)"
same() { # FOLDER WHAT
    cmp -s whole/checkpoints/step-000010/model.safetensors "$1/checkpoints/step-000010/model.safetensors" && ok || bad "$2: weights differ"
    checked "$2: metrics differ" "$1" << 'PY'
import json, sys
def read(path):
    skip = ("time/", "memory/", "speculation/", "tokens_per_second")
    return [{k: v for k, v in json.loads(line).items() if not k.startswith(skip)} for line in open(path + "/metrics.jsonl")]
a, b = read("whole"), read(sys.argv[1])
assert len(a) == 10 and a == b, [x for x in zip(a, b) if x[0] != x[1]][:1]
PY
}
same broken "killed and resumed"
"$TARE" diff whole broken > diff.txt 2>&1 && ok || bad "tare diff: $(head -5 diff.txt)"
run run.dir=two dist.ranks=2 dist.gradient_shards=2 train.micro_tokens=64 || bad "two ranks: $(tail -3 log.txt)"
run run.dir=one dist.gradient_shards=2 train.micro_tokens=64 || bad "one rank: $(tail -3 log.txt)"
cmp -s one/checkpoints/step-000010/model.safetensors two/checkpoints/step-000010/model.safetensors && ok || bad "two ranks have other weights than one"

refused() { # PATTERN [key=value ...]
    local pattern=$1
    shift
    run run.dir=refused "$@" && bad "accepted: $*" || { tail -n 1 log.txt | grep -q "$pattern" && ok || bad "$*: $(tail -1 log.txt)"; }
}
refused 'relift.rows = 12 (command line) and rollout.off_policy = true' rollout.off_policy=true
refused 'the former must divide the latter' relift.minibatch=5
refused 'relift.rows needs rows with a "completion", but .* has none' 'data.train=builtin:arithmetic/train?rows=100'
# config check gives the same message.
# shellcheck disable=SC2086
"$TARE" config check tiny.ini $KEYS 'data.train=builtin:arithmetic/train?rows=100' > out.txt 2>&1 && bad "config check accepts rows without a completion" || { grep -q 'relift.rows needs rows with a "completion", but .* has none' out.txt && ok || bad "$(cat out.txt)"; }
# Disabled and enabled again by --allow-change: the discarded state is reported.
cp -r whole switched
waiting=$(tail -1 whole/metrics.jsonl | sed 's/.*"relift\/waiting":\([0-9]*\).*/\1/') steps=$(tail -1 whole/metrics.jsonl | sed 's/.*"relift\/optimizer_steps":\([0-9]*\).*/\1/')
"$TARE" train switched --resume --allow-change log.progress=none train.steps=11 relift.rows=0 > /dev/null 2> err.txt && ok || bad "disabled: $(cat err.txt)"
grep -q "warning: relift.rows = 0: the moments of the supervised updates ($steps optimizer steps) and the $waiting queued questions are discarded" err.txt && ok || bad "not reported: $(cat err.txt)"
"$TARE" train switched --resume --allow-change log.progress=none train.steps=12 relift.rows=12 > /dev/null 2> err.txt && ok || bad "enabled: $(cat err.txt)"
grep -q 'relift.rows: the checkpoint was written without it; its optimizer starts with empty moments' err.txt && ok || bad "not reported: $(cat err.txt)"
sed 's/"completion":"[0-9]*"/"completion":"2 and much more"/' train.jsonl > long.jsonl
refused 'long.jsonl:1: the completion has .* tokens; rollout.max_new_tokens is 6' data.train=long.jsonl
refused 'must be\|is not\|range\|between' relift.rows=-1

if has_python; then
    "$TARE" plan tiny.ini --json > plan.json 2> err.txt && "$TARE" plan tiny.ini relift.rows=12 --json > plan2.json 2>> err.txt || bad "no plan: $(cat err.txt)"
    checked "tare plan does not count the second optimizer" << 'PY'
import json
def find(o, key):
    if isinstance(o, dict):
        for k, v in o.items():
            if k == key and isinstance(v, (int, float)): return v
            got = find(v, key)
            if got is not None: return got
    if isinstance(o, list):
        for v in o:
            got = find(v, key)
            if got is not None: return got
a, b = (find(json.load(open(f)), "moments") for f in ("plan.json", "plan2.json"))
assert a and b == 2 * a, (a, b)
m = json.loads(open("whole/metrics.jsonl").readline())
assert m["memory/moments"] == b, (m["memory/moments"], b)
PY
fi
done_
