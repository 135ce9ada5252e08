#!/bin/bash
# Checks tare score: the numbers depend neither on the number of lines that are computed together,
# nor on threads; errors name the bad line.
set -u
MODEL=$SHARED/models/tiny/qwen3
[ -d "$MODEL" ] && [ -z "${TARE_NO_SHARED:-}" ] || MODEL=$SOURCE/tests/data/models/tiny/qwen3
DIR=$(mktemp -d) && trap 'rm -rf "$DIR"' EXIT
fail() { echo "FAIL: $*"; exit 1; }

for i in $(seq 1 40); do
    ids=$i
    for j in $(seq 1 $((i * 3 % 50))); do ids=$ids,$(((i * 31 + j * j * 7) % 256)); done
    echo "{\"id\":\"r$i\",\"ids\":[$ids]}"
done >"$DIR/in"
"$TARE" score "$MODEL" <"$DIR/in" >"$DIR/base" || fail "exit status $?"
[ "$(wc -l <"$DIR/base")" = 40 ] || fail "40 lines in, $(wc -l <"$DIR/base") out"
grep -q '^{"id":"r17","logprobs":\[-' "$DIR/base" || fail "no numbers for r17"
for how in batch=1 batch=7 "batch=4096 threads=1" threads=3; do
    # shellcheck disable=SC2086
    "$TARE" score "$MODEL" $how <"$DIR/in" >"$DIR/other" || fail "$how: exit status $?"
    cmp -s "$DIR/base" "$DIR/other" || fail "$how: other numbers"
done
"$TARE" score "$MODEL" temperature=0.6 <"$DIR/in" >"$DIR/other" || fail "temperature=0.6: exit status $?"
cmp -s "$DIR/other" "$DIR/base" && fail "the temperature changes nothing"

refused() { # status, pattern, input, arguments
    local status=$1 pattern=$2 input=$3
    shift 3
    printf '%s' "$input" | "$TARE" score "$@" >"$DIR/out" 2>"$DIR/err"
    local got=$?
    [ $got = "$status" ] || fail "$*: exit status $got, not $status"
    grep -q "$pattern" "$DIR/err" || fail "$*: \"$(cat "$DIR/err")\" does not have $pattern"
}
refused 1 'standard input:2: ids\[1\]' '{"ids":[1,2]}
{"ids":[1,256]}
' "$MODEL"
[ "$(wc -l <"$DIR/out")" = 1 ] || fail "the line before the bad one is not answered"
refused 1 'at least one' '{"ids":[]}' "$MODEL"
refused 1 'not found\|no such' '' /no/such/model
refused 3 'unknown key' '' "$MODEL" batches=2
refused 3 'temperature' '' "$MODEL" temperature=0
refused 2 'usage' ''
printf '{"ids":[1,2]}\n' | "$TARE" score "$MODEL" >/dev/full 2>"$DIR/err" && fail "the full disk was not noticed"
echo PASS
