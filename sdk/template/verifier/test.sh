# Two completions, one of them correct.
set -eu
got=$(printf '%s\n%s\n' '{"id":"a","completion":"it is 42","answer":"42"}' '{"id":"b","completion":"it is 41","answer":"42"}' |
    "${TARE:-tare}" verify ./@NAME@.so | grep -o '"verdict":"[a-z]*"' | tr '\n' ' ')
[ "$got" = '"verdict":"correct" "verdict":"wrong" ' ] && echo "ok" || { echo "unexpected: $got"; exit 1; }
