#!/usr/bin/env bash
# Checks tare diff: planted changes are reported with step, place and size; runs of different
# lengths, keys and seeds are compared; damaged files are named, and the rest is still compared.
# Exit status 0: equal; 1: different; 2: something could not be compared.
. "$(dirname "$0")/common.inc"
tiny_config
compare() { # STATUS runs and options
    local want=$1 got=0
    shift
    "$TARE" diff "$@" > out.txt 2> err.txt || got=$?
    [ $got = "$want" ] && ok || { bad "diff $*: status $got, expected $want"; cat out.txt err.txt; }
}
says() { grep -q -- "$1" out.txt && ok || { bad "missing in the output: $1"; cat out.txt; }; }
again() { rm -rf copy; cp -r run copy; }
"$TARE" -q train tiny.ini log.rollouts=true log.progress=none > /dev/null 2> err.txt || { bad "train: $(cat err.txt)"; done_; exit 1; }

compare 0 run run
says 'no difference: bit-identical'
says 'compared: 12 steps of metrics, 12 of rollouts, 12 states of the estimator, 2 checkpoints'
"$TARE" -q train tiny.ini log.rollouts=true log.progress=none run.dir=twice run.threads=1 > /dev/null 2> err.txt || bad "train: $(cat err.txt)"
compare 0 run twice
says 'run.threads: .* -> 1   (does not change training)'

# A data file under another name: its rows are compared, not its path.
awk 'BEGIN { for (a = 10; a < 20; a++) for (b = 0; b < 10; b++) printf "{\"id\":\"%d+%d\",\"question\":\"%d+%d=\",\"answer\":\"%d\",\"subject\":\"sum\"}\n", a, b, a, b, a + b }' > rows.jsonl
cp rows.jsonl again.jsonl
sed '$d' rows.jsonl > fewer.jsonl
for data in rows again fewer; do
    "$TARE" -q train tiny.ini log.progress=none train.steps=2 train.schedule=constant train.warmup_steps=1 data.train=$data.jsonl run.dir=$data > /dev/null 2> err.txt || bad "train on $data: $(cat err.txt)"
done
compare 0 rows again
says '^  data.train: rows.jsonl -> again.jsonl   (does not change training)$'
compare 1 rows fewer
says '^  data.train: rows.jsonl -> fewer.jsonl   (the data differ)$'
# The file itself was changed between the runs.
for name in one two; do
    cp rows.jsonl same-name.jsonl; cp rows.jsonl held.jsonl
    [ $name = one ] || { sed -i '$d' same-name.jsonl; sed -i 1d held.jsonl; }
    "$TARE" -q train tiny.ini log.progress=none train.steps=2 train.schedule=constant train.warmup_steps=1 data.train=same-name.jsonl data.eval=held.jsonl run.dir=$name > /dev/null 2> err.txt || bad "train $name: $(cat err.txt)"
done
compare 1 one two
says '^  data.train: same-name.jsonl in both   (the data differ)$'
says '^  data.eval: held.jsonl in both   (the data differ; does not change training)$'
sed -i '/train_xxh3/d' again/manifest.json
compare 1 rows again
says '^  data.train: rows.jsonl -> again.jsonl   (no record of the data)$'
# Resumed with them.
got=0; "$TARE" train rows --resume train.steps=3 data.train=again.jsonl log.progress=none > /dev/null 2> err.txt || got=$?
[ $got = 0 ] && grep 'data.train: rows.jsonl -> again.jsonl (allowed if it holds the same rows)' err.txt > /dev/null && ok || bad "the same rows under another name: $(cat err.txt)"
got=0; "$TARE" train rows --resume train.steps=4 data.train=fewer.jsonl log.progress=none > /dev/null 2> err.txt || got=$?
[ $got = 3 ] && grep 'data.train = fewer.jsonl differs from the rows that .*new run.*model.path=rows/checkpoints/step-000003' err.txt > /dev/null && ok || bad "other rows: $got, $(cat err.txt)"

