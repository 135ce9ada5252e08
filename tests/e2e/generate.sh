#!/usr/bin/env bash
# Checks tare generate: every form of prompt, equal lines whatever the batch, logprobs equal to
# those of tare score, and errors.
. "$(dirname "$0")/common.inc"
tiny_config
"$TARE" sft sft.ini 2> log.txt || bad "sft: $(tail -1 log.txt)"
gen() { "$TARE" -q generate base "$@"; }

cat > in.jsonl <<'IN'
{"id":"q","question":"12+30="}
{"id":"m","messages":[{"role":"user","content":"12+30="}]}
{"id":7,"text":"12+30="}
{"ids":[49,50,43,51,48,61]}
{"id":"q","question":"12+30="}
{"id":"long","text":"1+1=2, 2+2=4, 3+3=6, 4+4=8, 5+5="}
IN
gen group_size=3 max_new_tokens=20 run.seed=5 < in.jsonl > all.jsonl || bad "generate"
for setting in "batch=1" "batch=7 threads=2" "batch=32 threads=1" "kv_tokens=64 threads=3" "batch=2 kv_tokens=80"; do
    gen group_size=3 max_new_tokens=20 seed=5 $setting < in.jsonl > other.jsonl || bad "generate $setting"
    cmp -s all.jsonl other.jsonl && ok || bad "$setting changes the output"
done
# Every instruction set of this CPU, set by TARE_CPU; the others are refused by name.
for isa in ref avx2 avx512; do
    if TARE_CPU=$isa gen group_size=3 max_new_tokens=20 seed=5 < in.jsonl > other.jsonl 2> log.txt; then
        cmp -s all.jsonl other.jsonl && ok || bad "TARE_CPU=$isa changes the output"
    else
        grep -q "$isa requires" log.txt && ok || bad "TARE_CPU=$isa: $(tail -1 log.txt)"
    fi
done
gen group_size=3 max_new_tokens=20 seed=6 < in.jsonl | cmp -s all.jsonl - && bad "the seed changes nothing" || ok

checked "the lines are not the expected ones" <<'PY'
import json
rows = [json.loads(l) for l in open("all.jsonl")]
assert [r["id"] for r in rows] == [i for i in ["q", "m", 7, "line-4", "q", "long"] for _ in range(3)]
assert [r["sample"] for r in rows] == [0, 1, 2] * 6
for r in rows:
    assert list(r) == ["id", "sample", "completion", "ids", "logprobs", "finish"]
    assert len(r["ids"]) == len(r["logprobs"]) and 1 <= len(r["ids"]) <= 20
    ends = r["ids"][-1] == 258
    assert r["finish"] == ("stop" if ends else "length") and 258 not in r["ids"][:-1]
    assert bytes(t for t in r["ids"] if t < 256).decode("utf-8", "replace") == r["completion"]
    assert all(x <= 0 for x in r["logprobs"])
assert [r["ids"] for r in rows[0:3]] != [r["ids"] for r in rows[12:15]] # the same id a second time
PY

# Logprobs are bit-identical to those of tare score, also at another temperature.
for t in 1 0.7; do
    has_python || break
    gen group_size=4 max_new_tokens=20 temperature=$t < in.jsonl > g.jsonl
    python3 - in.jsonl g.jsonl > s.in <<'PY'
