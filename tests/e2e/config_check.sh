#!/usr/bin/env bash
# Checks `tare config`: init writes a file that loads; check finds what would stop a training
# (plugins, parameters, paths, data, the model's configuration); diff prints differences. A
# configuration with only model.path and data.train trains. A run's folder can be used as a model.
. "$(dirname "$0")/common.inc"
tiny_config
"$TARE" -q sft sft.ini 2> err.txt || { bad "sft"; cat err.txt; }

# expect STATUS PATTERN COMMAND...
expect() {
    local status=$1 pattern=$2 got=0
    shift 2
    "$@" > out.txt 2>&1 < /dev/null || got=$?
    [ $got = "$status" ] && grep -qe "$pattern" out.txt && ok || { bad "$*: status $got, expected $status with '$pattern'"; head -5 out.txt; }
}
check() { expect "$1" "$2" "$TARE" config check tiny.ini "${@:3}"; }
check 0 'tiny.ini: no errors'
check 3 'model.head_dim = 7 (command line): must be even' model.init=llama model.head_dim=7
check 3 "no verifier named 'exactt'" verifier.plugins=exactt
check 3 "no estimator named 'grpoo'; did you mean grpo" estimator.plugin=grpoo
check 3 'out of range: must be 0 < gamma <= 1' estimator.bv_blend.gamma=1.5
check 3 'data.train = none.jsonl\|none.jsonl: ' data.train=none.jsonl
check 3 'none.jsonl' data.eval=none.jsonl
check 3 'model.path = nowhere does not exist' model.path=nowhere model.warm_start=
check 3 'Hugging Face hub.*hf download Qwen/Qwen2.5-0.5B' model.path=Qwen/Qwen2.5-0.5B model.warm_start=
check 3 'none of ' codebook.field.field=topic
check 3 'chat_template = none.jinja does not exist' data.chat_template=none.jinja
check 3 'the prompt has ' rollout.max_prompt_tokens=2
check 3 'bv_blend' codebook.plugin=none
check 3 'clusterer.codebook is codebook.plugin' clusterer.codebook=none
check 3 'did you mean \[encoder.hashed\]' enocder.hashed.dim=8
check 3 'no estimator named .gspo.; gspo is an objective: objective.plugin=gspo' estimator.plugin=gspo
check 3 'no objective named .bv_blend.; bv_blend is an estimator: estimator.plugin=bv_blend' objective.plugin=bv_blend
check 3 "\[train\] has no key 'leaningrate'; did you mean train.lr, which is TRL's learning_rate?" train.leaningrate=1e-4
# a suggestion for a key of every section, with a letter too many
"$TARE" config docs | sed -n 's/^\([a-z_]*\.[a-z0-9_]*\) (default.*/\1/p' > keys.txt
sed 's/\(.*\)\.\(.*\)/[\1]\n\2x = 1/' keys.txt > misspelt.ini
"$TARE" config check misspelt.ini > out.txt 2>&1 < /dev/null || true
while IFS=. read -r section key; do
    grep -F "[$section] has no key '${key}x'; did you mean" out.txt | grep -q "'$key'" || echo "$section.$key"
