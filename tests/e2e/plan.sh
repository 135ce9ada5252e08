#!/usr/bin/env bash
# Checks tare plan: the paper's recipe on several devices, exit statuses, that nothing is allocated,
# and refusals. Compares the plan with the memory that runs record.
. "$SOURCE/tests/e2e/common.inc"
CONFIG=$SOURCE/configs/qwen2.5-math-7b-bv-blend.ini
SHAPES=$SOURCE/configs/models
holds() { # EXPRESSION MESSAGE: checks a Python expression of o, the plan in plan.json
    checked "$2" "$1" <<< 'import json, sys; sys.exit(not eval(sys.argv[1], {"o": json.load(open("plan.json"))}))'
}
expect() { # STATUS PATTERN COMMAND...
    local status=$1 pattern=$2 got=0
    shift 2
    "$@" > out 2>&1 || got=$?
    if [ $got = "$status" ] && grep -qe "$pattern" out; then ok; else
        bad "$* (status $got, expected $status with '$pattern'): $(head -3 out)"
    fi
}
plan() { "$TARE" plan "$CONFIG" model.path="$SHAPES/Qwen2.5-Math-7B" "$@"; }

expect 0 '^fits: a device needs' plan plan.memory=96GB
expect 0 '^fits: a device needs' plan plan.device=h100
expect 0 '7.616 billion parameters' plan plan.memory=96GB
expect 1 '^does not fit: a device needs' plan plan.memory=40GB
expect 1 'rollout.kv_tokens=[0-9]* saves' plan plan.memory=40GB rollout.kv_tokens=160000
expect 1 '^even with \(this\|these\) it does not fit; it fits with \(this\|these\) and dist.ranks=[0-9]* dist.gradient_shards=[0-9]* rollout.max_new_tokens=[0-9]* ' plan device_memory=40GB
# Its advice fits: the suggested changes, then those of the last line.
expect 0 '^fits' plan device_memory=40GB $(plan device_memory=40GB 2> /dev/null | sed -n 's/^  \([a-z_.]*=[^ ]*\) saves .*/\1/p; s/.*it fits with th[eis]* and //p')
# On CPUs each rank of the advice has its own host, and the advice names the hosts.
host() { "$TARE" plan "$CONFIG" model.path="$SHAPES/Qwen2.5-Math-7B" run.device=cpu plan.memory=48GB dist.ranks=1 "$@" 2> /dev/null; }
expect 1 'dist.ranks=[0-9]* dist.gradient_shards=[0-9]* plan.hosts=[0-9]*' host
expect 0 '^fits' host $(host | sed -n 's/^  \([a-z_.]*=[^ ]*\) saves .*/\1/p; s/.*it fits with \(th[eis]* and \)*//p')
# Adapters are suggested when they fit.
expect 1 '^or train adapters instead of all weights: with lora.rank=16 and the changes above, on dist.ranks=1 a host needs .* and fits$' host
expect 0 '^fits' host lora.rank=16 $(host | sed -n 's/^  \([a-z_.]*=[^ ]*\) saves .*/\1/p')
# Ranks of one host share its memory: fewer ranks are suggested first.
expect 1 'lora.rank=16 and the changes above, on dist.ranks=1 a host needs' "$TARE" plan "$CONFIG" model.path="$SHAPES/Qwen2.5-Math-7B" run.device=cpu plan.memory=128GB
expect 1 'it fits with \(this\|these\) and dist.ranks=1 ' "$TARE" plan "$CONFIG" model.path="$SHAPES/Qwen2.5-Math-7B" run.device=cpu plan.memory=256GB
expect 0 'give plan.memory to check' plan
expect 0 '^fits' plan plan.memory=96GB dist.ranks=64 dist.gradient_shards=64
expect 3 'dist.ranks = 64 (command line) and dist.gradient_shards = 8 .*multiple of the number of ranks' plan plan.memory=96GB dist.ranks=64
expect 1 '^does not fit' plan plan.memory=96GB dist.ranks=1
# Families of models.
FAMILIES=$SOURCE/tests/data/models/families
expect 0 '^model    olmo2, 0.008656 million' plan model.path="$FAMILIES/olmo2" plan.memory=96GB
expect 0 '^model    gemma3_text, ' plan model.path="$FAMILIES/gemma3" plan.memory=96GB run.device=cpu
expect 1 '"sliding_window": 8 is not supported with run.device = cuda' plan model.path="$FAMILIES/gemma3" plan.memory=96GB run.device=cuda
expect 3 "plan.device = tpu: unknown device; known: a100" plan plan.device=tpu
expect 3 "plan.memory: invalid quantity '8 gigs'" plan "plan.memory=8 gigs"
expect 3 'unknown key plan.colour' plan plan.colour=red
expect 3 'plan.hosts = 0: must be a whole number' plan plan.hosts=0
expect 3 '9 hosts' plan plan.hosts=9
expect 3 'no key' plan rollout.promts=3
expect 3 'model.path = none does not exist; name the folder of a model' "$TARE" plan "$CONFIG" model.path=none
expect 2 '^usage: tare plan' plan --measure
expect 2 '^usage: tare plan' "$TARE" plan
expect 2 '^usage: tare plan' "$TARE" plan --what
expect 0 '^usage: tare plan' "$TARE" plan --help
for name in Qwen2.5-7B-Instruct Qwen2.5-Math-1.5B Qwen2.5-1.5B Llama-3.1-8B-Instruct; do
    expect 0 'billion parameters' "$TARE" plan "$CONFIG" model.path="$SHAPES/$name"
