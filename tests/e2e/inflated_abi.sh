#!/usr/bin/env bash
# Checks that both sides of the ABI may grow: plugins built with larger structs, more numbers and more
# bits run under today's program, and today's plugins run under a Python host with larger structs.
source "$(dirname "$0")/common.inc"
has_python || skip "python3 is not installed"
command -v cc > /dev/null || skip "no C compiler"
python3 "$SOURCE/tests/abi/inflate.py" headers "$SOURCE/sdk/include" include
flags="-O1 -fPIC -fvisibility=hidden -shared -Wl,-z,defs -Wl,--version-script=$SOURCE/sdk/template/common/tare.map -I$PWD/include"

# built NAME FILE: the plugin of this file passes the check.
built() {
    if "$TARE" plugin check "./$1.so" > check.txt 2>&1 && grep -q ' 0 failed' check.txt; then ok; else bad "$1: $(grep -v ok check.txt | tail -5)"; fi
}

for kind in "$SOURCE"/sdk/template/*/; do
    kind=$(basename "$kind")
    [ "$kind" = common ] && continue
    for language in c cpp; do
        file=$SOURCE/sdk/template/$kind/plugin.$language
        [ -f "$file" ] || continue
        sed "s/@NAME@/larger/g" "$file" > larger.$language
        if [ $language = c ]; then
            # shellcheck disable=SC2086
            cc -std=c11 $flags -o "$kind.so" larger.c -lm > cc.txt 2>&1 || { bad "$kind.c does not build: $(grep error cc.txt | head -3)"; continue; }
        else
            command -v c++ > /dev/null || { skip_part "C++: no compiler"; continue; }
            # shellcheck disable=SC2086
            c++ -std=c++17 -fno-gnu-unique $flags -o "$kind.so" larger.cpp -lm > cc.txt 2>&1 || { bad "$kind.cpp does not build: $(grep error cc.txt | head -3)"; continue; }
        fi
        built "$kind"
    done
done
# shellcheck disable=SC2086
cc -std=c11 $flags -o median.so "$SOURCE/sdk/examples/median/median.c" -lm && built median
# shellcheck disable=SC2086
if command -v c++ > /dev/null; then c++ -std=c++17 -fno-gnu-unique $flags -o baseline.so "$SOURCE/sdk/examples/baseline/baseline.cpp" && built baseline; fi

# Process rewards went missing under a host whose tare_verdict was smaller than the plugin's.
# shellcheck disable=SC2086
cc -std=c11 $flags -o steps.so "$SOURCE/tests/plugin/steps.c" -lm
built steps

# Today's plugins under a host in Python with larger structs give the numbers of the plain one.
cat > host.py <<'P'
import tare_sdk
for name, parameters in (("grpo", {}), ("dr_grpo", {}), ("bv_blend", {"n_clusters": 4}), ("gdpo", {})):
    try:
        with tare_sdk.Estimator(name, **parameters) as estimator:
            columns = {"cluster": [1, 2]} if parameters else {}
            step = estimator.step([[1.0, 0.0, 0.5], [0.0, 0.0, 1.0]], **columns)
            print(name, [list(group) for group in step.advantage])
    except tare_sdk.TareError as e:
        print(name, e)
with tare_sdk.Verifier("exact") as verifier:
    print(verifier.verify("it is 42", "it is 42"))
P
export PYTHONPATH=$SOURCE/sdk/python
python3 host.py > plain.txt 2> plain.err || bad "host.py: $(tail -3 plain.err)"
python3 "$SOURCE/tests/abi/inflate.py" python host.py > larger.txt 2> larger.err || bad "host.py with larger structs: $(tail -3 larger.err)"
if cmp -s plain.txt larger.txt && [ -s plain.txt ]; then ok; else bad "a host with larger structs: $(diff plain.txt larger.txt)"; fi
done_
