#!/usr/bin/env bash
# Runs the openai package against tare serve: completions, chat, streams, many requests at once,
# errors. PYTHON names the interpreter that has it.
source "$(dirname "$0")/common.inc"
source "$(dirname "$0")/serve.inc"
python=${PYTHON:-python3}
"$python" -c 'import openai' 2> err.txt || skip "openai is not installed for $python (pip install openai)"
"$python" "$SOURCE/bench/serve_clients.py" "$TARE" model openai > out.txt 2> err.txt && ok || bad "$(tail -n 20 out.txt err.txt)"
grep '^openai .*completions' out.txt && ok || bad "openai did not run: $(cat out.txt)"
done_
