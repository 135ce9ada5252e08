#!/usr/bin/env bash
# Pairs written by meaning (tests/verify/meaning.py) and by notation (tests/verify/grid.py): no near miss is taken for the answer, and few spellings of it are refused.
source "$(dirname "$0")/common.inc"
command -v python3 > /dev/null || skip "no python3"
[ -f "$TARE_PLUGIN_PATH/verifiers/math.so" ] || skip "the plugin math is not built (FLINT is missing)"
for part in "meaning 0 60 6000" "grid 0 20 7000"; do
read -r generator first end least <<< "$part"
python3 "$SOURCE/tests/verify/$generator.py" "$first" "$end" > pairs.jsonl
if "$TARE" verify math < pairs.jsonl > verdicts.jsonl; then ok; else bad "tare verify"; fi
python3 - > counts <<'PY'
import json
rows, verdicts = ([json.loads(line) for line in open(f)] for f in ("pairs.jsonl", "verdicts.jsonl"))
assert [r["id"] for r in rows] == [v["id"] for v in verdicts]
right = [v["verdict"] == "correct" for v in verdicts]
for r, y in zip(rows, right):
    if y != r["expected"]:
        print("accepted" if y else "refused", r["id"], r["note"])
print(len(rows), sum(y and not r["expected"] for r, y in zip(rows, right)), sum(r["expected"] and not y for r, y in zip(rows, right)))
PY
read -r pairs accepted refused < <(tail -1 counts)
echo "$generator: $pairs pairs: $accepted near misses accepted, $refused answers refused"
if [ "$pairs" -gt "$least" ] && [ "$accepted" = 0 ] && [ $((1000 * refused)) -le $((5 * pairs)) ]; then ok; else bad "$(cat counts)"; fi
done
done_