done < keys.txt > without.txt
[ "$(wc -l < keys.txt)" -gt 150 ] && [ ! -s without.txt ] && ok || bad "no suggestion for a misspelt key: $(tr '\n' ' ' < without.txt)"
check 3 "\[train\] has no key 'xyzzy'; .tare config docs. lists them" train.xyzzy=1
TARE_CUDA=$WORK/nothing.so check 0 'warning: command line: run.device = cuda: .*not found .*on this machine the run would be refused' run.device=cuda
check 0 'warning: command line: 500 of the 500 rows of data.eval are also in data.train (the first is' eval.before=true 'data.eval=builtin:arithmetic/train?rows=500'
check 0 'warning: command line: 9 of the 9 rows of data.eval are also in data.train' eval.after=true 'data.eval=builtin:arithmetic/train?rows=9'
# the same questions under other names and ids, among others
for i in 1 2 3 4 5 6 7 8 9; do echo "{\"id\":\"t$i\",\"question\":\"$i+1=\",\"answer\":\"$((i + 1))\",\"subject\":\"s\"}"; done > asked.jsonl
sed 's/"t/"e/; s/"\([1-6]+1\)/"5\1/' asked.jsonl > other.jsonl
check 0 'warning: command line: 3 of the 9 rows of data.eval are also in data.train (the first is ./other.jsonl:7)' data.train=asked.jsonl data.eval=./other.jsonl eval.every=2
check 0 'warning: .*has 3 rows, fewer than rollout.prompts = 8' 'data.train=builtin:arithmetic/train?rows=3'
"$TARE" config check tiny.ini > out.txt 2>&1 && ! grep 'fewer than\|also in data.train\|cuda\|group_size\|temperature' out.txt > found.txt && ok || bad "a warning without a reason: $(cat out.txt)"
# groups without anything to compare: found by a probe of the estimator, so also for one that is named by a file
one='rollout.group_size=1 rollout.prompts=16'
nothing='warning: command line: rollout.group_size = 1: estimator .* compares the rollouts of a prompt, so every advantage is 0'
for estimator in grpo dr_grpo rloo dapo opo gpg "${TARE%/*}/plugins/estimators/grpo.so"; do check 0 "$nothing" $one "estimator.plugin=$estimator" codebook.plugin=none; done
check 0 'no errors' $one estimator.plugin=grpo estimator.grpo.convention=verl codebook.plugin=none
grep -q "$nothing" out.txt && bad "a group of one has an advantage, and there is a warning" || ok
check 0 'no errors' $one estimator.plugin=reinforce_pp codebook.plugin=none
grep -q "$nothing" out.txt && bad "reinforce_pp compares over the batch, and there is a warning" || ok
check 0 'warning: command line: rollout.temperature = 0: greedy .* the same completion to every rollout of a prompt, so every advantage is 0, ' rollout.temperature=0 estimator.plugin=grpo
check 0 'warning: command line: rollout.temperature = 0: greedy' rollout.temperature=0 estimator.plugin=reinforce_pp codebook.plugin=none
if has_python; then
    # the parameters of a Python reward are checked against the rows' fields, before a model is loaded
    printf '{"question":"1+1=","answer":"2","subject":"s","hint":"a"}\n{"question":"1+2=","answer":"3"}\n{"question":"2+2=","answer":"4"}\n{"question":"2+3=","answer":"5"}\n' > hints.jsonl
    cat > rewards.py << 'PY'
def gold(completions, solution, **row): return [0.0] * len(completions)
def hinted(completions, hint, answer, prompts): return [0.0] * len(completions)
def chosen(completions, solution=None): return [0.0] * len(completions)
def conversation(completions): return [float(len(c[0]["content"])) for c in completions]
def short(completions): return []
PY
    python() { check "$1" "$2" verifier.plugins=python verifier.python.file=rewards.py verifier.python.function="$3" data.train=hints.jsonl "${@:4}"; }
    python 3 "gold in $PWD/rewards.py: TypeError: it takes 'solution', and the rows of data.train have no such field; there are answer, answers, completions, hint, " gold
    python 0 'no errors' chosen
    python 3 'hints.jsonl:1: a completion "-": .*conversation in .*TypeError: string indices' conversation
    python 3 'hints.jsonl:1: a completion "-": .*short in ' short
    python 0 'no errors' hinted data.eval=hints.jsonl
    python 3 "hinted in $PWD/rewards.py: TypeError: it takes 'hint', and the rows of data.eval have no such field" hinted
    python 3 "it takes 'solution', and the rows of data.train" gold verifier.plugins='python as a python as b' verifier.a.file=rewards.py verifier.a.function=gold verifier.b.file=rewards.py verifier.b.function=chosen
    expect 3 "it takes 'solution', and the rows of data.train" "$TARE" train tiny.ini verifier.plugins=python verifier.python.file=rewards.py verifier.python.function=gold data.train=hints.jsonl run.dir=early
    [ ! -e early/metrics.jsonl ] && ! grep 'evaluation reward' out.txt > found.txt && ok || bad "a missing field is found after the start: $(cat out.txt)"
