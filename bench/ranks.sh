#!/usr/bin/env bash
# Measures the cost of sharding: a model on 1 rank with 2 threads against 2 ranks with 1 thread each; 4 prompts x 8 rollouts of 64 + 64 tokens.
#   bench/ranks.sh TARE MODEL [steps]      alternating, one step more than is counted; prints the medians of each stage and compares the weights
set -euo pipefail
tare=$(readlink -f "$1")
model=$(readlink -f "$2")
steps=${3:-2}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 - > rows.jsonl <<'PY'
import json, random
random.seed(1)
for i in range(64):
    # about 64 tokens, one per word
    words = " ".join(random.choice("the of and to in is was for on that with as by at from".split()) for _ in range(60))
    print(json.dumps({"id": str(i), "question": words + " =", "answer": "1"}))
PY
cat > bench.ini <<INI
[run]
seed = 1
[model]
path = $model
[data]
train = rows.jsonl
prompt = plain
[rollout]
prompts = 4
group_size = 8
max_new_tokens = 64
ignore_eos = true
[verifier]
plugins = exact
[codebook]
plugin = none
[estimator]
plugin = grpo
[train]
steps = $((steps + 1))
minibatch = 32
lr = 1e-5
[checkpoint]
every = 0
last = ${SAVE:-false}
[log]
rollouts = false
tensorboard = false
database = false
INI
mpirun="env OMPI_MCA_btl=^tcp OMPI_MCA_orte_execute_quiet=1 mpirun --oversubscribe --bind-to none"
[ "$(id -u)" = 0 ] && mpirun="$mpirun --allow-run-as-root"
"$tare" -q train bench.ini log.progress=none run.dir=one run.threads=2 > /dev/null
$mpirun -n 2 "$tare" -q train bench.ini log.progress=none run.dir=two run.threads=1 > /dev/null
python3 - <<'PY'
import json, statistics
def rows(d): return [json.loads(l) for l in open(d + "/metrics.jsonl")][1:]
one, two = rows("one"), rows("two")
same = all(a["grad_norm"] == b["grad_norm"] and a["policy/loss"] == b["policy/loss"] for a, b in zip(one, two))
print("prompt tokens %.0f, new tokens %.0f a rollout; gradient norms and losses are %s" % (one[0]["prompt_length/mean"], one[0]["response_length/mean"], "the same bits" if same else "DIFFERENT"))
for k in sorted(one[0]):
    if not k.startswith("time/"): continue
    a, b = (statistics.median(r[k] for r in x) for x in (one, two))
    if a > 0.001 or b > 0.001: print("%-16s 1 rank x 2 threads %8.3f s   2 ranks x 1 thread %8.3f s   %+6.1f %%" % (k, a, b, 100 * (b / a - 1) if a > 0 else 0))
for k in ("memory/parameters", "memory/gradients", "memory/moments", "memory/sampler", "memory/windows"):
    print("%-18s %8.1f MiB  %8.1f MiB a rank" % (k, one[0][k] / 2**20, two[0][k] / 2**20))
PY
