#!/usr/bin/env bash
# Checks rollout.off_policy: the completion of a row is the last rollout of its group and is
# verified like the others; refusals name the key or the row.
. "$(dirname "$0")/common.inc"
tiny_config
"$TARE" sft sft.ini 2> /dev/null || { bad "the model was not made"; done_; }
{
    for i in 1 2 3 4; do echo "{\"id\":\"t$i\",\"question\":\"$i+$i=\",\"answer\":\"$((i + i))\",\"completion\":\"$((i + i))\",\"subject\":\"add\"}"; done
    for i in 5 6 7 8; do echo "{\"id\":\"n$i\",\"question\":\"$i+$i=\",\"answer\":\"$((i + i))\",\"subject\":\"add\"}"; done
} > train.jsonl
run() { "$TARE" train tiny.ini data.train=train.jsonl train.steps=2 log.progress=none rollout.off_policy=true "$@" > /dev/null 2>> log.txt; }
run || { bad "the run failed"; tail -3 log.txt; }
grep -q '4 of 8 rows add a trace' log.txt && ok || bad "the number of traces is not printed"
checked "the traces are in the wrong places" <<'PY'
import json
rows = [json.loads(l) for s in (1, 2) for l in open(f"run/rollouts/step-{s:06d}.jsonl")]
assert len(rows) == 64, len(rows)
traces = [r for r in rows if r.get("off_policy")]
assert len(traces) == 8 and {r["id"] for r in traces} == {"t1", "t2", "t3", "t4"}
for r in traces:
    assert r["sample"] == 3 and r["reward"] == 1 and r["finish"] == "stop", r
    assert r["completion"] == str(2 * int(r["id"][1])) and r["length"] == 2, r
assert all(r["sample"] < 3 for r in rows if r["id"][0] == "t" and not r.get("off_policy"))
PY
checked "a trace counts as a sampled rollout" <<'PY'
import json
for l in open("run/metrics.jsonl"): assert json.loads(l)["policy/sampler_mismatch"] == 0
PY
# An estimator that asks for every column refuses rollouts that do not fit together; the digits of
# its advantages encode the columns.
run run.dir=facts estimator.plugin="$FIXTURES/facts.so" || { bad "facts.so: $(tail -n 2 log.txt)"; }
checked "the estimator does not see the origin of its rollouts" <<'PY'
import json
n = 0
for step in (1, 2):
    for line in open(f"facts/rollouts/step-{step:06d}.jsonl"):
        r = json.loads(line)
        off = bool(r.get("off_policy"))
        want = 1 + (r["finish"] == "length") + 10 * off + 100 * ((-1 if off else step - 1) + 2)
        assert r["advantage"] % 1000 == want, (r, want)
        n += off
assert n == 8, n
PY
! run run.dir=r2 data.train='builtin:arithmetic/train?rows=100' && grep -q 'needs rows with a "completion", but .* has none' log.txt && ok || bad "a data set without traces was accepted"
sed 's/"completion":"2"/"completion":"2 and much more"/' train.jsonl > long.jsonl
! run run.dir=r3 data.train=long.jsonl && grep -q 'long.jsonl:1: the completion has' log.txt && ok || bad "a long trace was accepted"
done_
