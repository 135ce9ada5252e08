#!/usr/bin/env bash
# Values at the edge of what a number, a name or a plugin may be: refused by name, or quoted and
# escaped where they are shown. Checks that a message names the key at fault and not another one.
. "$(dirname "$0")/common.inc"
tiny_config
"$TARE" sft sft.ini sft.steps=2 log.progress=none 2> log.txt || { bad "no model: $(cat log.txt)"; done_; exit 1; }
# refused STATUS PATTERN command...: the exit status, and the pattern in one of its messages
refused() {
    local want=$1 pattern=$2 got=0
    shift 2
    "$@" > out.txt 2> err.txt || got=$?
    [ $got = "$want" ] && grep -q -e "$pattern" err.txt && ok || bad "$*: status $got, expected $want with '$pattern': $(cat err.txt)"
}

# numbers that are 0 in single precision
for value in 1e-300 1e-46 1e-39; do
    refused 3 "rollout.temperature = '$value'" "$TARE" train tiny.ini rollout.temperature=$value
    refused 3 "eval.temperature = '$value'" "$TARE" train tiny.ini eval.temperature=$value
    refused 3 "train.eps = '$value'" "$TARE" train tiny.ini train.eps=$value
    refused 3 "loss.shaping = '$value'\|loss.shaping" "$TARE" train tiny.ini loss.shaping=$value
done

# a bound of a plugin's parameter is named with its value
refused 3 'gamma = 1e308\|1e308 is out of range: must be 0 < gamma <= 1' "$TARE" config check tiny.ini estimator.bv_blend.gamma=1e308
printf '{"id":"a","question":"1+1="}\n{"id":"b","question":"1+2="}\n' > rows.jsonl
got=0
"$TARE" cluster train hashed --clusters 4294967297 -o c.safetensors < rows.jsonl > out.txt 2> err.txt || got=$?
[ $got != 0 ] && grep -q 4294967297 err.txt && ! grep -q 'at least 1 is needed$' err.txt && ok || bad "the bound of clusters is not named: $(cat err.txt)"

# an adapter whose product is not finite is not merged
"$TARE" sft sft.ini model.path=base model.init= lora.rank=2 sft.steps=1 sft.out=adapter log.progress=none 2> log.txt || bad "no adapter: $(cat log.txt)"
for alpha in 1e308 1e39 -1e39; do
    rm -rf edge merged && mkdir edge && cp adapter/adapter_config.json adapter/adapter_model.safetensors edge
    sed -i "s/\"lora_alpha\": *[0-9.e+]*/\"lora_alpha\": $alpha/" edge/adapter_config.json
    got=0
    "$TARE" merge edge merged > out.txt 2> err.txt || got=$?
    [ $got != 0 ] && [ ! -e merged ] && grep -q "$alpha\|lora_alpha\|infinite\|NaN" err.txt && ok || bad "lora_alpha = $alpha: status $got: $(cat err.txt)"
done
if has_python; then
    rm -rf edge && mkdir edge && cp adapter/adapter_config.json edge
    python3 - <<'PY'
import struct
data = bytearray(open("adapter/adapter_model.safetensors", "rb").read())
begin = 8 + struct.unpack("<Q", data[:8])[0]
for i in range(begin, len(data) - 3, 4):
    data[i:i + 4] = struct.pack("<f", 1e30)
open("edge/adapter_model.safetensors", "wb").write(data)
PY
    refused 1 'would be infinite after the merge' "$TARE" merge edge merged
    [ ! -e merged ] && ok || bad "a model with infinite weights is written"
fi
rm -rf edge && mkdir edge && cp adapter/adapter_model.safetensors edge
tr -d '\n' < adapter/adapter_config.json | sed 's#"target_modules": *\[[^]]*\]#"target_modules": ["../x"]#' > edge/adapter_config.json
refused 1 "'../x' is not the name of a layer" "$TARE" merge edge merged

# exit(0) in several threads at once is never status 0
for i in $(seq 64); do echo '{"completion":"exit","answer":"1"}'; done > exits.jsonl
for i in 1 2 3 4 5 6 7 8; do
    got=0
    "$TARE" verify "$FIXTURES/verdicts.so" --threads 8 < exits.jsonl > out.txt 2> err.txt || got=$?
    [ $got = 1 ] && grep -q 'a plugin called exit(), which is not allowed' err.txt && ok || bad "exit(0) in a verifier: status $got: $(cat err.txt)"
