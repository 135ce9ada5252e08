#!/usr/bin/env bash
# Checks [process_reward] and the estimator prime: a second model is trained with the policy and
# gives rewards to tokens. Killed in the new stages and resumed, and on two ranks, a run ends with
# bit-identical weights of both models. Invalid combinations are refused. tare plan counts the
# second model.
. "$(dirname "$0")/common.inc"
tiny_config
easy_judge
# A first digit from 1 to 3: about half of the groups have both outcomes, and single tokens decide.
cat > judge.sh << 'SH'
while read -r line; do case $line in *'"completion":"'[1-3]*) echo '{"reward":1}' ;; *) echo '{"reward":0}' ;; esac; done
SH
"$TARE" sft sft.ini 2> /dev/null || { bad "the model was not made"; done_; }
KEYS="data.train=builtin:arithmetic/phase1?rows=200 data.eval= eval.before=false eval.after=false eval.every=0 train.steps=14 train.lr=1e-4 checkpoint.keep=0 log.progress=none
    log.rollouts=true process_reward.implicit=true process_reward.lr=3e-4 process_reward.beta=1 rollout.prompts=16 process_reward.minibatch=32 estimator.plugin=prime codebook.plugin=none"
# shellcheck disable=SC2086
run() { "$TARE" train tiny.ini $KEYS "$@" > /dev/null 2>> log.txt; }
run run.dir=whole || { bad "the run failed: $(tail -3 log.txt)"; done_; }
checked "the process reward model does not learn as expected" << 'PY'
import json, math
rows = [json.loads(line) for line in open("whole/metrics.jsonl")]
assert len(rows) == 14
p = lambda name: [r["process_reward/" + name] for r in rows]
# It begins as the reference, with rewards of 0, which order nothing; two updates per step.
assert p("largest_return")[0] == 0 and p("optimizer_steps") == [2 * (k + 1) for k in range(14)]
assert all(x > 0 for x in p("largest_return")[1:]) and set(p("lr")) == {3e-4}
assert abs(p("loss")[0] - math.log(2)) < 0.05, p("loss")
assert sum(p("loss")[-5:]) / 5 < math.log(2) - 0.01, p("loss")
assert sum(p("accuracy")[-7:]) / 7 > 0.55, p("accuracy")
assert all(0 <= x <= 1 for x in p("accuracy")) and all(x > 0 for x in p("grad_norm"))
assert all(r["policy/sampler_mismatch"] == 0 for r in rows)
print("loss", p("loss")[0], "to", p("loss")[-1], "accuracy", p("accuracy"))
PY
resume=
for at in process:4:3 process_update:5:3 checkpoint.named:9:9; do
    IFS=: read -r point step found <<< "$at"
    # shellcheck disable=SC2086
    killed_at "$point" "$step" "$TARE" train tiny.ini $KEYS run.dir=broken $resume && ok || { bad "not killed at $at: $(tail -3 log.txt)"; done_; exit 1; }
    newest=$(ls broken/checkpoints | grep 'step-[0-9]*$' | tail -1 | tr -dc 0-9)
    [ "$((10#0$newest))" = "$found" ] && ok || bad "killed at $at, the newest checkpoint is $newest"
    resume=--resume
done
run run.dir=broken --resume || bad "the resumed run failed: $(tail -3 log.txt)"
last=checkpoints/step-000014
# The latter has the process reward model's weights and moments.
for file in model.safetensors optimizer-00000-of-00001.state; do
    cmp -s "whole/$last/$file" "broken/$last/$file" && ok || bad "killed and resumed: $file differs"
done
checked "killed and resumed: metrics differ" << 'PY'
import json
def read(path):
    skip = ("time/", "memory/", "speculation/", "tokens_per_second")
    return [{k: v for k, v in json.loads(line).items() if not k.startswith(skip)} for line in open(path + "/metrics.jsonl")]
assert read("whole") == read("broken")
PY
"$TARE" diff whole broken > diff.txt 2>&1 && ok || bad "tare diff: $(head -5 diff.txt)"
many="dist.gradient_shards=2 train.micro_tokens=64"
# shellcheck disable=SC2086
run run.dir=two dist.ranks=2 $many || bad "two ranks: $(tail -3 log.txt)"
# shellcheck disable=SC2086
run run.dir=one $many || bad "one rank: $(tail -3 log.txt)"
cmp -s one/$last/model.safetensors two/$last/model.safetensors && ok || bad "two ranks have other weights than one"
checked "two ranks have other rewards than one" << 'PY'
import json
a, b = ([{k: v for k, v in json.loads(line).items() if k.startswith("process_reward/")} for line in open(d + "/metrics.jsonl")] for d in ("one", "two"))
assert a == b
PY

