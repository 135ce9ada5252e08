#!/usr/bin/env bash
# Runs lm-evaluation-harness, in its usual form, against tare serve. PYTHON names the interpreter
# that has it.
source "$(dirname "$0")/common.inc"
source "$(dirname "$0")/serve.inc"
python=${PYTHON:-python3}
"$python" -c 'import lm_eval, datasets, transformers' 2> err.txt || skip "lm-evaluation-harness is not installed for $python (pip install 'lm-eval[api]')"
if "$python" "$SOURCE/tests/serve/harness.py" > out.txt 2>&1; then ok; else bad "$(tail -n 40 out.txt)"; fi
done_
