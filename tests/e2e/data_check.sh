#!/usr/bin/env bash
# tare data check: rows that training would refuse or that cannot be learned from, each with its
# reason; reasons whose numbers of rows add up; built-in data sets; write= writes the valid rows, and
# these are accepted by tare config check.
. "$(dirname "$0")/common.inc"
tiny_config
"$TARE" sft sft.ini sft.steps=1 log.progress=none 2> log.txt || { bad "no model: $(cat log.txt)"; done_; exit 1; }
# checks STATUS FILE [argument ...]: runs the check; report.jsonl and err.txt are its output
checks() {
    local want=$1 got=0
    shift
    "$TARE" data check "$@" > report.jsonl 2> err.txt || got=$?
    [ $got = "$want" ] && ok || bad "data check $*: status $got, expected $want: $(cat report.jsonl err.txt)"
    adds_up
}
# The counts of the reasons add up to the invalid rows, and these and the valid ones to all.
adds_up() {
    local all invalid valid sum
    grep -q ' of them invalid' err.txt || return 0
    read -r all invalid valid <<< "$(sed -n 's/^tare: .*: \([0-9]*\) rows, \([0-9]*\) of them invalid, \([0-9]*\) valid.*/\1 \2 \3/p' err.txt)"
    sum=$(sed -n 's/^tare: \([0-9]*\) rows\{0,1\}: .*/\1/p' err.txt | awk '{ n += $1 } END { print n + 0 }')
    [ "$sum" = "$invalid" ] && [ $((invalid + valid)) = "$all" ] && [ "$(wc -l < report.jsonl)" = "$invalid" ] && ok || bad "the counts do not add up ($sum, $invalid, $valid, $all): $(cat err.txt)"
}
reason() { grep -qF "\"id\":\"$1\",\"reason\":\"$2" report.jsonl && ok || bad "row $1 is not reported as $2: $(cat report.jsonl)"; }
at() { grep -qF ":$1\",\"id\":\"\",\"reason\":\"$2" report.jsonl && ok || bad "line $1 is not reported as $2: $(cat report.jsonl)"; }
counted() { grep -qx "tare: $1" err.txt && ok || bad "missing: $1: $(cat err.txt)"; }

# blank questions of every form, and what looks blank
{
    printf '%s\n' '{"question":"   ","answer":"1"}' '{"question":"\n\t","answer":"1"}' '{"prompt":"\u00a0\u3000\u200b","answer":"1"}'
    printf '%s\n' '{"prompt":[{"role":"user","content":" "}],"answer":"1"}' '{"messages":[{"role":"user","content":"a"},{"role":"user","content":"\ufeff"}],"answer":"1"}'
    printf '%s\n' '{"id":"dot","question":" . ","answer":"1"}' '{"id":"han","question":"\u3001","answer":"1"}'
} > blank.jsonl
checks 1 blank.jsonl
at 1 '\"question\" is blank'
at 2 '\"question\" is blank'
at 3 '\"prompt\" is blank'
at 4 'the last user message is blank'
at 5 'the last user message is blank'
counted 'blank.jsonl: 7 rows, 5 of them invalid, 2 valid (write=OUT writes those)'
"$TARE" config check tiny.ini data.train=blank.jsonl > out.txt 2>&1 && bad "config check accepts a blank question" || ok
grep -q 'blank.jsonl:1: "question" is blank' out.txt && ok || bad "$(cat out.txt)"

# a conversation that ends with the model's answer
{
    echo '{"id":"ends","messages":[{"role":"user","content":"1+1="},{"role":"assistant","content":"2"}],"answer":"2"}'
    echo '{"id":"goes on","messages":[{"role":"user","content":"1+1="},{"role":"assistant","content":"2"},{"role":"user","content":"and 2+2?"}],"answer":"4"}'
} > turns.jsonl
checks 1 turns.jsonl
reason ends 'the last message is of the assistant'
counted 'turns.jsonl: 2 rows, 1 of them invalid, 1 valid (write=OUT writes those)'

