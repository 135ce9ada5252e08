#!/usr/bin/env bash
# Checks the verifiers command and python: a user's program or function verifies, is late, dies,
# prints, and gives invalid answers.
source "$(dirname "$0")/common.inc"
expect() { # NAME PATTERN < OUTPUT
    if grep -q -- "$2" out; then ok; else bad "$1: $(head -c 600 out)"; fi
}
rows='{"id":"a","question":"q","completion":"it is 42","answer":"42"}
{"id":"b","question":"q","completion":"it is \"41\"\n","answer":"42","level":3}'

# command, with sh alone: a number is an answer.
judge="sh $PWD/judge.sh"
cat > judge.sh <<'SH'
while IFS= read -r line; do
    case $line in
    *die*) exit 3 ;;
    *sleep*) sleep 86400 ;;
    *nonsense*) echo hello ;;
    *verdict*) echo '{"reward":0.25,"verdict":"partial","extracted":"quarter"}' ;;
    *'it is 42"'*) echo 1 ;;
    *) echo '{"reward": 0}' ;;
    esac
done
SH
printf '%s\n' "$rows" | "$TARE" verify command command="$judge" > out 2>&1 || true
expect "command: correct" '"id":"a","reward":1,"verdict":"correct"'
expect "command: wrong" '"id":"b","reward":0,"verdict":"wrong"'
printf '%s\n' '{"completion":"a verdict","answer":"1"}' | "$TARE" verify command command="$judge" > out 2>&1 || true
expect "command: its own verdict" '"reward":0.25,"verdict":"partial","extracted":"quarter"'
# Late: the row is a timeout, and another process verifies the next one.
late() {
    printf '%s\n' '{"completion":"sleep","answer":"1"}' '{"id":"b","completion":"it is 42","answer":"1"}' |
        timeout 900 "$TARE" verify command command="$judge" timeout=$LIMIT > out 2>&1 || return 1
    grep -q '"reward":0,"verdict":"timeout"' out && grep -q '"id":"b","reward":1' out
}
if patient late; then ok; else bad "command: late, and after it: $(head -c 600 out)"; fi
# Dead: an error with the way that it ended, or the reward of on_death.
printf '%s\n' '{"id":"x","completion":"die","answer":"1"}' | "$TARE" verify command command="$judge" > out 2>&1 && bad "command: a dead program was accepted"
expect "command: dead" "row x, sample 0: verifier command: [a-z]*: $judge ended with status 3, twice, over the same row"
printf '%s\n' '{"completion":"die","answer":"1"}' '{"id":"b","completion":"it is 42","answer":"1"}' |
    "$TARE" verify command command="$judge" on_death=unparsable > out 2>&1 || true
expect "command: on_death" '"reward":0,"verdict":"unparsable"'
expect "command: after a death" '"id":"b","reward":1'
printf '%s\n' '{"completion":"nonsense","answer":"1"}' | "$TARE" verify command command="$judge" > out 2>&1 && bad "command: an invalid answer was accepted"
expect "command: nonsense" "answered 'hello'; expected"
printf '%s\n' '{"completion":"x","answer":"1"}' | "$TARE" verify command command='./nothing_here' > out 2>&1 && bad "command: a missing program was accepted"
expect "command: not found" 'ended with status 127 (it was not found)'
"$TARE" verify command < /dev/null > out 2>&1 && bad "command: an empty command was accepted"
expect "command: required" 'command is missing and has no default'
# A row of 1 MB goes through and comes back. The shell reads it byte by byte, which takes long on a
# busy machine.
head -c 1000000 /dev/zero | tr '\0' x > long
printf '{"completion":"%s it is 42","answer":"1"}\n' "$(cat long)" | "$TARE" verify command command="$judge" --timeout 600 > out 2>&1 || true
expect "command: 1 MB" '"reward":1,"verdict":"correct"'
if until_ '! pgrep -f "$judge" > left'; then ok; else bad "a program remains: $(cat left)"; fi

command -v python3 > /dev/null || skip "no python3; command: $passed passed, $failed failed"
cat > rewards.py <<'PY'
import sys, time
def reward(prompts, completions, answers, **row):
    print("printed by the user")
    assert len(prompts) == len(completions) == len(answers) == len(row["question"])
    return [0.5 if level == 3 else float(a in c) for c, a, level in zip(completions, answers, row.get("level", [None] * len(answers)))]
def trl(completions, answer):
    return [float(len(c[0]["content"])) for c in completions]
def none(completions, **kwargs):
    return [None] * len(completions)
def slow(completions, **kwargs):
    time.sleep(86400)
def raises(completions, **kwargs):
    return [1 / 0]
def nan(completions, **kwargs):
    return [float("nan")]
def short(completions, **kwargs):
    return []
def mapping(completions, **kwargs):
    return {0.5: 1}
def column(completions, gold):
    return [1.0]
def leaves(completions, **kwargs):
    sys.exit(5)
def together(prompts, completions, question, **row):
    assert prompts == question and len(completions) == len(prompts)
    return [float(len(completions))] * len(completions)
def one(completions, **kwargs):
    return [1.0]
def needs_ids(completions, completion_ids, **kwargs):
    return [1.0] * len(completions)
def may_have_ids(completions, completion_ids=None, trainer_state=None):
    return [1.0] * len(completions)
