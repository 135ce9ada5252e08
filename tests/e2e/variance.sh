#!/usr/bin/env bash
# Checks tare variance at two checkpoints of a run: the table, the JSON lines, the CSV and the
# figures; bit-identical results on any number of threads and in any order. The run is only read.
# Errors name the bad input, and then nothing is written.
. "$(dirname "$0")/common.inc"
tiny_config
# Long enough for some right answers.
sed -i -e 's/^steps = 30/steps = 1500/' -e 's/rows=2000/rows=51200/' -e 's/4e-3/3e-3/' sft.ini
"$TARE" -q train tiny.ini log.progress=none > /dev/null 2> err.txt || { bad "train: $(cat err.txt)"; done_; exit 1; }
sums() { (cd "$1" && find . -type f -exec cksum {} + | sort); }
sums run > before.txt
small="--prompts 24 --rollouts 32 --groups 16 --bootstrap 200 --width 256"
variance() { local got=0; "$TARE" variance tiny.ini "$@" > out.txt 2> err.txt || got=$?; [ $got = "$want" ] && ok || { bad "variance $*: status $got, expected $want"; cat err.txt; }; }
says() { grep "$1" err.txt > /dev/null && ok || { bad "missing in the output: $1"; cat err.txt; }; }

want=0
# shellcheck disable=SC2086
variance $small --from run@9 --from run@12 --warm 4 -o lab run.threads=1
for file in variance.md variance.jsonl variance.csv direction-at-step-9.svg direction-over-the-run.svg bias-at-step-12.svg variance-over-the-run.svg; do
    [ -s "lab/$file" ] && ok || bad "no lab/$file"
done
cmp -s out.txt lab/variance.md && ok || bad "the output differs from variance.md"
grep '24 prompts x 32 rollouts' err.txt > /dev/null && grep 'together .* GB of' err.txt > /dev/null && ok || bad "the memory is not printed beforehand: $(cat err.txt)"
sums run > after.txt
cmp -s before.txt after.txt && ok || { bad "the run was changed"; diff before.txt after.txt; }
checked "the figures are wrong" << 'PY'
import csv, json
lines = [json.loads(x) for x in open("lab/variance.jsonl")]
places = [x for x in lines if x["kind"] == "checkpoint"]
rows = [x for x in lines if x["kind"] == "estimator" and "not_measured" not in x]
assert [x["step"] for x in places] == [9, 12] and len(places[0]["pass"]) == 24 and "entropy_top" in places[0]["left_out"], places
names = {x["estimator"] for x in rows}
assert {"grpo", "rloo", "bv_blend", "eb_blend", "spo", "(mean reward)", "(best constant)"} <= names, names
assert {x["state"] for x in rows if x["estimator"] == "bv_blend"} == {"cold", "saved", "warmed"}
assert {x["state"] for x in rows if x["estimator"] == "eb_blend"} == {"cold", "warmed"}
assert {x["state"] for x in rows if x["estimator"] == "rloo"} == {"-"}
assert {x["group_size"] for x in rows} == {2, 4, 8, 16}
for x in rows:
    groups = x["parts"]["groups"]
    assert abs(sum(g["groups"] for g in groups) - 1) < 1e-9, x
    assert x["second_moment"][0] >= 0 and -1e-9 <= x["effective"] <= 1 + 1e-9, x
    if x["estimator"] == "rloo" and x["bias"][1] is not None:
        assert x["bias"][1] <= 0 <= x["bias"][2] or x["bias"][0] < 0.1 * x["variance"][0], x
    if x["estimator"] == "grpo" and groups[0]["groups"] > 0 and x["second_moment"][0] > 0:
        assert groups[0]["square"] == 0, x
table = list(csv.DictReader(open("lab/variance.csv")))
assert len(table) == len(rows) and float(table[0]["variance"]) == rows[0]["variance"][0], table[0]
PY
# Bit-identical on other threads, and with each checkpoint alone.
# shellcheck disable=SC2086
variance $small --from run@12 --warm 4 --json run.threads=2
grep '"step":12' lab/variance.jsonl > one.txt
cmp -s out.txt one.txt && ok || bad "not bit-identical on other threads, or alone"
# A run instead of a configuration is measured in its present state; a configuration names the model
# to measure.
few="--warm 0 --estimator rloo --group-sizes 2 --prompts 16 --rollouts 8 --groups 8 --bootstrap 100"
# shellcheck disable=SC2086
"$TARE" variance run $few > out.txt 2> err.txt && grep 'step 12' out.txt > /dev/null && grep 'using its newest checkpoint, run/checkpoints/step-000012' err.txt > /dev/null && ok || bad "a run's folder: $(cat err.txt out.txt)"
# shellcheck disable=SC2086
variance $few
says "no --from: measuring the configuration's model, model.path = "

