#!/usr/bin/env bash
# Checks tare ladder: this program is within the band of the quickest rung, reproduces the band's
# values to the bit, and is below the band when it learns too slowly. The table in the documents
# equals bands.csv. Each rung's files are complete.
. "$(dirname "$0")/common.inc"
CSV=$SOURCE/configs/ladder/bands.csv
ladder() { # STATUS arguments
    local want=$1 got=0
    shift
    "$TARE" -q ladder "$@" > out.txt 2> err.txt || got=$?
    [ $got = "$want" ] && ok || { bad "ladder $*: status $got, expected $want"; cat out.txt err.txt; }
}
says() { grep -q -- "$1" out.txt && ok || { bad "missing in the output: $1"; cat out.txt err.txt; }; }

ladder 0 bandit
says '^bandit .* inside the band$\|^bandit .* above the band$'
ladder 0 bandit --seeds 1..2
[ "$(grep -c 'equal to bands.csv, bit by bit' out.txt)" = 2 ] && ok || bad "the seeds of the band: $(cat out.txt)"
ladder 1 bandit train.lr=1e-5
says '^bandit .* below the band: suspect a defect in the code$'
[ "$(ls -d runs/ladder/bandit-???????? | wc -l)" = 1 ] && ok || bad "other keys need a separate folder: $(ls runs/ladder)"
ladder 0 bandit # nothing is left to do
says '^bandit '

ladder 0 --list
while IFS= read -r line; do
    grep -qF -- "    $line" "$SOURCE/docs/laboratory.md" && ok || bad "docs/laboratory.md has another table: $line"
done < out.txt
ladder 3 --list train.promts=3
grep -q -- '--list trains nothing' err.txt && ok || bad "keys with --list: $(cat err.txt)"
for rung in $(sed 1d "$CSV" | cut -d, -f1 | uniq); do
    case $rung in
        words) [ "$(grep -c "^$rung," "$CSV")" = 5 ] && ok || bad "$rung: not 5 seeds" ;;&
        words | gsm8k) "$TARE" -q config dump "builtin:ladder/$rung" > dump.txt 2> err.txt && grep '^plugin = grpo' dump.txt > /dev/null && ok || bad "$rung: $(cat err.txt)"; continue ;;
    esac
    [ "$(grep -c "^$rung," "$CSV")" = 20 ] && ok || bad "$rung: not 20 seeds"
    "$TARE" -q config dump "builtin:ladder/$rung" > dump.txt 2> err.txt && grep -q '^plugin = grpo' dump.txt && ok || bad "$rung: $(cat err.txt)"
    awk -F, -v r="$rung" '$1 == r { n++; better += $4 > $3 } END { exit !(n == better) }' "$CSV" && ok || bad "$rung: a seed that did not learn"
done
# Rungs that need files: the message has the missing file and where to read more. Without a band no
# result is judged.
ladder 3 words
grep 'words: smollm2 is missing; set model.path=PATH. The first lines of configs/ladder/words.ini say where to get it' err.txt > /dev/null && ok || bad "no model: $(cat err.txt)"
ladder 3 gsm8k model.path=runs/ladder/bandit-base
grep 'gsm8k: gsm8k_train.jsonl is missing; set data.train=PATH' err.txt > /dev/null && ok || bad "no rows: $(cat err.txt)"
[ -z "$(find runs/ladder -name 'words*' -o -name 'gsm8k*')" ] && ok || bad "a rung without its files left a folder"
for i in $(seq 40); do printf '{"id":"%s","question":"%s=","answer":"8"}\n' "$i" "$((i % 10))"; done > rows.jsonl
ladder 0 gsm8k model.path=runs/ladder/bandit-base data.train=rows.jsonl data.eval=rows.jsonl data.prompt=plain data.suffix= rollout.max_new_tokens=2 train.steps=2 train.warmup_steps=1 model.dtype=f32 --seeds 1..2
says '^gsm8k  *no band measured  runs [01]\.[0-9]* [01]\.[0-9]*$'
ladder 3 nosuch
grep -q 'nosuch: unknown rung' err.txt && ok || bad "$(cat err.txt)"
ladder 2 --what
ladder 3 bandit --seeds x
done_
