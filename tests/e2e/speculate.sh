#!/usr/bin/env bash
# Checks rollout.speculate: the same rollouts, weights, completions and answers with and without it,
# on threads and ranks, in a small cache, in bf16, with adapters, in episodes and after a kill; and
# that drafts were accepted.
. "$(dirname "$0")/common.inc"
tiny_config
easy_judge
KEYS='log.progress=none eval.before=false eval.after=false train.steps=4 checkpoint.every=4 rollout.max_new_tokens=100'
train() { "$TARE" -q train "$config" $KEYS "$@" > out.txt 2> err.txt; }
accepted() { sed -n 's/.*"speculation\/accepted":\([^,}]*\).*/\1/p' "$1/metrics.jsonl" | awk '{ n += $1 } END { print n + 0 }'; }
equal() { # WHAT A B: rollouts, weights and moments
    local file
    for file in $(cd "$2/checkpoints/step-000004" && ls | grep -E '^(model|adapter_model|optimizer)'); do
        cmp -s "$2/checkpoints/step-000004/$file" "$3/checkpoints/step-000004/$file" && ok || bad "$1: $file differs"
    done
    diff -rq "$2/rollouts" "$3/rollouts" > difference.txt && ok || bad "$1: $(cat difference.txt)"
}
# same WHAT KEY=VALUE...: trains with and without
same() {
    local what=$1
    shift
    rm -rf yes no
    train run.dir=yes rollout.speculate=yes "$@" && train run.dir=no rollout.speculate=no "$@" || { bad "$what: $(cat err.txt)"; return; }
    equal "$what" yes no
    [ -n "$few_drafts" ] || [ "$(accepted yes)" -gt 0 ] && ok || bad "$what: no draft was accepted"
    [ "$(accepted no)" = 0 ] && ok || bad "$what: drafts with rollout.speculate = no"
}
config=tiny.ini few_drafts='' # few_drafts=1: completions that may be too short for drafts
few='rollout.prompts=2 rollout.group_size=2 rollout.batch=2 train.minibatch=4 rollout.temperature=0.4 rollout.ignore_eos=true'
same 'few rollouts' $few
same 'one at a time' $few rollout.batch=1
same 'three threads' $few run.threads=3
same 'a small cache' $few rollout.kv_tokens=176
same 'bf16' $few model.dtype=bf16
same 'adapters' $few lora.rank=2
same 'top_k and top_p' $few rollout.top_k=20 rollout.top_p=0.9
few_drafts=1 same 'until the end' $few rollout.ignore_eos=false rollout.temperature=0.2
if command -v mpirun > /dev/null && "$TARE" doctor 2> /dev/null | grep '^ok *mpi ' > /dev/null; then
    same 'two ranks' $few dist.ranks=2 run.threads=1
else
    skip_part "mpirun is not installed (apt install openmpi-bin libopenmpi-dev)"
fi
train run.dir=whole $few rollout.speculate=yes
killed_at update 3 train run.dir=half checkpoint.every=2 $few rollout.speculate=no || bad "not killed: $(cat err.txt)"
train run.dir=half checkpoint.every=2 $few rollout.speculate=yes --resume && equal 'killed and resumed' whole half || bad "resumed: $(cat err.txt)"
"$TARE" -q diff whole half > out.txt 2>&1 && ok || bad "diff: $(tail -n 2 out.txt)"

# The same completions from generate, also with stop ids.
printf '{"id":"%s","text":"12+30=42, 12+30=42, 12+30="}\n' a b c > in.jsonl
for keys in temperature=0 "temperature=0.3 batch=2" "temperature=0.3 top_k=5 stop_ids=50,52" "temperature=1 top_p=0.5 batch=1" "temperature=0.3 kv_tokens=160 threads=3 batch=2"; do
    "$TARE" -q generate base max_new_tokens=90 ignore_eos=true $keys speculate=yes --stats < in.jsonl > yes.jsonl 2> stats.txt || bad "generate $keys: $(cat stats.txt)"
    "$TARE" -q generate base max_new_tokens=90 ignore_eos=true $keys speculate=no < in.jsonl | cmp -s yes.jsonl - && ok || bad "generate $keys: other lines"
    case $keys in *stop_ids*) ;; *) grep -q '"accepted":[1-9]' stats.txt && ok || bad "generate $keys: no draft was accepted" ;; esac
done

# The same answers from serve: with stop strings, in a stream, and with logprobs.
for speculate in yes no; do
    has_python || break
    PYTHONPATH=$SOURCE/tests/serve PYTHONDONTWRITEBYTECODE=1 python3 -W error - $speculate > $speculate.txt 2> err.txt <<'PY' || bad "serve: $(tail -n 3 err.txt)"
import sys
from client import Server
with Server("tiny=base", f"rollout.speculate={sys.argv[1]}") as s:
    for body in ({}, {"stop": ["2, 1"]}, {"stop": ["="], "n": 3}, {"logprobs": 3}, {"temperature": 0.4, "seed": 3, "n": 4}):
        answer = s.complete(**{"prompt": "12+30=42, 12+30=42, 12+30=", "max_tokens": 60, "temperature": 0, "ignore_eos": True, **body})
        print(answer["choices"], answer["usage"])
    if sys.argv[1] == "yes":
        assert s.metric('tare_accepted_tokens_total{model="tiny"}') > 0
PY
done
! has_python || { cmp -s yes.txt no.txt && [ -s yes.txt ]; } && ok || bad "serve: $(diff yes.txt no.txt | head -c 300)"
done_