# shellcheck disable=SC2086
variance $small --from run@12 --warm 0 --estimator rloo --estimator "bv_blend temperature=0.5" --group-sizes 3 --json run.seed=2
[ "$(grep -c '"state":"warmed"' out.txt)" = 0 ] && grep '"bv_blend temperature=0.5"' out.txt > /dev/null && grep '"group_size":3' out.txt > /dev/null && ok || bad "not the requested estimators: $(cat out.txt)"
# shellcheck disable=SC2086
# Whole gradients of the newest checkpoint.
variance $small --from run --estimator rloo --width 0 --group-sizes 2 loss.aggregation=token
grep 'step 12' out.txt > /dev/null && ! grep sketches out.txt > /dev/null && ok || bad "whole gradients: $(cat out.txt)"
# Adam's metric: with an epsilon that hides the moments it equals the plain one; with the run's own
# epsilon it differs.
cosines() { sed -n 's/^| rloo | - | \([-0-9.]*\).*/\1/p' out.txt; }
plain="--from run@12 --estimator rloo --group-sizes 8 --prompts 24 --rollouts 32 --groups 16 --bootstrap 200 --width 0"
# shellcheck disable=SC2086
variance $plain && one=$(cosines)
# shellcheck disable=SC2086
variance $plain --metric adam train.eps=1 && two=$(cosines)
grep "are those of Adam's step" out.txt > /dev/null && ok || bad "the metric is not printed: $(cat out.txt)"
# shellcheck disable=SC2086
variance $plain --metric adam && three=$(cosines)
[ -n "$one" ] && awk -v a="$one" -v b="$two" -v c="$three" 'BEGIN { exit !((a - b)^2 < 1e-4 && (a - c)^2 > 1e-8) }' && ok || bad "directions: plain $one, a large epsilon $two, adam $three"
variance --from run@9 --plan
grep 'sketches of 2048' out.txt > /dev/null && ok || bad "--plan: $(cat out.txt)"
mv base elsewhere # without --from: the configuration's model
# shellcheck disable=SC2086
variance $small --estimator grpo --group-sizes 2 model.path=elsewhere
grep '^## .*elsewhere' out.txt > /dev/null && ok || bad "model.path: $(cat out.txt)"

# Bad input.
want=1
variance --from run@7 -o no && says 'run has no checkpoint of step 7'
variance --from nowhere@7 && says nowhere
cp -r run damaged && printf x >> damaged/checkpoints/step-000012/model.safetensors
variance --from damaged@12 && says 'damaged/checkpoints/step-000012'
variance --from run@12 --estimator nosuch && says nosuch
variance --from nowhere && says nowhere
want=3
variance --from run@12 estimator.plugin=grpoo && says "no estimator named 'grpoo'"
variance --from elsewhere --metric adam --prompts 24 --rollouts 32 && says 'elsewhere is not a checkpoint of a run and has no moments'
variance --from run@12 --metric newton && says 'must be adam'
want=1
want=3
variance --from sft.ini@x && says 'invalid step'
variance --from run@12 --group-sizes 2,200 -o no && says '200 must be at most 128, half of --rollouts 256'
variance --from run@12 --group-sizes 4,2 && says 'must be increasing numbers'
variance --from run@12 --prompts 1 && says 'prompts 1: must be a whole number from 2'
variance --from run@12 --prompts 501 && says 'must be at most the rows of data.train = .*, which has 500'
variance --from run@12 --batch 7 && says 'divide --prompts 64'
variance --from run@12 --estimator entropy_top && says 'per token'
variance --from run@12 --estimator "bv_blend temprature=1" && says 'temperature'
variance --from run@12 --estimator "" && says 'must be a name'
variance --from run@12 train.nosuch=1 && says nosuch
want=1
variance --from run@12 --width 100 && says 'power of two'
variance --from run@12 --prompts 500 --rollouts 1000000 --width 32768 && says 'this machine has'
want=2
variance --from run@12 --nosuch
variance --from run@12 --width
[ ! -e no ] && ok || bad "a refused call wrote files"
sums run > after.txt
cmp -s before.txt after.txt && ok || bad "the run was changed"
done_
