#!/usr/bin/env bash
# Checks the verifiers code and json on pairs that were written, with what a careful reader says, before
# the verifiers' code was read. "rule": the documented rule by which a verdict differs from the reader's.
source "$(dirname "$0")/common.inc"
command -v python3 > /dev/null || skip "python3 is not installed"
rows=$SOURCE/tests/verify
mode=full
echo '{"completion":"print(1)","answer":"","tests":[{"input":"","output":"1"}]}' | "$TARE" verify code > out 2>&1 || mode=limits
judge() { # NAME FILE VERIFIER ARGUMENTS...
    local name=$1 file=$2
    shift 2
    "$TARE" verify "$@" < "$file" > out 2> err || bad "$name: $(cat err)"
    python3 - "$file" out > wrong << 'END' && ok || bad "$name: $(cat wrong)"
import json, sys
rows, verdicts = ([json.loads(line) for line in open(f, encoding="utf-8")] for f in sys.argv[1:])
assert len(rows) == len(verdicts) > 15, (len(rows), len(verdicts))
wrong = [(r["id"], v["verdict"], v["reason"]) for r, v in zip(rows, verdicts) if (v["reward"] == 1) != (r["right"] != ("rule" in r))]
print(wrong)
sys.exit(bool(wrong))
END
}
grep '"answer"' "$rows/blind_json.jsonl" > answers.jsonl
grep -v '"answer"' "$rows/blind_json.jsonl" > schemas.jsonl
judge answers answers.jsonl json compare=answer
judge schemas schemas.jsonl json
judge code "$rows/blind_code.jsonl" code sandbox=$mode
done_