fi
check 0 'command line: verifier.python.file has no effect because plugin python is unused; choose it with verifier.plugins' verifier.python.file=mine.py
check 0 '\[estimator.bv_blnd\] is unused.*did you mean bv_blend' estimator.bv_blnd.gamma=0.5
check 0 '\[estimator.grpo\] ddoff: unknown key.*unused' estimator.grpo.ddoff=1
check 0 'train.max_grad_norm = 0: advantages are unbounded' train.max_grad_norm=0
check 0 'checkpoints of about [1-9][0-9.]* [KM]B each do not fit' checkpoint.every=1 checkpoint.keep=0 train.steps=100000000
"$TARE" config check tiny.ini train.max_grad_norm=0 estimator.bv_blend.gamma=0.1 2>&1 | grep -q 'no bound' && bad "a bounded blend gives a warning" || ok
check 3 "no objective named 'gsop'; did you mean gspo" objective.plugin=gsop
check 0 '\[objective.gspo\] clip_hgih: unknown key; did you mean clip_high.*unused' objective.gspo.clip_hgih=1
check 3 '\[objective.gspo\] clip_hgih: unknown key; did you mean clip_high' objective.plugin=gspo objective.gspo.clip_hgih=1
check 3 "no estimator named 'gpro'; did you mean grpo" estimator.plugin=gpro
expect 1 "^bad  chosen .*no objective named 'gsop'; did you mean gspo" "$TARE" doctor tiny.ini objective.plugin=gsop
expect 1 '^bad  chosen .*clip_hgih: unknown key' "$TARE" doctor tiny.ini objective.plugin=gspo objective.gspo.clip_hgih=1
expect 1 '^bad  chosen .*did you mean grpo' "$TARE" doctor tiny.ini estimator.plugin=gpro
# Rows that a verifier cannot read are refused before the first step.
for i in 1 2 3 4 5 6 7 8 9; do printf '{"prompt":"1+%s=","instruction_id_list":["punctuation:no_comma"],"kwargs":[{}]}\n' $i; done > follow.jsonl
{ cat follow.jsonl; echo '{"prompt":"1+2=","instruction_id_list":["keywords:frequency"],"kwargs":[{}]}'; } > unread.jsonl
check 0 'tiny.ini: no errors' data.train=follow.jsonl data.eval= estimator.plugin=grpo codebook.plugin=none verifier.plugins=ifeval:1,repetition:0.1
check 3 'follow.jsonl:1: "answer" is missing or empty, and a verifier' data.train=follow.jsonl verifier.plugins=ifeval:1,exact:0.1
check 3 'unread.jsonl:10: verifier ifeval: verify: the row.s kwargs for keywords:frequency' data.train=unread.jsonl verifier.plugins=ifeval
check 3 'follow.jsonl:1: verifier shape: verify: the row has no field' data.train=follow.jsonl 'verifier.plugins=json as shape'
unread='data.prompt=plain data.eval= estimator.plugin=grpo codebook.plugin=none verifier.plugins=ifeval run.dir=tries/unread train.steps=1'
expect 3 'unread.jsonl:10: verifier ifeval' "$TARE" train tiny.ini data.train=unread.jsonl $unread
[ ! -s tries/unread/metrics.jsonl ] && ok || bad "a step was made before the rows were checked"
expect 0 '' "$TARE" train tiny.ini data.train=follow.jsonl $unread run.dir=tries/follow
# An external verifier declares which fields of a row it uses. Without the declaration it is assumed
# to compare with the answer.
answerless=$FIXTURES/answerless.so plain='data.eval= estimator.plugin=grpo codebook.plugin=none'
check 0 'tiny.ini: no errors' data.train=follow.jsonl $plain verifier.plugins=$answerless
check 3 'follow.jsonl:1: "answer" is missing or empty, and a verifier' data.train=follow.jsonl verifier.plugins=$answerless verifier.answerless.compare=true
check 3 'follow.jsonl:1: "answer" is missing or empty, and a verifier' data.train=follow.jsonl "verifier.plugins=$answerless as strict" verifier.strict.compare=true
check 3 'follow.jsonl:1: "answer" is missing or empty, and a verifier' data.train=follow.jsonl verifier.plugins=$answerless:1,$FIXTURES/good_verifier.so:1
check 3 'verifier hostile: uses returns the bits 0x100000; this program knows only 0x7' data.train=follow.jsonl verifier.plugins=$FIXTURES/unknown_uses.so
expect 0 '' "$TARE" train tiny.ini data.prompt=plain data.train=follow.jsonl $plain verifier.plugins=$answerless run.dir=tries/answerless train.steps=1
expect 0 'follow.jsonl: 9 rows, no problems found' "$TARE" data check follow.jsonl verifier=$answerless
check 0 'rollout.max_new_tokens = 4096, but base has a context of .* tokens' rollout.max_new_tokens=4096
check 3 'allowed: from 0 to 10$' train.lr=100
# All errors are reported, each with its place.
cat > many.ini <<'INI'
include = nowhere.ini
[run]
dir = runs/many
seed
[model]
path = nowhere
[data]
train = none.jsonl
eval = ${run.sed}
chat_template = none.jinja
[trian]
steps = 3
lr = 1
[train]
lr = fast
stepss = 4
minibatch = 12
[estimator]
plugin = grpo
[estimator.grpo]
ddoff = 1
delta = -1
[verifier]
plugins = exactt
[verifier.exact]
case = maybe
[loss]
clip_high = 0.1
INI
expect 3 'many.ini: 16 errors' "$TARE" config check many.ini rollout.group_sise=8
while read -r line; do
    grep -qe "$line" out.txt && ok || { bad "missing in the output: $line"; cat out.txt; }
