#!/usr/bin/env bash
# Checks that a file of reward functions is an ordinary module for Python (pickle, process pools,
# dataclasses), that functions may be asynchronous, and the arguments that TRL hands over.
source "$(dirname "$0")/common.inc"
command -v python3 > /dev/null || skip "no python3"
export PYTHONDONTWRITEBYTECODE=1
two='{"id":"a","completion":"4","answer":"4"}
{"id":"b","completion":"6","answer":"5"}'
# rewards FILE WANT: the two rewards, or a part of the message
rewards() {
    printf '%s\n' "$two" | timeout 120 "$TARE" verify python file="$1" > out 2>&1 || true
    local got
    got=$(sed -n 's/.*"reward":\([0-9.-]*\),.*/\1/p' out | tr '\n' ' ')
    if [ "$got" = "$2 " ] || grep -q -- "$2" out; then ok; else bad "$1: wanted $2: $(cat out)"; fi
}
one='def one(c): return float(c == "4")'
cat > pool.py <<PY
from multiprocessing import Pool
$one
def reward(completions, **kw):
    with Pool(2) as p: return p.map(one, completions)
PY
cat > spawned.py <<PY
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
$one
def reward(completions, **kw):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as p: return list(p.map(one, completions))
PY
cat > typed.py <<'PY'
from __future__ import annotations
from dataclasses import dataclass, field
import typing
@dataclass
class Case:
    x: int
    more: "list[Case]" = field(default_factory=list)
def reward(completions, **kw): return [float(typing.get_type_hints(Case)["x"] is int)] * len(completions)
PY
cat > pickled.py <<'PY'
import copy, inspect, pickle, sys
class Case: pass
def reward(completions, **kw):
    assert type(pickle.loads(pickle.dumps(Case()))) is Case and sys.modules[__name__].Case is Case
    assert "class Case" in inspect.getsource(Case) and inspect.getmodule(Case).__file__.endswith(".py")
    return [1.0] * len(completions)
PY
cp pickled.py my-rewards.py # not a name that can be imported
cp pickled.py json.py       # the name of a module of the library
for file in pool.py spawned.py; do rewards $file "1 0"; done
for file in typed.py pickled.py my-rewards.py json.py; do rewards $file "1 1"; done
rm json.py
cat > plain.py <<'PY'
import asyncio
async def one(c):
    await asyncio.sleep(0)
    return float(c == "4")
async def reward(completions, **kw): return await asyncio.gather(*map(one, completions))
PY
sed 's/^async def reward.*/def reward(completions, **kw): return [one(c) for c in completions]/' plain.py > listed.py
sed 's/^async def reward.*/class Judge:\n    async def __call__(self, completions, **kw): return [await one(c) for c in completions]\nreward = Judge()/' plain.py > object.py
sed 's/^async def reward.*/async def reward(completions, **kw):\n    for c in completions: yield await one(c)/' plain.py > yields.py
printf 'import asyncio\nlock = asyncio.Lock()\nasync def reward(completions, **kw):\n    async with lock: return [float("nan")]\n' > wrong.py
printf 'async def reward(completions, **kw):\n    return [1 / 0]\n' > raises.py
for file in plain.py listed.py object.py yields.py; do rewards $file "1 0"; done
rewards wrong.py "1 rewards for 2 completions"
rewards raises.py "ZeroDivisionError: division by zero (raises.py:2)"
printf 'async def reward(completions, nosuch): return [1.0]\n' > field.py
rewards field.py "it takes 'nosuch', and the rows have no such field; there are answer, answers, completions, id, prompts"
# The arguments of TRL.
cat > logs.py <<'PY'
def reward(prompts, completions, answer, log_extra, log_metric, trainer_state, **kwargs):
    log_extra("size", [len(c) for c in completions])
    log_extra("gold", answer)
    log_metric("share", 0.25)
    log_metric("step", trainer_state.global_step or 0)
    log_metric("steps", trainer_state.max_steps or 0)
    return [float(len(completions) > 0)] * len(completions)
def all_of_it(**kwargs):
    assert {"trainer_state", "log_extra", "log_metric", "prompts", "completions", "answer"} <= set(kwargs), kwargs
    return [1.0] * len(kwargs["completions"])
def short(completions, log_extra, **_):
    log_extra("size", [1])
    return [1.0] * len(completions)
def infinite(completions, log_metric, **_):
    log_metric("size", float("inf"))
    return [1.0] * len(completions)
PY
rewards logs.py '"reason":"size: 1; gold: 4"'
for case in "all_of_it 1 1" "short log_extra: 1 values of size for 2 completions" "infinite log_metric: the value of size is inf"; do
    printf '%s\n' "$two" | "$TARE" verify python file=logs.py function="${case%% *}" > out 2>&1 || true
    if grep -q -- "${case#* }" out || [ "$(grep -c '"reward":1' out)" = 2 ]; then ok; else bad "$case: $(cat out)"; fi
done
tiny_config
sed -i 's/^plugins = exact/plugins = python python as second:0.5/' tiny.ini
printf '[verifier.python]\nfile = logs.py\n[verifier.second]\nfile = plain.py\n' >> tiny.ini
if "$TARE" train tiny.ini train.steps=2 eval.before=false eval.after=false > log 2>&1; then ok; else bad "$(tail -n 5 log)"; fi
for want in '"verifier/share":0.25' '"verifier/step":1' '"verifier/steps":2'; do
    if tail -n 1 run/metrics.jsonl | grep -q "${want}[,}]"; then ok; else bad "$want: $(tail -n 1 run/metrics.jsonl)"; fi
done
if grep -q '"verifier/step":0[,}]' <(head -n 1 run/metrics.jsonl); then ok; else bad "the first step is not 0"; fi
if grep -q '"reason":"size: [0-9]*; gold: ' run/rollouts/step-000001.jsonl; then ok; else bad "log_extra: $(head -n 1 run/rollouts/step-000001.jsonl)"; fi
done_
