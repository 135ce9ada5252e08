#!/usr/bin/env bash
# Trains on the episodes of an environment: the bits do not depend on threads, batch, cache or ranks,
# nor on a kill and a resume; sampler and update agree; records, metrics and evaluations have the
# episodes. Environments that break the contract, and settings that do not go with episodes, end with
# one message.
. "$(dirname "$0")/common.inc"
for n in 1 2 3 4 5 6 7 8; do echo "{\"id\":\"r$n\",\"question\":\"#\",\"number\":$((1 + n % 7))}"; done > rows.jsonl
"$TARE" env demo guess --rows 3840 > warm.jsonl
cat > sft.ini <<'INI'
[run]
dir = sft
seed = 1
[model]
path = none
init = qwen2
hidden_size = 64
layers = 2
heads = 4
kv_heads = 2
intermediate_size = 128
context = 64
[data]
train = warm.jsonl
prompt = plain
[sft]
steps = 60
batch = 64
out = base
[train]
lr = 4e-3
INI
cat > agent.ini <<'INI'
[run]
dir = run
seed = 1
[model]
path = base
[data]
train = rows.jsonl
prompt = plain
[rollout]
prompts = 4
group_size = 4
max_new_tokens = 8
[environment]
plugin = guess
question = false
[codebook]
plugin = none
[estimator]
plugin = grpo
[loss]
entropy_coef = 0.01
[train]
steps = 4
minibatch = 8
lr = 1e-3
[log]
rollouts = true
progress = none
[checkpoint]
every = 2
INI
"$TARE" -q sft sft.ini || bad "the warm start"
train() { "$TARE" -q train agent.ini "$@" > out.txt 2> err.txt; }
records() { sed -E 's/"(time|memory|speculation)\/[^"]*":[^,}]*,?//g; s/"tokens_per_second":[^,}]*,?//g; s/,}/}/' "$1/metrics.jsonl"; }
same() { # RUN [FILE]: weights, rollouts, metrics and FILE (the moments) are those of run.dir=run
    local file
    for file in model.safetensors ${2:-optimizer-00000-of-00001.state}; do cmp -s "run/checkpoints/step-000004/$file" "$1/checkpoints/step-000004/$file" && ok || bad "$1: $file differs"; done
    diff -rq run/rollouts "$1/rollouts" > difference.txt && ok || bad "$1: rollouts: $(cat difference.txt)"
    cmp -s <(records run) <(records "$1") && ok || bad "$1: metrics: $(diff <(records run) <(records "$1") | head -c 300)"
}
train && ok || { bad "a training: $(cat err.txt)"; done_; }
for how in run.threads=1 run.threads=3 rollout.batch=3 rollout.kv_tokens=96; do train run.dir="$how" "$how" && same "$how" || bad "$how: $(cat err.txt)"; done
if command -v mpirun > /dev/null && "$TARE" doctor 2> /dev/null | grep '^ok *mpi ' > /dev/null; then
    train run.dir=ranks dist.ranks=2 run.threads=1 dist.gradient_shards=8 && same ranks config.json || bad "two ranks: $(cat err.txt)"
else
    skip_part "mpirun is not installed (apt install openmpi-bin libopenmpi-dev)"
fi
killed_at update 4 train run.dir=killed && train run.dir=killed --resume && same killed || bad "killed and resumed: $(cat err.txt)"

hasnt run/metrics.jsonl '"policy/sampler_mismatch":[^0n]'
has run/metrics.jsonl '"rollout/turns":2'
has run/rollouts/step-000004.jsonl '"prompt":"g:"'
has run/rollouts/step-000004.jsonl '"sampled":.[0-9,]+.,"turns":.\{"begin":0,"end":[0-9]+,"reward":0.0,"finish":"stop"\},\{"begin":'
has run/rollouts/step-000004.jsonl '"components":\[[01].0\],"verdict":"(correct|wrong)"'
has run/manifest.json '"environment"'
"$TARE" -q reproduce run > out.txt 2>&1 && ok || bad "reproduce: $(tail -n 2 out.txt)"
train run.dir=limited environment.max_turns=1 && has limited/metrics.jsonl '"rollout/turns":1[,}]' && hasnt limited/metrics.jsonl '"rollout/turns":[^1]'
train run.dir=both 'verifier.plugins=length:0.5' && has both/rollouts/step-000001.jsonl '"components":\[-?[0-9.e-]*,[01].0\]' || bad "with a verifier: $(cat err.txt)"
train run.dir=adapter lora.rank=2 && hasnt adapter/metrics.jsonl '"policy/sampler_mismatch":[^0n]' || bad "adapters: $(cat err.txt)"
train run.dir=words model.dtype=bf16 && hasnt words/metrics.jsonl '"policy/sampler_mismatch":[^0n]' || bad "bf16: $(cat err.txt)"
train run.dir=watched data.eval=rows.jsonl eval.every=2 && has watched/metrics.jsonl '"eval/reward' || bad "an evaluation: $(cat err.txt)"
"$TARE" -q eval agent.ini data.eval=rows.jsonl run.dir=evaluation > out.txt 2> err.txt && has out.txt 'reward' || bad "tare eval: $(cat err.txt)"