# prompts over the limit: each with its number of tokens, counted together
{
    echo '{"id":"short","question":"1+1=","answer":"2"}'
    for n in 10 20 30; do printf '{"id":"%s","question":"%s","answer":"2"}\n' $n "$(printf "%${n}s" | tr ' ' 7)"; done
} > long.jsonl
limit="model=base data.prompt=plain max_prompt_tokens"
checks 0 long.jsonl $limit=64
checks 1 long.jsonl $limit=10
grep -q '"id":"10"' report.jsonl && bad "a prompt of 10 tokens is above 10" || ok
reason 20 'the prompt has 20 tokens; at most 10 are allowed'
reason 30 'the prompt has 30 tokens; at most 10 are allowed'
counted '2 rows: the prompt has 20 tokens; at most 10 are allowed (the first of them)'
checks 1 long.jsonl $limit=10 data.suffix=++
reason 10 'the prompt has 12 tokens'
checks 0 long.jsonl $limit=10 write=kept.jsonl
[ "$(cat kept.jsonl)" = "$(head -2 long.jsonl)" ] && ok || bad "write=: $(cat kept.jsonl)"
counted 'kept.jsonl: 2 rows written'
plain="data.prompt=plain data.eval= estimator.plugin=grpo codebook.plugin=none rollout.max_prompt_tokens=10"
"$TARE" config check tiny.ini data.train=kept.jsonl $plain > out.txt 2>&1 && ok || bad "config check refuses what data check wrote: $(cat out.txt)"
"$TARE" config check tiny.ini data.train=long.jsonl $plain > out.txt 2>&1 && bad "config check accepts long prompts" || ok
for wrong in max_prompt_tokens=10 'model=base' "$limit=0" "$limit=x" data.prompt=plain; do
    "$TARE" data check long.jsonl $wrong > out.txt 2>&1 && bad "accepted: $wrong" || ok
done

# every reason is counted, also one that comes once
cat > mixed.jsonl <<'ROWS'
{"id":"a","question":"1+1=","answer":"2"}
{"id":"a","question":"1+2=","answer":"3"}
{"id":"b","question":"1+1=","answer":"2"}
{"id":"c","question":"1+3="}
{"id":"d","question":"which?","choices":["x","y"],"answer":"C"}
{"id":"e","question":"how?","answer":"no number"}
not a row
ROWS
checks 1 mixed.jsonl verifier=number
counted 'mixed.jsonl: 7 rows, 6 of them invalid, 1 valid (write=OUT writes those)'
counted '1 row: duplicate id, first in line 1'
# built-in data sets
checks 0 'builtin:arithmetic/train?rows=40'
counted 'builtin:arithmetic/train?rows=40: 40 rows, no problems found; the answers were not checked by a verifier (verifier=NAME)'
checks 0 'builtin:arithmetic/train?rows=40' verifier=exact write=arithmetic.jsonl
counted 'arithmetic.jsonl: 40 rows written'
checks 0 arithmetic.jsonl verifier=exact
"$TARE" data show tiny.ini data.train=arithmetic.jsonl rows=3 | sed 's/"where":"[^"]*",//' > file.txt 2> log.txt
"$TARE" data show tiny.ini 'data.train=builtin:arithmetic/train?rows=40' rows=3 | sed 's/"where":"[^"]*",//' | diff - file.txt > diff.txt && [ -s file.txt ] && ok || bad "the rows written differ: $(cat diff.txt)"
checks 1 'builtin:arithmetic/phase1?rows=40' model=base max_tokens=3
checks 1 'builtin:arithmetic/train?rows=40' $limit=3 verifier=exact
checks 1 'builtin:arithmetic/train?rows=5' against=arithmetic.jsonl
cp arithmetic.jsonl 'rows=40.jsonl'
checks 0 'rows=40.jsonl'
"$TARE" data check builtin:nothing/train > out.txt 2>&1 && bad "an unknown set" || ok
done_
