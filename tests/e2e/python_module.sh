#!/usr/bin/env bash
# `import tare` (sdk/python/tare): what it gives is what the program gives, to the bit; errors, interruptions, views of the engine's memory.
# NumPy and pandas are used where they are installed (e2e/wheel installs them); without them the module gives memoryviews and lists, and so do the tests.
source "$(dirname "$0")/common.inc"
command -v python3 > /dev/null || skip "no python3"
export PYTHONPATH=$SOURCE/sdk/python PYTHONDONTWRITEBYTECODE=1
TARE_LIBRARY=$(dirname "$TARE")/libtare.so
export TARE_LIBRARY
tiny_config
"$TARE" -q sft sft.ini 2> log || bad "$(cat log)"
if python3 -W error "$SOURCE/sdk/python/tests/test_module.py" > log 2>&1; then ok; else bad "$(tail -n 60 log)"; fi
done_
