#!/usr/bin/env bash
# Checks prompts at the context's limit. A prompt that leaves space for one token is accepted and
# gets that token; one that leaves none is refused with its line by train, eval and generate. Scored
# or trained text may fill the context. The same holds at rollout.max_prompt_tokens. Contexts of
# exactly two KV blocks and of one key more are tested.
. "$(dirname "$0")/common.inc"
sevens() { printf "%$1s" '' | tr ' ' 7; } # in tokens: new models read bytes
printf '{"question":"1+1=","completion":"2"}\n' > short.jsonl
cat > both.ini <<'INI'
[model]
path = none
init = qwen2
hidden_size = 32
layers = 1
heads = 2
kv_heads = 1
intermediate_size = 64
[data]
train = short.jsonl
prompt = plain
[sft]
steps = 1
batch = 1
[rollout]
prompts = 1
group_size = 2
max_new_tokens = 6
[verifier]
plugins = exact
[codebook]
plugin = none
[estimator]
plugin = grpo
[train]
steps = 1
minibatch = 2
[checkpoint]
last = false
[log]
progress = none
database = false
INI
# expect STATUS PATTERN command...: runs the command with its output in out.txt.
expect() {
    local status=0 wanted=$1 pattern=$2
    shift 2
    "$TARE" -q "$@" > out.txt 2> err.txt || status=$?
    [ $status = "$wanted" ] && { [ -z "$pattern" ] || grep -qE "$pattern" err.txt; } && ok || bad "context $C, prompt of $n: $*: exit status $status, expected $wanted with '$pattern': $(cat err.txt)"
}
for C in 32 33; do
    model=model$C n=4
    expect 0 '' sft both.ini model.context=$C sft.out=$model
    for n in $((C - 2)) $((C - 1)) $C $((C + 1)); do
        printf '{"question":"%s","answer":"2"}\n' "$(sevens $n)" > rows.jsonl
        refused="the prompt has $n tokens(, but at most |: must be 1 to )$((C - 1))( are allowed)? \(context $C" status=0
        [ $n -lt $C ] && refused='' || status=1
        expect $status "${refused:+standard input:1: $refused}" generate $model data.prompt=plain rollout.group_size=2 < rows.jsonl
        cp out.txt made$n.jsonl
        [ $status = 0 ] || status=3
        expect $status "${refused:+rows.jsonl:1: $refused}" train both.ini model.path=$model data.train=rows.jsonl run.dir=run$C-$n
        expect $status "${refused:+rows.jsonl:1: $refused}" eval both.ini model.path=$model data.eval=rows.jsonl eval.out=eval$C-$n
        # A full context can be scored with one more token, which is not an input, and trained on: a
        # completion of one byte and the end of the sequence fit.
        printf '{"ids":[%s55]}\n' "$(printf '55,%.0s' $(seq $n))" > ids.jsonl # one more than n
        if [ $n -le $C ]; then expect 0 '' score $model < ids.jsonl; else expect 1 "$((n + 1)) tokens exceed the model's context of $C" score $model < ids.jsonl; fi
        printf '{"question":"%s","completion":"2"}\n' "$(sevens $n)" > rows.jsonl
        sft="sft both.ini model.path=$model data.train=rows.jsonl sft.out=tuned$C-$n"
        if [ $n -le $((C - 2)) ]; then expect 0 '' $sft; else expect 1 "rows.jsonl:1: $((n + 2)) tokens, but the model's context is $C" $sft; fi
    done
    for n in $((C - 2)) $((C - 1)); do
        checked "context $C, prompt of $n: wrong number of tokens, or logprobs differ from sampling" $C $n "$TARE" $model <<'PY'
import json, subprocess, sys
context, n = int(sys.argv[1]), int(sys.argv[2])
made = [json.loads(line) for line in open(f"made{n}.jsonl")]
trained = [json.loads(line) for line in open(f"run{context}-{n}/rollouts/step-000001.jsonl")]
judged = [json.loads(line) for line in open(f"eval{context}-{n}/samples.jsonl")]
assert len(made) == 2 and len(judged) == 1, (made, judged)
for r in made:
    assert len(r["ids"]) == context - n or r["finish"] == "stop", r
    assert len(r["ids"]) <= context - n, r
finishes = [r["finish"] for r in trained if "finish" in r]
assert len(finishes) == 2 and set(finishes) <= {"length", "stop"}, trained
lines = "".join(json.dumps({"ids": [55] * n + r["ids"]}) + "\n" for r in made)
scored = subprocess.run([sys.argv[3], "score", sys.argv[4]], input=lines, capture_output=True, text=True, check=True).stdout
for r, line in zip(made, scored.splitlines()):
    again = json.loads(line)["logprobs"][n - 1:]
    assert len(again) == len(r["logprobs"]) and all(abs(a - b) < 1e-6 for a, b in zip(again, r["logprobs"])), (again, r)
PY
    done
done
for n in 10 11; do
    printf '{"question":"%s","answer":"2"}\n' "$(sevens $n)" > rows.jsonl
    train="train both.ini model.path=$model data.train=rows.jsonl run.dir=most$n rollout.max_prompt_tokens=10"
    if [ $n = 10 ]; then expect 0 '' $train; else expect 3 'rows.jsonl:1: the prompt has 11 tokens, but at most 10 are allowed .context 33, rollout.max_prompt_tokens 10' $train; fi
done
done_