refused() { # PATTERN [key=value ...]
    local pattern=$1
    shift
    run run.dir=refused "$@" && bad "accepted: $*" || { tail -n 1 log.txt | grep -q "$pattern" && ok || bad "$*: $(tail -1 log.txt)"; }
}
refused 'the estimator grpo does not read them; set estimator.plugin = prime' estimator.plugin=grpo
refused 'without adapters' lora.rank=4
refused "learns only from the policy's own rollouts" rollout.off_policy=true
refused 'process_reward.model = nowhere: missing folder' process_reward.model=nowhere
"$TARE" sft sft.ini sft.out=narrow model.hidden_size=32 sft.steps=1 2> /dev/null
refused 'process_reward.model = narrow has another shape than model.path = base' process_reward.model=narrow
# No source of token rewards: refused before the first step, by the check, and by a fork, which
# leaves no files.
for plugin in prime grpo_process; do
    refused "estimator.plugin = $plugin needs rewards of tokens or steps: set process_reward.implicit = true" process_reward.implicit=false estimator.plugin=$plugin
    [ ! -e refused ] && ok || bad "a refused run left its folder"
    # shellcheck disable=SC2086
    "$TARE" config check tiny.ini $KEYS process_reward.implicit=false estimator.plugin=$plugin > out.txt 2>&1 && bad "config check accepts $plugin alone" || { grep -q "$plugin needs rewards of tokens or steps" out.txt && ok || bad "$(cat out.txt)"; }
done
for keys in process_reward.implicit=false process_reward.model=narrow "data.train=builtin:arithmetic/phase1?rows=100 process_reward.model=narrow"; do
    got=0
    # shellcheck disable=SC2086
    "$TARE" fork whole@9 --run-dir forked $keys log.progress=none > out.txt 2> err.txt || got=$?
    [ $got = 3 ] && [ ! -e forked ] && [ ! -e forked.part ] && ok || bad "fork with $keys: status $got, files: $(ls -d forked*): $(cat err.txt)"
done
# Keys of a disabled part give a warning.
"$TARE" config check tiny.ini process_reward.beta=2 relift.epochs=2 relift.lr=1 > out.txt 2>&1 && grep -q 'relift.epochs, relift.lr: no effect while relift.rows is off' out.txt &&
    grep -q 'process_reward.beta: no effect while process_reward.implicit is off' out.txt && ok || bad "keys without effect: $(cat out.txt)"
# Disabled and enabled again by forks (a resumed run keeps its estimator): the discarded state is
# reported.
"$TARE" fork whole@14 --run-dir off log.progress=none train.steps=15 process_reward.implicit=false estimator.plugin=grpo > /dev/null 2> err.txt && ok || bad "disabled: $(cat err.txt)"
grep -q 'warning: process_reward.implicit = false: the process reward model (trained for 28 optimizer steps) and its moments are discarded' err.txt && ok || bad "not reported: $(cat err.txt)"
grep -q 'no effect' err.txt && ok || bad "keys without effect: $(cat err.txt)"
"$TARE" fork off@15 --run-dir on log.progress=none train.steps=16 process_reward.implicit=true estimator.plugin=prime > /dev/null 2> err.txt && ok || bad "enabled: $(cat err.txt)"
grep -q 'process_reward.implicit: the checkpoint was written without it; the process reward model starts as base' err.txt && ok || bad "not reported: $(cat err.txt)"

"$TARE" plan tiny.ini estimator.plugin=prime codebook.plugin=none --json > plan.json 2> err.txt &&
    "$TARE" plan tiny.ini estimator.plugin=prime codebook.plugin=none process_reward.implicit=true --json > plan2.json 2>> err.txt || bad "no plan: $(cat err.txt)"
checked "tare plan does not count the process reward model" << 'PY'
import json
def find(o, key):
    if isinstance(o, (dict, list)):
        for k, v in o.items() if isinstance(o, dict) else enumerate(o):
            if k == key and isinstance(v, (int, float)): return v
            got = find(v, key)
            if got is not None: return got
a, b = (json.load(open(f)) for f in ("plan.json", "plan2.json"))
m = json.loads(open("whole/metrics.jsonl").readline())
for name in ("moments", "gradients"):
    assert find(a, name) and find(b, name) == 2 * find(a, name), (name, find(a, name), find(b, name))
    assert m["memory/" + name] == find(b, name), (name, m["memory/" + name])
PY
done_
