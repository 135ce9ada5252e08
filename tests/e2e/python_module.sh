#!/usr/bin/env bash
# Checks `import tare` (sdk/python/tare): its results equal the program's to the bit; errors,
# interruptions, views of the engine's memory; and the code of docs/python.md and the notebooks on a
# small run. NumPy and pandas are used when installed (e2e/wheel installs them); without them the
# module returns memoryviews and lists, and the tests expect these.
source "$(dirname "$0")/common.inc"
command -v python3 > /dev/null || skip "no python3"
export PYTHONPATH=$SOURCE/sdk/python PYTHONDONTWRITEBYTECODE=1
TARE_LIBRARY=$(dirname "$TARE")/libtare.so
export TARE_LIBRARY
tiny_config
"$TARE" -q sft sft.ini 2> log || bad "$(cat log)"
if python3 -W error "$SOURCE/sdk/python/tests/test_module.py" > log 2>&1; then ok; else bad "$(tail -n 60 log)"; fi
for file in python.md notebooks/quickstart.ipynb notebooks/functions.ipynb; do
    rm -rf runs
    if python3 -W error "$SOURCE/tests/notebook.py" "$SOURCE/docs/$file" 'builtin:quickstart=>tiny.ini' > log 2>&1; then ok; else bad "$file: $(tail -n 20 log)"; fi
done
# Notebooks that must be refused: with outputs, with an error in a cell, with nothing to run.
sed 's/"outputs": \[\]/"outputs": [1]/' "$SOURCE/docs/notebooks/quickstart.ipynb" > with_outputs.ipynb
printf '```python\n1 / 0\n```\n' > wrong.md
echo text > empty.md
for file in with_outputs.ipynb wrong.md empty.md; do
    if python3 "$SOURCE/tests/notebook.py" "$file" > log 2>&1; then bad "$file was accepted"; else ok; fi
done
done_