# Planted: one change in each copy.
again; sed -i '5s/"reward":[^,]*/"reward":0.75/' copy/rollouts/step-000004.jsonl
compare 1 run copy
says '^first difference at step 4'
says '^  reward  *step 4: group 1, rollout 0, reward: .* -> 0.75 (by '
again; sed -i 's/"advantage":[^,]*/"advantage":7/;9q' copy/rollouts/step-000002.jsonl
compare 1 run copy
says '^  advantage  *step 2: group 0, rollout 0, advantage: .* -> 7.0* (by \|^  advantage  *step 2: group 0, rollout 0, advantage: .* -> 7 (by '
says '^  rollout  *step 2: number of rollouts: "more" -> "fewer"'
again; sed -i '1,4s/"confidence":[^,]*/"confidence":0.5/' copy/rollouts/step-000009.jsonl
compare 1 run copy
says '^  confidence  *step 9: group 0, rollout 0, confidence: '
again; sed -i '6s/"completion":"[^"]*"/"completion":"7 7"/' copy/rollouts/step-000001.jsonl
compare 1 run copy
says '^  token  *step 1: group 1, rollout 1, token [0-9]* of the completion: ".*" -> "'
again; sed -i '3s/"policy\/entropy":[^,]*/"policy\/entropy":9.5/; 8s/"grad_norm":[^,]*/"grad_norm":1/' copy/metrics.jsonl
compare 1 run copy
says '^  metric  *step 3: policy/entropy: .* -> 9.5 (by '
again; printf x >> copy/estimator/step-000006.state
compare 1 run copy
says '^  estimator_state  *step 6: byte '
again; sed -i '11,$d' copy/metrics.jsonl
compare 1 run copy
says 'length  *step 11: the last recorded step: 12 -> 10 (by -2)'
says 'compared: 10 steps of metrics, 10 of rollouts'

# records that are gone: the chain lists them, also where both runs lack them
again; rm -r copy/rollouts copy/estimator
compare 2 copy run
says '^no difference in what both runs have$'
says '^only in b, not compared: 0 steps of metrics, 12 of rollouts, 12 states of the estimator, 0 checkpoints$'
says '^damaged: copy: rollouts of 12 steps, the first of them step 1: missing, but listed in chain.jsonl$'
says "^damaged: copy: the estimator's state of 12 steps, the first of them step 1: missing"
compare 2 run copy
says '^only in a, not compared: 0 steps of metrics, 12 of rollouts'
compare 2 copy copy
compare 2 run copy --json
checked "the JSON of records that are gone" << 'PY'
import json
r = json.load(open("out.txt"))
assert not r["same"] and not r["differences"] and r["only_a"] == {"rollouts": 12, "estimator_states": 12} and not r["only_b"], r
PY
again; rm copy/rollouts/step-000004.jsonl
compare 2 run copy
says '^damaged: copy: rollouts of 1 steps, the first of them step 4: missing'
again; rm -r copy/checkpoints
compare 2 run copy
says '^damaged: copy/checkpoints/step-000012: missing, but listed in chain.jsonl as the newest checkpoint$'
again; sed -i 5d copy/metrics.jsonl
compare 2 run copy
says '^damaged: copy: metrics.jsonl, the lines of 1 steps, the first of them step 5: missing'
says '^only in a, not compared: 1 steps of metrics'
again; rm copy/metrics.jsonl
compare 2 copy copy
says '^damaged: copy: metrics.jsonl, the lines of 12 steps'
mkdir nothing; cp run/manifest.json run/config.ini nothing
compare 2 nothing nothing
says '^damaged: neither run has a recorded step'
# what a run need not have: no damage, and not all bits were compared
again; rm -r copy/checkpoints/step-000009
compare 0 run copy
says '^no difference in what both runs have$'
says '^only in a, not compared: 0 steps of metrics, 0 of rollouts, 0 states of the estimator, 1 checkpoints$'
"$TARE" -q train tiny.ini log.rollouts=false log.progress=none run.dir=plain > /dev/null 2> err.txt || bad "train: $(cat err.txt)"
compare 0 run plain
says '^no difference in what both runs have$'
says "^only in a, not compared: 0 steps of metrics, 12 of rollouts, 12 states of the estimator, 0 checkpoints$"