done <<'LINES'
many.ini:1: include = nowhere.ini: no such file
many.ini:4: expected key = value
many.ini:9: unknown reference '${run.sed}'
many.ini:12: unknown section \[trian\]; did you mean \[train\]
many.ini:15: train.lr = 'fast' is not a number
many.ini:16: \[train\] has no key 'stepss'; did you mean 'steps'
command line: \[rollout\] has no key 'group_sise'; did you mean 'group_size'
train.minibatch = 12 (many.ini:17)
loss.clip_high = 0.1 (many.ini:28)
many.ini:21: \[estimator.grpo\] ddoff: unknown key; did you mean ddof
many.ini:22: \[estimator.grpo\] delta: -1 is out of range
many.ini:10: data.chat_template = none.jinja does not exist
many.ini:8: data.train: none.jsonl
many.ini:24: verifier.plugins: no verifier named 'exactt'
many.ini:6: model.path = nowhere does not exist
many.ini:26: \[verifier.exact\] case: unknown key
LINES
# Endless files, pipes and files that are not regular are refused and not read.
mkfifo pipe && truncate -s 4G large.ini && mkdir folder
for what in /dev/zero pipe folder; do
    echo "include = $what" > reads.ini
    expect 3 "reads.ini:1: include: $what is a [a-z ]*; name a regular file" timeout 60 "$TARE" config check reads.ini
done
check 3 'pipe is a pipe; name a regular file' data.prompt=chat data.chat_template=pipe
echo 'include = large.ini' > reads.ini
expect 3 'large.ini has more than 16 MiB' timeout 60 "$TARE" config check reads.ini
expect 3 '/dev/zero is a device' timeout 60 "$TARE" config check /dev/zero
expect 3 'pipe is a pipe' timeout 60 "$TARE" train pipe
expect 3 '/dev/stdin has more than 16 MiB' sh -c "timeout 60 '$TARE' config check /dev/stdin < /dev/zero"
expect 0 'no errors' sh -c "cat tiny.ini | '$TARE' config check /dev/stdin"
# The configuration of the warm start, and a cycle of warm starts.
sed 's/^train = .*/train = none.jsonl/; s/^out = .*/out = base2/' sft.ini > sft2.ini
check 3 'none.jsonl' model.path=base2 model.warm_start="$PWD/sft2.ini"
printf '[model]\npath = a\nwarm_start = circle.ini\n[data]\ntrain = builtin:arithmetic/phase1?rows=9\n[sft]\nout = a\n' > circle.ini
check 3 'circle' model.path=a model.warm_start="$PWD/circle.ini" rollout.max_new_tokens=4

