#!/usr/bin/env bash
# Checks tools/reasoning_tasks.py with a stand-in for the package reasoning-gym: rows with and without
# solved examples, the same for the same seed; the reward of a task's own score; refused arguments.
. "$(dirname "$0")/common.inc"
command -v python3 > /dev/null || skip "no python3"
TOOL=$SOURCE/tools/reasoning_tasks.py
mkdir -p stand/reasoning_gym
cat > stand/reasoning_gym/__init__.py <<'PY'
def create_dataset(name, size, seed, add=0):
    return [{"question": "%d + %d = ?" % (seed, i), "answer": str(seed + i + add), "metadata": {"n": i}} for i in range(size)]


def get_score_answer_fn(name):
    return lambda answer, entry: 1.0 if int(answer) == int(entry["answer"]) else 0.25
PY
echo 'DATASETS = {"sums": None, "other": None}' > stand/reasoning_gym/factory.py
export PYTHONPATH=$PWD/stand
python3 "$TOOL" sums other -o a.jsonl --rows 3 --seed 5 --examples 2 > out.txt 2>&1 && python3 "$TOOL" sums other -o b.jsonl --rows 3 --seed 5 --examples 2 > out.txt 2>&1 &&
    cmp -s a.jsonl b.jsonl && [ "$(wc -l < a.jsonl)" = 6 ] && ok || bad "rows: $(cat out.txt)"
checked "rows: $(head -1 a.jsonl)" <<'PY'
import json
rows = [json.loads(line) for line in open("a.jsonl")]
assert [r["subject"] for r in rows[:3]] == ["sums", "other", "sums"], rows
assert rows[0]["question"] == "5 + 0 = ?" and rows[0]["answer"] == "5" and len(rows[0]["messages"]) == 5, rows[0]
assert rows[0]["messages"][-1]["content"] == rows[0]["question"] and rows[0]["messages"][1]["role"] == "assistant", rows[0]
PY
python3 "$TOOL" sums -o c.jsonl --rows 2 --set sums.add=7 > out.txt 2>&1 && grep -q '"answer": "8"' c.jsonl && ! grep -q messages c.jsonl && ok || bad "settings: $(cat out.txt c.jsonl)"
for completion in '8' 'It is <answer> 8 </answer>.' '9' 'eight'; do printf '%s\n' "$completion"; done > said.txt
checked "rewards" "$TOOL" <<'PY'
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("tasks", sys.argv[1])
tasks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tasks)
row = json.loads(open("c.jsonl").readline())
said = open("said.txt").read().splitlines()
got = tasks.reward(said, [row["subject"]] * 4, [row["entry"]] * 4)
assert got == [1.0, 1.0, 0.25, 0.0], got
PY
refused() { # PATTERN ARGUMENTS...
    local pattern=$1
    shift
    python3 "$TOOL" "$@" > out.txt 2>&1 && bad "accepted: $*"
    grep -qE -- "$pattern" out.txt && ok || bad "$*: $(cat out.txt)"
    [ ! -e x.jsonl ] && ok || bad "$*: a file was written"
}
refused 'no task named sum; --list shows all' sum -o x.jsonl
refused 'must be TASK.KEY=VALUE with one of the tasks' sums -o x.jsonl --set other.add=1
refused "unexpected keyword argument 'sub'" sums -o x.jsonl --set sums.sub=1
PYTHONPATH='' refused 'the package is not installed; run: pip install reasoning-gym' sums -o x.jsonl
done_