# A different training.
"$TARE" -q train tiny.ini log.rollouts=true log.progress=none run.dir=other train.lr=5e-4 train.steps=14 > /dev/null 2> err.txt || bad "train: $(cat err.txt)"
compare 1 run other
says '^  train.lr: 0.001 -> 0.0005$'
says '^  metric  *step 1: '
says '^  tensor  *step 12: model.embed_tokens.weight, element [0-9]* ([0-9]* differ, by at most '
says '^  section  *step 12: .*moment1.0, element '
says '^mean difference over 12 steps: .*95 % interval'
grep -q 'rollout  *step 1:' out.txt && bad "the common random numbers differ" || ok
compare 1 run other --json
checked "invalid JSON output" << 'PY'
import json
r = json.load(open("out.txt"))
assert r["a"] == "run" and r["b"] == "other" and not r["same"] and r["first_step"] == 1, r
assert [k["key"] for k in r["configuration"]] == ["train.steps", "train.lr"], r["configuration"]
steps = [d["step"] for d in r["differences"]]
assert steps == sorted(steps) and {d["what"] for d in r["differences"]} >= {"metric", "tensor", "section", "length"}, steps
metric = next(d for d in r["differences"] if d["what"] == "metric")
assert abs(metric["by"] - (metric["b"] - metric["a"])) <= 1e-15 and metric["count"] >= 1, metric
rows = [json.loads(line) for line in open("run/metrics.jsonl")]
assert [x[:2] for x in r["curve"]["rows"]] == [[x["step"], x["reward/mean"]] for x in rows]
assert r["curve"]["low"] <= r["curve"]["mean"] <= r["curve"]["high"]
PY
compare 1 run other --metric grad_norm
says '^grad_norm$'
compare 1 run other --metric no/such
says 'no common step has no/such'

# Damaged, incomplete, or missing.
again; printf x >> copy/checkpoints/step-000012/model.safetensors
compare 2 run copy
says '^damaged: copy/checkpoints/step-000012/model.safetensors: has'
says '1 checkpoints'
got=0; "$TARE" generate copy/checkpoints/step-000012 < /dev/null > out.txt 2> err.txt || got=$?
[ $got = 1 ] && grep -q 'step-000012/model.safetensors: has [0-9]* bytes, [0-9]* were written; take another checkpoint' err.txt && ok || bad "a damaged checkpoint given by its name: status $got, $(cat err.txt)"
again; printf '{"step":13,"rew' >> copy/metrics.jsonl
compare 0 run copy
again; sed -i '5s/"step"/"stop"/' copy/metrics.jsonl
compare 2 run copy
grep -q 'copy/metrics.jsonl:5' err.txt && ok || bad "the message does not name a damaged line: $(cat err.txt)"
again; sed -i '3s/}$//' copy/rollouts/step-000003.jsonl
compare 2 run copy
says '^damaged: copy/rollouts/step-000003.jsonl:3'
again; truncate -s 100 copy/rollouts/step-000003.jsonl
compare 2 run copy
says '^damaged: copy/rollouts/step-000003.jsonl:1'
again; rm -r copy/rollouts copy/config.ini copy/checkpoints/step-000009
compare 2 run copy
says '^damaged: .*config.ini'
says 'compared: 12 steps of metrics, 0 of rollouts, 12 states of the estimator, 1 checkpoints'
for text in '{"run":' '[]' ''; do
    again; printf %s "$text" > copy/manifest.json
    compare 2 run copy
    says '^damaged: copy/manifest.json'
    says '12 steps of metrics'
done
again; rm copy/manifest.json
compare 2 copy run
says '^damaged: copy/manifest.json'
compare 2 run nowhere
# A folder without permission is not reported as missing
again; rm -r copy/checkpoints; : > copy/checkpoints
compare 2 run copy
says '^damaged: copy/checkpoints/.: Not a directory'
mkdir closed; ln -s metrics.jsonl closed/metrics.jsonl
compare 2 run closed
grep 'closed/metrics.jsonl: ' err.txt > /dev/null && ! grep 'no run found' err.txt > /dev/null && ok || bad "a run without read permission: $(cat err.txt)"
compare 2 run
compare 2 run run run
compare 2 run run --what
mkdir empty; cp run/manifest.json run/config.ini empty
compare 1 empty run
done_