# train checks the configuration before a warm start.
expect 3 'out of range' "$TARE" train tiny.ini model.path=base3 model.warm_start="$PWD/sft3.ini" estimator.bv_blend.gamma=1.5
sed 's/^out = .*/out = base3/' sft.ini > sft3.ini
expect 3 'gamma' "$TARE" train tiny.ini model.path=base3 model.warm_start="$PWD/sft3.ini" estimator.bv_blend.gamma=1.5
[ ! -e base3 ] && [ ! -e base3.training ] && ok || bad "a warm start was made before the configuration error"

# init, and the smallest configuration.
expect 0 'tare.ini is written' "$TARE" config init
expect 1 'exists already' "$TARE" config init
expect 0 'no errors' "$TARE" config check tare.ini model.path=base data.train=builtin:arithmetic/train?rows=40 data.prompt=plain verifier.plugins=exact
printf '[model]\npath = base\n[data]\ntrain = builtin:arithmetic/train?rows=200\n' > least.ini
expect 0 'done: runs/least' "$TARE" train least.ini train.steps=1 verifier.plugins=exact log.progress=none
grep -q 'bv_blend works by cluster.*kmeans' out.txt && grep -q 'at most 64 tokens (the context has 128)' out.txt && ok || { bad "the chosen value is not reported"; cat out.txt; }
grep -q '^plugin = kmeans' runs/least/config.ini && grep -q '^max_new_tokens = 64' runs/least/config.ini && ok || bad "the chosen value is not recorded"

# A run's folder as model.path.
expect 0 'using its newest checkpoint' sh -c "echo '{\"question\":\"1+1=\"}' | '$TARE' generate runs/least max_new_tokens=2 data.prompt=plain"
expect 0 'using its newest checkpoint' sh -c "echo '{\"text\":\"1\"}' | '$TARE' tokenize runs/least"
expect 0 'using its newest checkpoint' "$TARE" config check tiny.ini model.path=runs/least
expect 3 'runs/nothing: no such configuration file' "$TARE" config diff runs/least runs/nothing
expect 0 'train.lr: 1e-06 -> 0.001' "$TARE" config diff runs/least tiny.ini
expect 0 'train.steps: 500 -> 1$' "$TARE" config diff runs/least
expect 0 'train.steps: 1 -> 7$' "$TARE" config diff runs/least runs/least train.steps=7
# A run's folder can replace its configuration wherever one is read.
expect 0 'data.prompt = chat, and chat_template' sh -c "echo '{\"question\":\"1+1=\"}' | '$TARE' generate runs/least max_new_tokens=2"
expect 0 '"completion"' sh -c "echo '{\"prompt\":\"1+1=\"}' | '$TARE' generate runs/least max_new_tokens=2"
expect 0 'rollout.max_new_tokens = 500, but the context of .* has 128 tokens' sh -c "echo '{\"prompt\":\"1+1=\"}' | '$TARE' generate runs/least max_new_tokens=500 group_size=1"
cp -r runs/least runs/own && echo '{% for m in messages %}<{{ m.content }}>{% endfor %}' > own.jinja
sed -i "s|^chat_template = .*|chat_template = $PWD/own.jinja|" runs/own/config.ini
expect 0 '"text":"<1+1=>"' sh -c "echo '{\"messages\":[{\"role\":\"user\",\"content\":\"1+1=\"}]}' | '$TARE' chat runs/own"
expect 0 'chosen .*estimator.plugin = bv_blend' "$TARE" doctor runs/least
expect 0 '^model ' "$TARE" plan runs/least
expect 0 'pass@1' "$TARE" eval runs/least data.eval='builtin:arithmetic/heldout?rows=4' eval.samples=1 eval.out=runs/judged
grep -q 'using its newest checkpoint' out.txt && ok || bad "eval of a run's folder uses the model that the run started from"
mkdir -p empty && expect 3 'empty: config.ini is missing' "$TARE" plan empty
expect 0 'model.path: .*--resume allows it' "$TARE" config diff runs/least runs/least model.path=elsewhere
expect 0 'leave only 1 of the context.* rollout.max_prompt_tokens' "$TARE" plan runs/least rollout.max_prompt_tokens=4096
# Without an evaluation before the first step the reward "before" is missing.
expect 0 '^  all  *-  *[0-9.]*$' "$TARE" train least.ini run.dir=others/after train.steps=1 verifier.plugins=exact log.progress=none eval.before=false eval.after=true \
    eval.rows=4 eval.samples=1 data.eval=builtin:arithmetic/heldout
