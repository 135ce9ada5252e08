#!/usr/bin/env bash
# Checks the Python host (sdk/python): bit-identical advantages, state, parameters, verifiers. It
# needs no packages.
source "$(dirname "$0")/common.inc"
command -v python3 > /dev/null || skip "no python3"
export PYTHONPATH=$SOURCE/sdk/python PYTHONDONTWRITEBYTECODE=1
if python3 -W error "$SOURCE/sdk/python/tests/test_host.py" > log 2>&1; then ok; else bad "$(tail -n 40 log)"; fi
# Within the code of TRL and verl, when PYTHON has them.
if "${PYTHON:-python3}" "$SOURCE/sdk/python/tests/test_trainers.py" > log2 2>&1; then ok; else bad "$(tail -n 20 log2)"; fi
grep -h '^OK (skipped' log2 | sed 's/^/trainers: /' || true
grep -h 'bit for bit\|skipped' log || true
done_
