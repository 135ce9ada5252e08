#!/usr/bin/env bash
# Checks tare verify: lines in, lines out in the same order; explanations; bad input; equal verdicts
# over threads and worker processes.
set -u
[ -x "$TARE" ] || { echo "SKIP: tare is not built"; exit 77; }
fail() { echo "FAIL: $*"; exit 1; }
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT

cat > "$work/in" <<'END'
{"id":"a","completion":"so it is 72.","answer":"72"}
{"id":2,"pred":"it is 71","gold":"72"}
{"id":"c","completion":"no idea","answer":"72"}
{"id":"d","completion":"on 3/4/2024","answer":"72"}
END
"$TARE" verify number < "$work/in" > "$work/out" || fail "verify number"
[ "$(wc -l < "$work/out")" = 4 ] || fail "not one line of output per line of input"
for want in '"id":"a","reward":1,"verdict":"correct","extracted":"72"' '"id":2,"reward":0,"verdict":"wrong","extracted":"71"' \
            '"id":"c","reward":0,"verdict":"no_answer"' '"id":"d","reward":0,"verdict":"unparsable"'; do
    grep -qF "$want" "$work/out" || fail "no $want"
done
for i in $(seq 300); do echo "{\"id\":$i,\"completion\":\"it is $((i % 7))\",\"answer\":\"3\"}"; done > "$work/many"
"$TARE" verify number < "$work/many" > "$work/one" || fail "one thread"
"$TARE" verify number --threads 4 < "$work/many" > "$work/four" || fail "four threads"
"$TARE" verify number --isolate --threads 2 < "$work/many" > "$work/isolated" || fail "worker processes"
cmp "$work/one" "$work/four" && cmp "$work/one" "$work/isolated" || fail "verdicts differ"

echo '{"id":1,"completion":"it is 5"}' | "$TARE" verify number > /dev/null 2> "$work/err" && fail "a line without an answer was accepted"
grep -q 'standard input:1: "answer" (or "gold") is missing' "$work/err" || fail "$(cat "$work/err")"
echo '{"completion":"1000","answer":1000}' | "$TARE" verify exact | grep -q '"reward":1,' || fail "a number as an answer was refused"
"$TARE" verify number percent=half < /dev/null > /dev/null 2> "$work/err"; [ $? = 3 ] || fail "a wrong parameter is a configuration error"
"$TARE" verify < /dev/null > /dev/null 2>&1; [ $? = 2 ] || fail "no plugin is a usage error"
"$TARE" verify number < "$work/in" > /dev/full 2> /dev/null && fail "the full disk was not noticed"

if [ -f "$TARE_PLUGIN_PATH/verifiers/math.so" ]; then
    echo '{"id":1,"completion":"thus \\boxed{\\frac{1}{\\sqrt2}}","answer":"\\frac{\\sqrt2}{2}"}' | "$TARE" verify math --explain > "$work/out" || fail "explain"
    for want in '"verdict":"correct"' '"precision":"exact"' '"rule":"equal algebraic numbers (proved)"' '"answer_found":"box"' '"gold_parsed":'; do
        grep -qF "$want" "$work/out" || fail "no $want in $(cat "$work/out")"
    done
fi
echo "PASS"