# Rows in TRL's format, in several files.
printf '{"prompt":"1+1=","answer":2}\n' > a1.jsonl
printf '{"prompt":[{"role":"user","content":"2+2="}],"answer":"4"}\n' > a2.jsonl
expect 0 'no errors' "$TARE" config check least.ini 'data.train=a?.jsonl' data.prompt=plain
expect 3 'a9' "$TARE" config check least.ini 'data.train=a1.jsonl,a9.jsonl' data.prompt=plain
# Steps without a training signal, and the entropy bonus in them; a model without an end-of-sequence
# id; runs of one file have different names.
printf '{"question":"1+1=","answer":"never"}\n' > never.jsonl
rm base/sums.json
sed -i 's/"eos_token": *"[^"]*"/"eos_token": null/' base/tokenizer_config.json
grep -rl eos_token_id base/*.json | xargs sed -i 's/"eos_token_id": *[0-9]*/"eos_token_id": null/'
expect 0 'no training signal for 5 steps' "$TARE" train least.ini data.train=never.jsonl data.prompt=plain run.dir=runs/silent train.steps=6 estimator.plugin=grpo rollout.max_new_tokens=2 \
    loss.entropy_coef=0.01 verifier.plugins=exact log.progress=none checkpoint.last=false
grep -q 'entropy bonus alone moves the weights' out.txt && grep -q 'base has no end-of-sequence id' out.txt && ok || { bad "no warning of the bonus or of the missing end-of-sequence id"; cat out.txt; }
[ "$(grep -c 'no training signal' out.txt)" = 1 ] && ok || bad "a warning is repeated"
if has_python; then
    names=$(python3 -c 'import sqlite3; print(*sorted(r[0] for r in sqlite3.connect("runs/runs.db").execute("select name from runs")), sep=";")')
    [ "$names" = 'least;least (silent)' ] && ok || bad "names in runs.db: $names"
fi
# A tokenizer with more ids than the model; an unsupported model without a tokenizer.
cp -r base foreign
sed -i 's/"vocab_size": *[0-9]*/"vocab_size": 40/' foreign/config.json
check 3 'token [0-9]* of the prompt is [0-9]*, but the model.s ids are 0 to 39; check that tokenizer.json and config.json' model.path=foreign
mkdir other && echo '{"model_type":"mamba"}' > other/config.json
for verb in generate serve; do
    expect 1 'other/config.json: model_type "mamba" is not supported; supported: ' "$TARE" $verb other
done
# Error messages name the bad argument.
expect 2 "'--steps': unknown option.*steps is a key of .train. and .sft." "$TARE" train tiny.ini --steps 3
expect 2 "'--train.steps=3': unknown option; keys are set without dashes: train.steps=3" "$TARE" train tiny.ini --train.steps=3
expect 2 "'train.steps': must be section.key=value" "$TARE" train tiny.ini train.steps
done_