import json, sys
prompts = [list(b"12+30=")] * 6
prompts[5] = list(b"1+1=2, 2+2=4, 3+3=6, 4+4=8, 5+5=")
prompts[0] = prompts[1] = prompts[4] = None # rendered by the chat template
for i, line in enumerate(open(sys.argv[2])):
    if prompts[i // 4]:
        print(json.dumps({"id": len(prompts[i // 4]), "ids": prompts[i // 4] + json.loads(line)["ids"]}))
PY
    "$TARE" -q score base temperature=$t batch=5 < s.in > s.jsonl || bad "score"
    checked "logprobs differ from tare score at temperature $t" <<'PY'
import json
g = [json.loads(l)["logprobs"] for i, l in enumerate(open("g.jsonl")) if i // 4 in (2, 3, 5)]
s = [json.loads(l) for l in open("s.jsonl")]
assert len(g) == len(s) == 12
assert all(a == b["logprobs"][b["id"] - 1:] for a, b in zip(g, s))
PY
done
gen group_size=2 temperature=0 max_new_tokens=9 < in.jsonl > greedy.jsonl
checked greedy <<'PY'
import json
rows = [json.loads(l) for l in open("greedy.jsonl")]
assert all(rows[i]["ids"] == rows[i + 1]["ids"] for i in range(0, 12, 2))
assert rows[0]["ids"] == rows[2]["ids"] == rows[8]["ids"] and rows[4]["ids"] == rows[6]["ids"]
PY

# The user's stop id; ids without a tokenizer.
gen stop_ids=48,49,50,51,52,53,54,55,56,57 ignored= < /dev/null 2> /dev/null && bad "unknown key" || ok
gen stop_ids=48,49,50,51,52,53,54,55,56,57 max_new_tokens=20 < in.jsonl > stopped.jsonl
checked stop_ids <<'PY'
import json
rows = [json.loads(l)["ids"] for l in open("stopped.jsonl")]
assert rows and not any(48 <= t <= 57 for ids in rows for t in ids[:-1])
PY
gen ignore_eos=true max_new_tokens=6 group_size=2 --stats < in.jsonl > out.txt 2> err.txt
checked "ignore_eos, --stats" "$(wc -l < in.jsonl)" <<'PY'
import json, sys
rows = [json.loads(l) for l in open("out.txt")]
assert len(rows) == 2 * int(sys.argv[1]) and all(len(r["ids"]) == 6 and r["finish"] == "length" for r in rows)
stats = json.loads(open("err.txt").read().splitlines()[-1])
assert stats["new_tokens"] == 6 * len(rows) and stats["seconds"] > 0
PY
cp -r base bare && rm bare/tokenizer* bare/sums.json
sed -n 4p in.jsonl | "$TARE" -q generate bare group_size=1 max_new_tokens=4 | grep -q '"completion":null' && ok || bad "without a tokenizer"

refused() { # PATTERN INPUT ARGS...
    local pattern=$1 input=$2
    shift 2
    if printf '%s\n' "$input" | "$TARE" -q generate "$@" > out.txt 2> err.txt; then bad "accepted: $input $*"
    elif [ "$(wc -l < err.txt)" = 1 ] && grep -qE "$pattern" err.txt; then ok
    else bad "$input $*: $(head -3 err.txt)"; fi
}
refused 'standard input:1.*ids\[1\].*258' '{"ids":[3,999]}' base
refused 'standard input:1.*question' '{"id":1}' base
refused 'standard input:1.*(200|201) tokens.*128' "{\"text\":\"$(printf 'x%.0s' $(seq 200))\"}" base
refused 'standard input:1.*kv_tokens' '{"text":"abc"}' base kv_tokens=16 max_new_tokens=100
refused 'must be 1 to 2 ' '{"text":"abc"}' base max_prompt_tokens=2
refused 'tokenizer.json' '{"text":"abc"}' bare
refused 'not valid JSON' '{"text":' base
refused 'nearest is .temperature' '{"text":"a"}' base temperatur=1
refused 'top_p' '{"text":"a"}' base top_p=2
refused 'stop_ids.*x' '{"text":"a"}' base stop_ids=1,x
for ids in 1,,2 1, ,1 , '1 2' 1.5 -1 '1, ,2'; do
    refused 'rollout.stop_ids = .*must be token ids from 0 to [0-9]*, separated by commas' '{"text":"a"}' base "stop_ids=$ids"
done
for ids in '' ' ' ' 1 , 2 '; do
    echo '{"text":"a"}' | gen "stop_ids=$ids" max_new_tokens=2 > out.jsonl 2> err.txt && [ -s out.jsonl ] && ok || { bad "stop_ids='$ids'"; cat err.txt; }
done
refused 'model folder not found' '{"text":"a"}' nowhere
printf '{"text":"a"}\nrubbish\n' | "$TARE" -q generate base group_size=2 max_new_tokens=3 > out.txt 2> err.txt && bad "invalid input was accepted" || ok
[ "$(wc -l < out.txt)" = 2 ] && grep -q 'standard input:2' err.txt && ok || bad "the line before an invalid one is lost"
if [ -w /dev/full ]; then
    gen max_new_tokens=3 < in.jsonl > /dev/full 2> err.txt && bad "the full disk was not noticed" || ok
fi
done_