# refused PATTERN ARGUMENTS...: ends with status 1 and one message
refused() {
    local pattern=$1
    shift
    rm -rf refused
    train run.dir=refused "$@" && bad "accepted: $*"
    grep -E -- "$pattern" err.txt > found.txt && [ "$(grep '^tare: ' err.txt | grep -vc '^tare: warning: ')" = 1 ] && ok || bad "$*: $(cat err.txt)"
}
# A chat: what follows a turn is what the template writes there, and a template that changes earlier
# turns is refused. The policy ends its turns with any token above 96, or with the template's.
printf '%s\n' "{% for m in messages %}<|im_start|>{{ m.role }}" "{{ m.content }}<|im_end|>" "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant" "{% endif %}" > chatml.jinja
sed "s/{% for m in messages %}/{% for m in messages if m.role != 'assistant' %}/" chatml.jinja > forgetful.jinja
sed -i 's/context = 64/context = 512/; s/out = base/out = long/' sft.ini
"$TARE" -q sft sft.ini || bad "the model of the chat"
chat="model.path=long data.prompt=chat data.chat_template=chatml.jinja rollout.max_new_tokens=20 rollout.max_prompt_tokens=128 rollout.stop_ids=$(seq -s , 97 256),258"
train run.dir=chat $chat && has chat/metrics.jsonl '"rollout/turns":[23]' && hasnt chat/metrics.jsonl '"policy/sampler_mismatch":[^0n]' || bad "a chat: $(cat err.txt)"
has chat/rollouts/step-000001.jsonl '"prompt":"<.im_start.>user.ng:<.im_end.>.n<.im_start.>assistant.n"'
train run.dir=asked environment.question=true $chat && has asked/rollouts/step-000001.jsonl '"prompt":"<.im_start.>user.n#<.im_end.>.n<.im_start.>user.ng:<.im_end.>' || bad "a chat with the question: $(cat err.txt)"
if has_python; then
    python3 - chat/rollouts/*.jsonl > found.txt 2>&1 <<'PY' && ok || bad "a chat: $(cat found.txt)"
import json, re, sys
SPECIAL = {256: b"<|endoftext|>", 257: b"<|im_start|>", 258: b"<|im_end|>"}
ends = set()
for path in sys.argv[1:]:
    for record in map(json.loads, open(path)):
        at = 0
        for k, run in enumerate(record["sampled"]):
            ids = record["ids"][at : at + run]
            at += run
            if k % 2:
                text = b"".join(SPECIAL.get(i) or bytes([i]) for i in ids)
                drawn = last == 258
                assert re.fullmatch(rb"(<\|im_end\|>)?\n<\|im_start\|>user\n[<>!]<\|im_end\|>\n<\|im_start\|>assistant\n", text), text
                assert text.startswith(b"<|im_end|>") != drawn, (text, last)
                ends.add(drawn)
            last = ids[-1]
assert False in ends, ends
PY
fi
refused 'the chat template writes an earlier turn otherwise than it was sampled, from byte' $chat data.chat_template=forgetful.jinja
refused 'environment.plugin = guess .*rollout.off_policy = true' rollout.off_policy=true
refused "no environment named 'gess'.*did you mean guess" environment.plugin=gess
refused 'highest: 99 is out of range: must be' environment.guess.highest=99
for n in 1 2 3 4; do echo "{\"id\":\"r$n\",\"question\":\"#\",\"number\":70}"; done > wrong.jsonl
refused 'step 1, rollout|wrong.jsonl:[1-4]:.*number' data.train=wrong.jsonl
# config check finds these before a run.
found() { "$TARE" config check agent.ini "${@:2}" > out.txt 2> err.txt && bad "config check accepts ${*:2}"; grep -E -- "$1" err.txt > found.txt && ok || bad "config check ${*:2}: $(cat err.txt)"; }
"$TARE" config check agent.ini > out.txt 2> err.txt && ok || bad "config check: $(cat err.txt)"
found "environment.plugin.*no environment named 'gess'" environment.plugin=gess
found 'highest: 99 is out of range' environment.guess.highest=99
found 'wrong.jsonl:1:.*number' data.train=wrong.jsonl
found 'writes an earlier turn otherwise than it was sampled' $chat data.chat_template=forgetful.jinja
# An environment that fails in a later step: the steps before it are saved. Those of FIXTURES break
# the contract in one way each.
for fault in unknown_role:'unknown role' infinite_reward:'reward is'; do
    refused "environment ring: (reset|step): .*${fault#*:}" environment.plugin="$FIXTURES/${fault%%:*}.so" environment.question=true environment.calls=none
done
ring="environment.plugin=$FIXTURES/good_environment.so environment.question=true environment.max_turns=3"
train run.dir=ring $ring environment.calls=none && ok || bad "the environment of a file: $(cat err.txt)"
refused 'rows.jsonl:.: environment ring offers tools, but the prompts are plain; set environment.calls' $ring
# The text of a special token is text: no token of the context is special.
if has_python; then
    train run.dir=special environment.plugin="$FIXTURES/says_special.so" environment.question=true environment.max_turns=3 environment.calls=none || bad "special tokens as text: $(cat err.txt)"
    python3 - special/rollouts/*.jsonl > found.txt 2>&1 <<'PY' && ok || bad "special tokens as text: $(cat found.txt)"
import json, sys
n = 0
for path in sys.argv[1:]:
    for record in map(json.loads, open(path)):
        at = 0
        for k, run in enumerate(record["sampled"]):
            context = record["ids"][at : at + run]
            at += run
            if k % 2:
                assert bytes(context) == b"a<|im_end|><|im_end|>b", context
                n += 1
assert n > 8, n
PY
fi
done_
