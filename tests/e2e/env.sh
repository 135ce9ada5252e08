#!/usr/bin/env bash
# Checks tare env: environments are listed, described, played from a pipe, and write rows of legal play
# that tare sft learns from: the acts, and not the context.
source "$(dirname "$0")/common.inc"
same() { # WHAT EXPECTED GOT
    if [ "$2" = "$3" ]; then ok; else bad "$1: expected '$2', got '$3'"; fi
}
refused() { # STATUS MESSAGE command...
    local status=$1 message=$2 got=0
    shift 2
    "$@" > out.txt 2> err.txt < /dev/null || got=$?
    if [ $got = "$status" ] && grep -qF -- "$message" err.txt; then ok; else bad "$*: status $got: $(cat err.txt)"; fi
}
same list 'bandit calc grid guess lookup python_class recall' "$("$TARE" env list | awk '{ print $1 }' | tr '\n' ' ' | sed 's/ $//')"
"$TARE" env describe guess highest=5 > out.txt
grep -q 'default 7; 2 <= highest <= 9' out.txt && grep -q 'legal play: every number' out.txt && ok || bad "describe: $(cat out.txt)"

# A whole game from a pipe, and one that ends early, with and without a last newline.
same play 'environment  31:02
act          r
environment  12
act          x
environment  !
end          no further act after 2 acts, reward 0' "$(printf 'r\nx' | "$TARE" env play grid --seed 252)"
printf '1\n2\n3\n4\n5\n6\n7\n' | "$TARE" env play guess guesses=7 > out.txt
grep -q '^end          done after [1-7] acts*, reward 1: the number was [1-7]$' out.txt && ok || bad "guess: $(cat out.txt)"
"$TARE" env play bandit < /dev/null > out.txt && ok || bad 'no act at all'
same 'no act' 'environment  b:
end          no further act after 0 acts, reward 0' "$(cat out.txt)"
same 'an equal seed' "$(printf 'a\nb\na\n' | "$TARE" env play bandit --seed 9)" "$(printf 'a\nb\na\n' | "$TARE" env play bandit --seed 9)"

# Rows: repeatable, other ones for another seed, all of them legal.
for name in bandit calc grid guess lookup recall; do
    "$TARE" env demo "$name" --rows 50 --seed 3 > $name.jsonl
    "$TARE" env demo "$name" --rows 50 --seed 3 > again.jsonl
    "$TARE" env demo "$name" --rows 50 --seed 4 > other.jsonl
    cmp -s $name.jsonl again.jsonl && ! cmp -s $name.jsonl other.jsonl && ok || bad "$name: rows"
    same "$name: rows" 50 "$(wc -l < $name.jsonl)"
    "$TARE" data check $name.jsonl > out.txt 2>&1 && ok || bad "$name: $(cat out.txt)"
    if grep -q '"text":"!' $name.jsonl; then bad "$name: an illegal act"; else ok; fi
done
"$TARE" env demo guess --rows 10 --seed 3 > few.jsonl
same 'fewer rows begin the same' "$(head -10 guess.jsonl)" "$(cat few.jsonl)"

# Only the acts are learnt: the same weights as with the context in the question.
cat > sft.ini << 'INI'
[model]
path = none
init = qwen2
hidden_size = 32
layers = 1
heads = 2
kv_heads = 2
intermediate_size = 64
context = 64
tie_embeddings = true

[data]
prompt = plain

[sft]
steps = 3
batch = 2

[train]
lr = 1e-2
INI
sft() { # NAME DATA
    "$TARE" sft sft.ini run.dir="$1.run" data.train="$2" sft.out="$1" > /dev/null 2> log.txt || bad "$1: $(tail -1 log.txt)"
}
printf '%s\n' '{"id":"a","question":"#g:","completion":"4"}' '{"id":"b","question":"#31:02","completion":"l"}' > whole.jsonl
printf '%s\n' '{"id":"a","question":"#","parts":[{"text":"g:","loss":false},{"text":"4","loss":true}]}' \
    '{"id":"b","question":"#","parts":[{"text":"31:02","loss":false},{"text":"l","loss":true}]}' > parts.jsonl
sft whole whole.jsonl
sft parts parts.jsonl
cmp -s whole/model.safetensors parts/model.safetensors && ok || bad 'context is learnt, or acts are not'
sed 's/"loss":false/"loss":true/' parts.jsonl > all.jsonl
sft all all.jsonl
if cmp -s parts/model.safetensors all/model.safetensors; then bad '"loss" changes nothing'; else ok; fi
sft guess guess.jsonl
[ -e guess/model.safetensors ] && ok || bad 'no model of guess'

# A run whose warm start has such rows passes its checks.
printf 'include = sft.ini\n[run]\ndir = warm.run\n[data]\ntrain = parts.jsonl\n[sft]\nout = warm\n' > warm.ini
printf '{"question":"1","answer":"1"}\n' > rows.jsonl
printf '[run]\ndir = y\n[model]\npath = warm\nwarm_start = warm.ini\n[data]\ntrain = rows.jsonl\nprompt = plain\n[train]\nminibatch = 8\n[rollout]\nprompts = 1\n[verifier]\nplugins = exact\n' > run.ini
"$TARE" config check run.ini > out.txt 2>&1 && ok || bad "config check: $(cat out.txt)"
refused 3 'which are joined as they are; set data.prompt = plain' "$TARE" sft sft.ini run.dir=x data.train=parts.jsonl sft.out=x data.prompt=chat
refused 1 "no environment named 'gues'; did you mean guess" "$TARE" env play gues
refused 3 'highest: 99 is out of range' "$TARE" env play guess highest=99
refused 2 '--rows 0: must be a whole number of at least 1' "$TARE" env demo guess --rows 0
refused 2 '--seed x: must be' "$TARE" env play guess --seed x
refused 2 '--question: must not be empty' "$TARE" env demo guess --question ''
refused 2 'usage: tare env list' "$TARE" env
refused 1 'grpo is an estimator' "$TARE" env check grpo
"$TARE" env check grid --only suggest > out.txt && grep -q '^pass  suggest' out.txt && ok || bad "check: $(cat out.txt)"
done_