done

# Nothing is allocated: the plan of 7 billion parameters runs in 400 MB of address space. Sanitizers
# reserve terabytes, so they skip this.
if ! grep -q __asan_init "$TARE"; then
    (ulimit -v 400000 && plan plan.memory=96GB > /dev/null) && ok || bad "a plan uses more than 400 MB"
fi

# The same numbers as JSON: classes add up, shards of 8 ranks.
plan plan.memory=80GB --json > plan.json && ok || bad "plan --json"
holds "len(o['ranks']) == 8" "not 8 ranks"
holds "all(sum(r['bytes'].values()) == r['total'] == r['device'] + r['host'] for r in o['ranks'])" "classes do not add up"
holds "all(abs(8 * r['bytes']['moments'] / 8 / o['parameters'] - 1) < 0.01 for r in o['ranks'])" "moments are not 8 bytes a parameter over 8 ranks"
holds "o['fits'] and o['kv_cache']['sequences'] >= 16" "80 GB do not hold a step's completions"

# A model that does not exist yet: the warm start's shape.
(cd "$SOURCE" && "$TARE" plan configs/quickstart.ini run.seed=987 --json) > plan.json && ok || bad "the plan of a warm start"
holds "o['parameters'] == 624640" "parameters of the quickstart are not 624640, as by hand"

# Compare the plan with the memory that runs record (memory/...).
tiny_config
# an evaluation in training determines the cache, by the rows that data.eval has
for n in $(seq 40); do echo "{\"question\":\"$n+1=\",\"answer\":\"$((n + 1))\"}"; done > rows.jsonl
evaluates() { "$TARE" plan tiny.ini data.eval=rows.jsonl eval.before=true eval.samples=2 "$@"; }
expect 0 'an evaluation of 40 questions needs' evaluates
expect 0 'an evaluation of 20 questions needs' evaluates eval.rows=20
expect 0 'an evaluation of 256 questions needs' evaluates data.eval=nothere.jsonl
expect 0 '; a step needs' evaluates eval.before=false eval.after=false
evaluates --json > plan.json
holds "o['kv_cache']['evaluation_rows'] == 40" "the JSON names another number of questions"
"$TARE" -q sft sft.ini > /dev/null
compare() { # RANKS
    "$TARE" plan tiny.ini dist.ranks="$1" --json > plan.json
    checked "the plan for $1 ranks differs from the memory that the run used" "$1" << 'PY'
import json, sys
plan = json.load(open('plan.json'))['ranks'][0]['bytes']
run = json.loads(open('run/metrics.jsonl').readlines()[-1])
names = {'parameters': 'weights', 'gradients': 'gradients', 'moments': 'moments', 'sampler': 'sampler', 'windows': 'gathered'}
for name, of_plan in names.items():
    got, want = run['memory/' + name], plan[of_plan]
    print(f'{sys.argv[1]} ranks: memory/{name} {got:.0f}, planned {want}')
    if abs(want - got) > 0.1 * got: sys.exit(1)
PY
}
for ranks in 1 2; do
    rm -rf run
    if "$TARE" -q train tiny.ini dist.ranks=$ranks train.steps=1 eval.before=false eval.after=false > /dev/null 2> train.txt; then
        compare $ranks
    elif [ $ranks = 1 ]; then
        bad "training: $(head -1 train.txt)"
    else
        skip_part "$ranks ranks cannot be started here: $(head -1 train.txt)"
    fi
done
done_