done

# control characters of a value are escaped, and come back the same
printf '[run]\nname = n\033[31m\ndir = "r\\u0007x"\n[data]\nsuffix = "a\\u009bb\\u007f"\n' > raw.ini
"$TARE" config dump raw.ini > out.txt 2> err.txt || bad "dump: $(cat err.txt)"
LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177]')" out.txt && bad "control characters are printed: $(cat -v out.txt)" || ok
grep -q '^name = "n\\u001b\[31m"' out.txt && grep -q '^suffix = "a\\u009bb\\u007f"' out.txt && ok || bad "not escaped: $(cat -v out.txt)"
"$TARE" config dump out.txt | diff out.txt - > diff.txt && ok || bad "a dump does not load to the same values: $(cat -v diff.txt)"

# an advised command may be pasted
dir="my run \$(touch PWNED)"
"$TARE" train tiny.ini run.dir="$dir" train.steps=2 log.progress=none eval.before=false eval.after=false --until 1 > out.txt 2> err.txt || bad "a name with blanks: $(cat err.txt)"
command=$(sed -n 's/.*continue with: tare //p' err.txt)
(tare() { "$TARE" "$@"; } && eval "tare $command" > out.txt 2> again.txt) && [ ! -e PWNED ] && [ -e "$dir/checkpoints/step-000002" ] && ok || bad "pasted: tare $command: $(cat again.txt)"
"$TARE" train tiny.ini run.dir=-x train.steps=2 log.progress=none eval.before=false eval.after=false --until 1 > out.txt 2> err.txt || bad "-x: $(cat err.txt)"
command=$(sed -n 's/.*continue with: tare //p' err.txt)
(tare() { "$TARE" "$@"; } && eval "tare $command" > out.txt 2> again.txt) && ok || bad "pasted: tare $command: $(cat again.txt)"

# the folder of a model is not that of a run
refused 3 'run.dir = base is the folder of a model' "$TARE" train tiny.ini run.dir=base
refused 3 'is the folder of a model' "$TARE" train tiny.ini run.dir=./base/.
mkdir -p above/below
for dir in . .. / "$PWD/above"; do
    (cd above/below && touch file && refused 3 "run.dir = $dir: has the working folder and other files" "$TARE" train ../../tiny.ini model.path=../../base model.warm_start= run.dir="$dir" && [ $failed = 0 ]) && ok || bad "run.dir=$dir is taken"
done
rm above/below/*
(cd above/below && "$TARE" train ../../tiny.ini model.path=../../base model.warm_start= run.dir=. train.steps=1 > ../out.txt 2>&1) && ok || bad "an empty working folder as run.dir: $(cat above/out.txt)"
[ ! -e base/config.ini ] && ok || bad "the run's files are among the model's"

# an option that is given twice
refused 3 "gives rows twice" "$TARE" data show tiny.ini 'data.train=builtin:arithmetic/train?rows=1&rows=2'
refused 3 "gives seed twice" "$TARE" data show tiny.ini 'data.train=builtin:words/train?seed=1&rows=3&seed=2'

# a tokenizer's pattern that never ends: the row, the file and the text are named
if has_python; then
    cp -r base slow && rm -f slow/sums.json
    python3 - <<'PY'
import json
tokenizer = json.load(open("slow/tokenizer.json"))
tokenizer["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(a+)+$"
json.dump(tokenizer, open("slow/tokenizer.json", "w"))
PY
    printf '{"text":"1"}\n{"text":"%s!"}\n' "$(printf 'a%.0s' $(seq 60))" > texts.jsonl
    refused 1 "standard input:2: slow/tokenizer.json: pre_tokenizer.*failed on a text of 61 bytes that begins with 'aaaa" "$TARE" tokenize slow < texts.jsonl
fi

# what a reward function raises is shown, whatever characters it has
if has_python; then
    printf 'def odd(completions): raise ValueError("a\\ud800b\\0c")\n' > odd.py
    printf '{"completion":"1","answer":"1"}\n' > one.jsonl
    refused 1 'ValueError: a.ud800b.x00c' "$TARE" verify python file=odd.py function=odd < one.jsonl
fi
done_