PY
printf '%s\n' "$rows" | "$TARE" verify python file=rewards.py > out 2> err || true
expect "python: correct" '"id":"a","reward":1,"verdict":"correct"'
expect "python: partial" '"id":"b","reward":0.5,"verdict":"partial"'
if grep -q "printed by the user" err && ! grep -q printed out; then ok; else bad "python: printed text"; fi
one='{"id":"r","question":"q","completion":"four","answer":"42"}'
py() { printf '%s\n' "$one" | timeout 600 "$TARE" verify python file=rewards.py "$@" > out 2>&1 || true; }
# All completions of a step are in one call, in their order; a reward for only the first of them is
# refused.
printf '%s\n' "$rows" | "$TARE" verify python file=rewards.py function=together > out 2>&1 || true
[ "$(grep -c '"reward":2,' out)" = 2 ] && ok || bad "python: not one call for all lines: $(cat out)"
printf '%s\n' "$rows" | "$TARE" verify python file=rewards.py function=together --isolate > out 2>&1 || true
[ "$(grep -c '"reward":2,' out)" = 2 ] && ok || bad "python: not one call for all lines with --isolate: $(cat out)"
printf '%s\n' "$rows" | "$TARE" verify python file=rewards.py function=one > out 2>&1 && bad "python: one reward for two completions was accepted"
expect "python: one reward for two" 'row a, sample 0, and 1 more: verifier python: verify: one in .*rewards.py: ValueError: 1 rewards for 2 completions (rewards.py:'"$(grep -n 'def one(' rewards.py | cut -d: -f1))"
printf '%s\n' "$rows" | timeout 600 "$TARE" verify python file=rewards.py function=slow timeout=0.3 > out 2>&1 || true
[ "$(grep -c '"verdict":"timeout"' out)" = 2 ] && ok || bad "python: a late call is not a timeout of all its completions: $(cat out)"
py function=trl messages=true correct_at=5
expect "python: TRL's signature and messages" '"reward":4,"verdict":"partial"'
py function=trl messages=false
expect "python: messages that are not handed over" 'set verifier.python.messages = true'
py function=none
expect "python: None" 'row r, sample 0: verifier python: verify: none returned None for completion 1 of 1, so it has no reward'
py function=none none=zero
expect "python: None as zero" '"reward":0,"verdict":"no_answer"'
py function=needs_ids
expect "python: what only TRL hands over" "TypeError: it takes 'completion_ids', which TRL hands over and tare does not; give it a default (completion_ids=None)"
py function=may_have_ids
expect "python: the same with a default" '"reward":1,"verdict":"correct"'
py function=slow timeout=0.3
expect "python: late" '"reward":0,"verdict":"timeout"'
py function=raises
expect "python: raises" 'row r, sample 0: verifier python: verify: raises in .*rewards.py: ZeroDivisionError: division by zero (rewards.py:13)'
py function=nan
expect "python: nan" 'a reward of nan'
py function=short
expect "python: short" '0 rewards for 1 completions'
py function=mapping
expect "python: a dict" 'TypeError: it returned a dict; a list of numbers'
py function=column
expect "python: a field that is not there" "it takes 'gold', and the rows have no such field; there are answer, answers, completions, .*question"
py function=leaves
expect "python: leaves" 'ended with status 5, twice'
py function=rewar
expect "python: no function" 'verifier python: create: .*rewards.py: LookupError: no function named rewar; there are reward, trl'
echo 'def only(completions, **row): return [1.0]' > one.py
py file=one.py
expect "python: one function of another name" 'there are only; set verifier.python.function = only'
echo 'import nothing_at_all' > broken.py
py file=broken.py
expect "python: an import that fails" "broken.py: ModuleNotFoundError: No module named 'nothing_at_all' (broken.py:1)"
py python=./no_python
expect "python: no interpreter" './no_python cannot be started: No such file'
# In worker processes, and in a run.
printf '%s\n' "$rows" | "$TARE" verify python file="$PWD/rewards.py" --isolate > out 2> err || true
expect "python: isolated" '"id":"b","reward":0.5'
"$TARE" plugin check command command="$judge" --only threads > out 2>&1 || true
expect "command: check" '1 tests, 0 failed'
# All of it starts 200 python processes.
"$TARE" plugin check python file=rewards.py function=trl messages=true --only texts > out 2>&1 || true
expect "python: check" '1 tests, 0 failed'
tiny_config
# None alone would be reward 0 in the baseline of its group
for plugins in python "python python as more"; do
    "$TARE" train tiny.ini train.steps=1 run.dir=alone verifier.plugins="$plugins" verifier.python.file=rewards.py verifier.python.function=none verifier.python.none=zero \
        verifier.more.file=rewards.py verifier.more.function=none verifier.more.none=zero > out 2> err && bad "none = zero alone" || true
    grep -q 'python may return None and no other verifier judges the rows' err && ! [ -e alone/metrics.jsonl ] && ok || bad "none = zero alone: $(cat err)"
done
if "$TARE" train tiny.ini train.steps=2 checkpoint.every=2 verifier.plugins="python exact" verifier.python.file=rewards.py verifier.python.function=none verifier.python.none=zero > log 2>&1 &&
    [ "$(grep -c '"verifier/no_answer":\(32\|1[,}.]\)' run/metrics.jsonl)" = 2 ]; then ok; else bad "train: $(tail -n 5 log)"; fi
for isolate in thread process; do # 8 prompts of 4 completions, for any number of workers
    if "$TARE" train tiny.ini train.steps=2 run.dir=$isolate verifier.workers=3 verifier.isolate=$isolate verifier.plugins=python verifier.python.file=rewards.py \
        verifier.python.function=together > log 2>&1 && [ "$(grep -c '"reward/mean":32[,.]' $isolate/metrics.jsonl)" = 2 ]; then ok; else bad "train, together, isolate=$isolate: $(tail -n 5 log)"; fi
done
done_
