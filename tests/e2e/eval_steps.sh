#!/usr/bin/env bash
# Checks tare eval --checkpoints: one command gives accuracy and length by difficulty over the
# checkpoints of runs, with the same result after a kill.
. "$(dirname "$0")/common.inc"
export TARE_PLUGIN_PATH
tiny_config
for estimator in grpo bv_blend; do
    "$TARE" -q train tiny.ini estimator.plugin=$estimator run.dir=runs/$estimator train.steps=8 checkpoint.every=4 checkpoint.keep=0 \
        log.rollouts=false 2> log.txt > /dev/null || { bad "training with $estimator"; tail -3 log.txt; done_; }
done
printf '# long numbers\nlength(question) >= 5\n' > rules.txt
SETTINGS="tiny.ini data.eval=builtin:arithmetic/heldout?rows=60 eval.samples=4 eval.name=heldout eval.complex_rules=rules.txt"
steps() { "$TARE" eval $SETTINGS --estimate-samples 8 "$@" 2> log.txt; }

steps --checkpoints runs/grpo --checkpoints runs/bv_blend > both.md && ok || { bad "the evaluation failed"; tail -3 log.txt; done_; }
OUT=runs/grpo/eval/heldout
cmp -s both.md $OUT/difficulty.md && ok || bad "difficulty.md differs from the output"
grep -qE '^\| accuracy \| run \| questions \| step 0 \| step 4 \| step 8 \|$' both.md && ok || bad "no table of accuracies over the steps"
grep -qE '^\| mean tokens \|' both.md && ok || bad "no table of lengths"
for run in grpo bv_blend; do
    for step in 0 4 8; do
        [ -s runs/$run/eval/heldout/step-00000$step/results.json ] && ok || bad "no evaluation of $run at step $step"
    done
done
[ "$(wc -l < $OUT/estimate/samples.jsonl)" = $((8 * $(wc -l < $OUT/estimate/questions.jsonl))) ] && ok || bad "not 8 samples per question after the estimate"
if has_python; then
    checked "difficulty.json does not match the evaluations" << 'PY'
import json, math
o = json.load(open('runs/grpo/eval/heldout/difficulty.json'))
rate = {q['id']: q['pass_rate'] for q in map(json.loads, open('runs/grpo/eval/heldout/estimate/questions.jsonl'))}
rows = {}
def bucket(p): return 'Easy' if p >= 0.75 else 'Medium' if p >= 0.5 else 'Hard' if p >= 0.25 else 'Hardest'
for run in 'grpo', 'bv_blend':
    for step in 0, 4, 8:
        for s in map(json.loads, open(f'runs/{run}/eval/heldout/step-{step:06d}/samples.jsonl')):
            key = (f'runs/{run}', step, bucket(rate[s['id']]))
            rows.setdefault(key, []).append((s['verdict'] == 'correct', s['length']))
got = {}
for p in o['points']:
    assert p['subset'] in ('standard', 'complex')
    g = got.setdefault((p['run'], p['step'], p['bucket']), [0, 0, 0])
    n = p['questions'] * 4
    g[0] += n; g[1] += p['accuracy'] * n; g[2] += p['length'] * n
assert set(got) == set(rows), (set(got), set(rows))
for key, samples in rows.items():
    n, right, length = got[key]
    assert n == len(samples) and math.isclose(right, sum(c for c, _ in samples), abs_tol=1e-6)
    assert math.isclose(length, sum(l for _, l in samples), abs_tol=1e-6)
# The estimate of the difficulty has separate samples.
first = [s['completion'] for s in map(json.loads, open('runs/grpo/eval/heldout/step-000000/samples.jsonl'))]
own = [s['completion'] for s in map(json.loads, open('runs/grpo/eval/heldout/estimate/samples.jsonl'))]
assert first[:4] != own[:4] or first[4:8] != own[8:12] or first[8:12] != own[16:20]
# Both methods share the buckets and the model of step 0.
zero = [sorted((p['subset'], p['bucket'], p['accuracy']) for p in o['points'] if p['step'] == 0 and p['run'] == f'runs/{r}') for r in ('grpo', 'bv_blend')]
assert zero[0] == zero[1]
# The figure: four panels, lengths on a logarithmic axis, every number also in the table.
page = open('runs/grpo/eval/heldout/difficulty.html').read()
assert page.count('<figure') == 4 and page.count('<figcaption>Mean tokens, log scale') == 2
assert page.count('<tr>') == 1 + len(o['points']) and '://' not in page.replace('http://www.w3.org/2000/svg', '')
PY
fi

# Killed and called again: the files are the same, and nothing is sampled twice.
cp -r runs/grpo/eval whole
rm -rf runs/grpo/eval/heldout/step-00000[48] runs/grpo/eval/heldout/difficulty.* runs/bv_blend/eval
killed_at questions 1 "$TARE" eval $SETTINGS --estimate-samples 8 --checkpoints runs/grpo --checkpoints runs/bv_blend eval.chunk=1 && ok || bad "not killed"
[ -s $OUT/step-000004/samples.jsonl ] && [ ! -e $OUT/step-000004/results.json ] && ok || bad "killed, but not within step 4"
steps --checkpoints runs/grpo --checkpoints runs/bv_blend > again.md && cmp -s both.md again.md && ok || bad "the table differs after a kill"
for file in difficulty.json difficulty.html step-000004/samples.jsonl step-000008/results.json estimate/questions.jsonl; do
    cmp -s $OUT/$file whole/heldout/$file && ok || bad "$file differs after a kill"
done

# Chosen steps, the user's own estimate, the user's own folder.
steps --checkpoints runs/grpo --steps 0,8 eval.difficulty=$OUT/estimate/questions.jsonl eval.out=mine > mine.md && ok || { bad "--steps"; tail -3 log.txt; }
grep -qE '^\| accuracy \| questions \| step 0 \| step 8 \|$' mine.md && ok || bad "other steps than requested"
[ -s mine/difficulty.html ] && [ -s mine/grpo/step-000008/results.json ] && [ ! -e mine/estimate ] && ok || bad "not in eval.out"

# Refused before anything is sampled.
refused() { # STATUS PATTERN ARGUMENTS...
    local status=$1 pattern=$2 got=0
    shift 2
    "$TARE" eval $SETTINGS "$@" > out.txt 2> log.txt || got=$?
    [ $got = "$status" ] && grep -qe "$pattern" log.txt && ok || bad "$* (status $got): $(head -2 log.txt)"
}
refused 1 'missing complete checkpoint of step 5' --checkpoints runs/grpo --steps 0,5
refused 1 'not the folder of a run' --checkpoints nowhere
refused 1 'name it with --base' --checkpoints runs/grpo --base nowhere
refused 3 'growing step numbers' --checkpoints runs/grpo --steps 30,0
refused 3 'growing step numbers' --checkpoints runs/grpo --steps 0,
refused 3 'estimate-samples 0' --checkpoints runs/grpo --estimate-samples 0
refused 2 '^usage' --steps 0,30
refused 2 '^usage' --checkpoints
# `tare report` shows the same evaluations.
"$TARE" report runs/grpo -o report.html 2> log.txt && grep -q 'Mean tokens by difficulty' report.html && ok || bad "the report does not show the evaluations"
done_
