#!/usr/bin/env bash
# Checks one row of 50 MB: it is verified, checked and counted like other rows, in memory of a few
# times its size. Training refuses, with its place, a row that is longer than the context. A line of
# more than 64 MiB is refused.
. "$(dirname "$0")/common.inc"
tiny_config
"$TARE" -q sft sft.ini sft.steps=1 2> /dev/null
# row MEMBER BYTES REST: prints a line whose member has that length.
row() {
    printf '{"id":"big","%s":"' "$1"
    head -c "$2" /dev/zero | tr '\0' a
    printf '%s}\n' "$3"
}
# within KIB command...: runs the command with its address space limited to KIB and stores its exit
# status in `status`. A sanitizer's build reserves more and has no limit.
within() {
    local kib=$1
    shift
    status=0
    { ([ -z "${CLOCK:-}" ] || ulimit -v "$kib"; exec "$@") < "$input" > out.txt 2> err.txt || status=$?; } 2> /dev/null
}
input=pairs.jsonl
{ row completion 50000000 ' 72","answer":"72"'; echo '{"id":"small","completion":"72","answer":"72"}'; } > pairs.jsonl
within 400000 "$TARE" verify exact
[ $status = 0 ] && [ "$(wc -l < out.txt)" = 2 ] && grep -q '^{"id":"big","reward":0,"verdict":"wrong",' out.txt && ok || bad "exact: exit status $status: $(cut -c 1-200 out.txt err.txt)"
tail -1 out.txt | grep -q '"id":"small","reward":1,"verdict":"correct"' && ok || bad "exact: the row after it: $(tail -1 out.txt | cut -c 1-200)"
# The program receives all of it: it answers with the length, counted by tr and wc.
cat > judge.sh << 'SH'
head -n 1 | tr -cd a | wc -c | sed 's/^ */{"reward":/; s/$/}/'
SH
head -1 pairs.jsonl > one.jsonl
input=one.jsonl
within 400000 "$TARE" verify command command="sh $PWD/judge.sh" --timeout 300
reward=$(sed -n 's/.*"reward":\([0-9.e+]*\),.*/\1/p' out.txt)
[ $status = 0 ] && awk -v r="$reward" 'BEGIN { exit !(r >= 5e7 && r < 5.0001e7) }' && ok || bad "command: exit status $status: $(cut -c 1-200 out.txt err.txt)"

input=/dev/null
{ row question 50000000 '","answer":"72","subject":"s"'; echo '{"question":"1+1=","answer":"2","subject":"s"}'; } > rows.jsonl
within 600000 "$TARE" data check rows.jsonl verifier=exact
[ $status = 0 ] && grep -q '2 rows, no problems found' err.txt && ok || bad "data check: exit status $status: $(cut -c 1-200 err.txt)"
keys="run.threads=2 data.eval= log.progress=none train.steps=1 rollout.prompts=2 train.minibatch=8"
# shellcheck disable=SC2086
within 8000000 "$TARE" -q train tiny.ini $keys data.train=rows.jsonl
[ $status = 3 ] && [ "$(wc -l < err.txt)" = 1 ] && grep -qE '^tare: rows.jsonl:1: the prompt has 50000000 tokens, but at most [0-9]+ are allowed' err.txt && ok || bad "train: exit status $status: $(cut -c 1-200 err.txt)"
# The answer is not a part of the prompt.
{ row answer 50000000 '","question":"1+3=","subject":"s"'; tail -1 rows.jsonl; } > answers.jsonl
# shellcheck disable=SC2086
within 800000 "$TARE" -q train tiny.ini $keys data.train=answers.jsonl
[ $status = 0 ] && [ ! -s err.txt ] && ok || bad "train with a long answer: exit status $status: $(cut -c 1-200 err.txt)"
row question 67200000 '","answer":"72"' > rows.jsonl
within 600000 "$TARE" data check rows.jsonl
[ $status = 3 ] && grep -q 'rows.jsonl: a line is longer than 64 MiB' err.txt && ok || bad "a line of 67.2 MB: exit status $status: $(cut -c 1-200 err.txt)"
done_
