# Two completions, one of them correct.
set -eu
got=$(printf '%s\n%s\n' '{"id":"a","completion":"it is 42","answer":"42"}' '{"id":"b","completion":"it is 41","answer":"42"}' |
    "${TARE:-tare}" verify ./@NAME@.so | grep -o '"verdict":"[a-z]*"' | tr '\n' ' ')
case $got in
'"verdict":"correct" "verdict":"wrong" ') echo "ok" ;;
*) echo "test.sh expects something else of the plugin (put in completions and verdicts of your rule); it gives: $got"; exit 1 ;;
esac
