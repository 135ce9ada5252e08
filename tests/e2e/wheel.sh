#!/usr/bin/env bash
# Checks pip install . in a new environment: the program as a console script, its plugins, and the
# Python host; training from another folder. Nothing is left in the source tree. The wheel is made
# from the tested build (TARE_PREBUILT), so nothing is compiled again.
source "$(dirname "$0")/common.inc"
build=$(dirname "$TARE")
python3 -m venv env > log 2>&1 || skip "python3 or python3-venv is not installed"
unset TARE_PLUGIN_PATH
litter() { find "$SOURCE" \( -name '*.egg-info' -o -name _skbuild -o -path "$SOURCE/sdk/python/build" \) -not -path "$build/*"; }
if ! env/bin/pip install --disable-pip-version-check "$SOURCE" --config-settings=cmake.define.TARE_PREBUILT="$build" > log 2>&1; then
    if grep -qE 'No matching distribution found for (scikit-build-core|ninja|cmake)|Could not find a version.*scikit-build-core' log; then skip "no package index: scikit-build-core cannot be had"; fi
    bad "pip install: $(tail -n 20 log)"
    done_
fi
if [ -z "$(litter)" ]; then ok; else bad "pip install left $(litter)"; fi
tare=$WORK/env/bin/tare
if [ "$("$tare" --version)" = "$("$TARE" --version)" ]; then ok; else bad "version: $("$tare" --version)"; fi
if [ "$(env/bin/pip show tare-rlvr | sed -n 's/^Version: //p')" = "$("$TARE" --version | cut -d ' ' -f 2)" ]; then ok; else bad "pip's version"; fi
if diff <("$tare" plugin list) <("$TARE" plugin list | grep -v fixture) > log; then ok; else bad "plugins: $(cat log)"; fi
mkdir elsewhere && cd elsewhere
if "$tare" plugin new verifier mine > log 2>&1; then ok; else bad "plugin new: $(cat log)"; fi
tiny_config
if "$tare" train tiny.ini train.steps=2 > log 2>&1 && [ "$(grep -c '"reward/mean"' run/metrics.jsonl)" = 2 ]; then ok; else bad "train: $(tail -n 5 log)"; fi
"$TARE" train tiny.ini train.steps=2 run.dir=again > log 2>&1 || bad "train: $(tail -n 5 log)"
if cmp <(cut -d , -f 1-4 run/metrics.jsonl) <(cut -d , -f 1-4 again/metrics.jsonl); then ok; else bad "the wheel's run has other numbers"; fi
if ../env/bin/python - > log 2>&1 << 'PY'; then ok; else bad "host: $(cat log)"; fi
from tare_sdk import Estimator, Verifier
out = Estimator("grpo").step([[1, 0, 0, 1]])
assert [a > 0 for a in out.advantage[0]] == [True, False, False, True], out.advantage
assert Verifier("number").verify("it is 42", "42").reward == 1.0
PY
# The engine in Python, from a folder other than the source tree, with NumPy and pandas.
if ../env/bin/pip install --disable-pip-version-check -q numpy pandas > log 2>&1; then ok; else bad "pip install numpy pandas: $(tail -n 5 log)"; fi
if env -u TARE_LIBRARY TARE="$tare" PYTHONDONTWRITEBYTECODE=1 ../env/bin/python "$SOURCE/sdk/python/tests/test_module.py" > log 2>&1; then ok; else bad "import tare: $(tail -n 40 log)"; fi
if ../env/bin/python -m tare_sdk --version | grep -q '^tare '; then ok; else bad "python -m tare_sdk"; fi
# The Python host alone; its folder has the same files before and after.
cd "$WORK"
python3 -m venv host > log 2>&1
cp -r "$SOURCE/sdk/python" host-source
(cd host-source && find . | sort) > before.txt
if host/bin/pip install --disable-pip-version-check ./host-source > log 2>&1; then
    if (cd host-source && find . | sort) | diff before.txt - > log; then ok; else bad "pip install sdk/python leaves: $(cat log)"; fi
    if PATH=$build:$PATH host/bin/python -c 'import tare_sdk; tare_sdk.Estimator("grpo")' > log 2>&1; then ok; else bad "$(cat log)"; fi
    PATH=$build:$PATH host/bin/python -c 'import tare_sdk; tare_sdk.Estimator("gpro")' > log 2>&1 || true
    if grep -q "no estimator named 'gpro' (did you mean 'grpo'?)" log; then ok; else bad "gpro: $(cat log)"; fi
else
    bad "pip install sdk/python: $(tail -n 5 log)"
fi
done_
