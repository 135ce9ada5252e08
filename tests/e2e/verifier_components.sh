#!/usr/bin/env bash
# Compares the verifiers regex, format, length and repetition with Python (re, a rule written as one
# expression, str.split and sets), then uses them in a run, as components.
source "$(dirname "$0")/common.inc"
judge() { # OUT plugin...
    local out=$1
    shift
    "$TARE" verify "$@" < rows.jsonl > "$out" 2> err.txt || bad "tare verify $*: $(cat err.txt)"
}
if has_python; then
    python3 - <<'PY'
import json, random
r = random.Random(7)
def pattern(depth):
    parts = []
    for _ in range(r.randint(1, 3)):
        kind = r.randint(0, 6 if depth else 4)
        p = [r.choice("abc"), "[ab]", "[^a ]", ".", r.choice(["^", "$", r"\b", r"\d", r"\w+"]), "(" + pattern(depth - 1) + ")", "(?:" + pattern(depth - 1) + "|" + pattern(depth - 1) + ")"][kind] if depth else r.choice(["a", "b", "c", "[ab]", "."])
        if p not in ("^", "$", r"\b") and not p.endswith("+"):
            # Re has no limit of steps.
            p += r.choice(["", "", "", "?", "{2}", "{1,2}"] if p[0] == "(" else ["", "", "", "*", "+", "?", "{2}", "*?"])
        parts.append(p)
    return "".join(parts)
words = ["a", "b", "ab", "c", "B", "\u00c4", "\u00e4\u00a0c", "1", "<think>", "</think>", "<answer>", "</answer>", "\n", "\u4e2d"]
with open("rows.jsonl", "w") as f:
    for i in range(3000):
        text = " ".join(r.choices(words[:8], k=r.randint(0, 9))) if i % 2 else "".join(r.choices(words, [1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 2, 2, 1, 1], k=r.randint(0, 8)))
        if i % 8 == 0:
            text = r.choice(["<think>", "<think> "]) + text + r.choice(["a</think>", "</think>", "</think><answer>"]) + text[:3] + r.choice(["", "</answer>"])
        print(json.dumps({"id": i, "completion": text, "answer": "a", "regex": pattern(2)}), file=f)
PY
    judge regex.out regex thought=true
    judge format.out format
    judge answer.out format answer_open='<answer>'
    judge length.out length unit=words mode=target length=4 width=3
    judge repetition.out repetition n=2 penalty=0.75
    checked "verdicts differ from Python's" <<'PY'
import json, re
rows = [json.loads(line) for line in open("rows.jsonl")]
def got(name):
    return [json.loads(line)["reward"] for line in open(name + ".out")]
BLANKS = "\t\n\v\f\r "
def form(text, answer):
    m = re.match(r"<think>((?:(?!<think>|</think>).)*)</think>((?:(?!<think>|</think>).)*)\Z", text.strip(BLANKS), re.S)
    if not m or not m[1].strip(BLANKS) or not m[2].strip(BLANKS):
        return 0
    if not answer:
        return 1
    inner = re.match(r"<answer>((?:(?!</?answer>).)*)</answer>\Z", m[2].strip(BLANKS), re.S)
    return int(bool(inner and inner[1].strip(BLANKS)))
def units(text):
    for word in re.sub("([\u3400-\u9fff])", r" \1 ", text.lower()).split():
        bare = word.strip(".,;:!?\"'()[]{}*_`~") or word
        for run in [bare] if len(word) <= 24 else re.findall(r"[^\W_]+|[\W_]", word):
            yield from run if len(run) > 24 and len(set(run)) <= 8 else [run]
def repeats(text):
    w = list(units(text))
    grams = list(zip(w, w[1:]))
    return -0.75 * (1 - len(set(grams)) / len(grams)) if grams else 0.0
want = {"regex": [int(re.search(r["regex"], r["completion"].strip(BLANKS)) is not None) for r in rows],
        "format": [form(r["completion"], False) for r in rows], "answer": [form(r["completion"], True) for r in rows],
        "length": [max(0, 1 - abs(len(r["completion"].split()) - 4) / 3) for r in rows],
        "repetition": [repeats(r["completion"]) for r in rows]}
for name, expected in want.items():
    have = got(name)
    assert len(have) == len(expected) == 3000
    wrong = [(rows[i], a, b) for i, (a, b) in enumerate(zip(have, expected)) if abs(a - b) > 1e-12]
    assert not wrong, (name, len(wrong), wrong[:3])
    assert 100 < sum(x != 0 for x in expected) < 2990 or name == "answer" and any(expected), (name, sum(expected))
PY
fi
# As components of a run's reward.
tiny_config
if "$TARE" train tiny.ini train.steps=2 checkpoint.every=2 'verifier.plugins=exact length:0.2 repetition:0.5 regex as digits:0.1' verifier.length.mode=group \
    verifier.digits.pattern='^\d+$' > log 2>&1 && grep '"reward/length' run/metrics.jsonl > out.txt; then ok; else bad "train: $(tail -n 5 log; head -c 1500 run/metrics.jsonl)"; fi
echo '{"completion":"a","answer":"b"}' | "$TARE" verify regex > out.txt 2> err.txt && bad "a row without a pattern was verified"
grep 'the row has no text in its field "regex"' err.txt > out.txt && ok || { bad "a row without a pattern: wrong message"; cat err.txt; }
"$TARE" verify regex 'pattern=a(b' < /dev/null > out.txt 2> err.txt && bad "an invalid pattern was accepted"
grep "the pattern 'a(b' cannot be read at byte 4" err.txt > out.txt && ok || { bad "an invalid pattern: wrong message"; cat err.txt; }
echo '{"completion":"a","answer":"b"}' | "$TARE" verify length > out.txt 2> err.txt && bad "tokens were counted without a tokenizer"
grep 'set unit = words' err.txt > out.txt && ok || { bad "unknown tokens: wrong message"; cat err.txt; }
done_
