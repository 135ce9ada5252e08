#!/usr/bin/env bash
# Checks that one flipped bit in a file that is read is found by a checksum, and that the message
# names the file. Checkpoints and a run's chain are tested by checkpoint/test_checkpoint and
# e2e/reproduce, messages between ranks by e2e/ranks_flip.
. "$(dirname "$0")/common.inc"
tiny_config
refused() { # STATUS PATTERN command...: checks the status, and a message with the pattern
    local want=$1 pattern=$2 got=0
    shift 2
    "$@" > out.txt 2> err.txt < rows.jsonl || got=$?
    [ $got = "$want" ] && grep -q -- "$pattern" err.txt && ok || bad "$*: status $got, expected $want with '$pattern': $(cat err.txt)"
}
taken() { "$@" > out.txt 2> err.txt < rows.jsonl && ok || bad "$*: $(cat err.txt)"; }
for i in 1 2 3 4 5 6; do echo "{\"question\": \"$i + $i\", \"text\": \"$i + $i\", \"answer\": \"$((i + i))\"}"; done > rows.jsonl

# A model written by tare: a run starts from it, and other commands read it.
"$TARE" sft sft.ini 2> err.txt && [ -e base/sums.json ] && ok || { bad "the model was not made: $(cat err.txt)"; done_; exit 1; }
quick='data.eval= eval.before=false eval.after=false train.steps=1 log.progress=none'
for file in model.safetensors tokenizer.json config.json sums.json; do
    rm -rf copy && cp -r base copy && flip copy/$file
    name="copy/\($file\|sums.json\)"
    # shellcheck disable=SC2086
    refused 1 "$name" "$TARE" train tiny.ini $quick model.path=copy model.warm_start= run.dir=new
    refused 1 "$name" "$TARE" generate copy rollout.max_new_tokens=2
done
[ ! -e new/metrics.jsonl ] && ok || bad 'a step was made'
rm -rf copy && cp -r base copy && flip copy/model.safetensors
flipped="copy/model.safetensors: is damaged.*make it again, or remove copy/sums.json if its files were changed on purpose"
refused 1 "$flipped" "$TARE" score copy
refused 1 "$flipped" "$TARE" eval tiny.ini model.path=copy
# shellcheck disable=SC2086
refused 1 "$flipped" "$TARE" train tiny.ini $quick run.dir=kl model.reference=copy loss.kl_coef=0.1
refused 1 "$flipped" "$TARE" sft sft.ini model.path=copy model.init= sft.out=tuned
rm copy/sums.json # another program's folder has none
# shellcheck disable=SC2086
taken "$TARE" train tiny.ini $quick model.path=copy model.warm_start= run.dir=foreign
rm -rf copy && cp -r base copy && flip copy/tokenizer.json 1
refused 1 'copy/tokenizer.json: is damaged' "$TARE" tokenize copy

# An adapter, its base, and both merged.
taken "$TARE" sft sft.ini model.path=base model.init= lora.rank=2 sft.steps=1 sft.out=adapter
rm -rf copy && cp -r adapter copy && flip copy/adapter_model.safetensors
refused 1 'copy/adapter_model.safetensors: is damaged' "$TARE" merge copy merged
cp -r base good && flip base/model.safetensors
refused 1 'base/model.safetensors: is damaged' "$TARE" merge adapter merged
rm -r base && mv good base
taken "$TARE" merge adapter merged
flip merged/model.safetensors
refused 1 'merged/model.safetensors: is damaged' "$TARE" generate merged rollout.max_new_tokens=2

# A codebook: in a new run, and in the commands that only read it.
taken "$TARE" cluster train hashed dim=16 --clusters 2 --seed 1 --restarts 1 -o book.safetensors
at=$(($(stat -c %s book.safetensors) - 90)) # a centroid, or the encoder's trained part
flip book.safetensors $at 64
refused 1 'book.safetensors: is damaged' "$TARE" cluster assign book.safetensors
refused 1 'book.safetensors: is damaged' "$TARE" cluster inspect book.safetensors
# shellcheck disable=SC2086
refused 1 'book.safetensors: is damaged' "$TARE" train tiny.ini $quick run.dir=clusters codebook.plugin=kmeans encoder.plugin=hashed encoder.hashed.dim=16 codebook.kmeans.path=book.safetensors
flip book.safetensors $at 64
taken "$TARE" cluster assign book.safetensors

# A run's rollouts and metrics: commands that read them warn once, with the file's name; a fork,
# which would continue from them, refuses.
# shellcheck disable=SC2086
taken "$TARE" train tiny.ini $quick train.steps=4 checkpoint.every=2 run.dir=one log.rollouts=true
# PATTERN FILE: prints where it begins in the file.
place() { grep -abo -m 1 "$1" "$2" | tail -1 | cut -d: -f1; }
warned() { # COUNT PATTERN command...: checks the number of warnings with the pattern
    local count=$1 pattern=$2
    shift 2
    "$@" > out.txt 2> err.txt || true
    [ "$(grep -c "warning: $pattern.*is not what the run wrote" err.txt)" = "$count" ] && ok || bad "$*: expected $count of '$pattern': $(cat err.txt)"
}
warned 0 '' "$TARE" report one
warned 0 '' "$TARE" audit one
file=one/rollouts/step-000002.jsonl
at=$(($(place '"reward":' $file) + 9))
flip $file $at # 0.0 is 1.0
warned 1 $file "$TARE" report one
warned 1 $file "$TARE" audit one
warned 1 $file "$TARE" audit $file
refused 1 "$file: was changed .*restore the file, or fork at a step before 2" "$TARE" fork one@4 --run-dir forked
[ ! -e forked ] && ok || bad 'a refused fork left its folder'
mv one/chain.jsonl kept.jsonl # a run without its chain has no checksums
warned 0 '' "$TARE" audit one
mv kept.jsonl one/chain.jsonl
flip $file $at
warned 0 '' "$TARE" report one
file=one/metrics.jsonl
at=$(($(place '"policy/entropy":' $file) + 19)) # a digit after the point
flip $file $at
warned 1 $file:1 "$TARE" report one
refused 1 "$file:1: is not what the run wrote .*restore the file" "$TARE" fork one@4 --run-dir forked
flip $file $at
taken "$TARE" fork one@4 --run-dir forked

# The state of a sweep's cells: a failed cell is not run again without --retry.
sed 's/^samples = 1/samples = 1\nafter = true/; s/^steps = 12/steps = 2/' tiny.ini > bad.ini
cat >> bad.ini <<'INI'
[sweep]
name = bad
rollout.max_prompt_tokens = 2, 32
INI
"$TARE" sweep bad.ini log.progress=none > out.txt 2> err.txt && bad 'no cell failed' || ok
grep -q '1 of 2 cells failed' err.txt && ok || bad "the sweep: $(cat err.txt)"
row=max_prompt_tokens-2runs/bad/max_prompt_tokens-2 # the cell and its folder; its state follows
at=$(place ${row}failed runs/bad/runs.db) || bad 'the state of the cell was not found'
flip runs/bad/runs.db $((at + ${#row} + 3))
refused 1 'runs/bad/runs.db: the row of cell .*max_prompt_tokens-2 in the table cells is damaged.*--retry' "$TARE" sweep bad.ini
"$TARE" sweep bad.ini --retry log.progress=none > out.txt 2> err.txt && bad 'no cell failed again' || ok
grep -q 'warning: runs/bad/runs.db: the row of cell .*max_prompt_tokens-2 is damaged' err.txt && grep -q '2 cells, 1 done, 1 to run' err.txt && ok || bad "--retry: $(cat err.txt)"
"$TARE" sweep bad.ini > out.txt 2> err.txt || true
grep -q 'damaged' err.txt && bad "the row was not written again: $(cat err.txt)" || ok
# The row of a finished cell, and the row of a cell outside the plan: --retry removes them, and the
# sweep continues.
if has_python; then
    python3 - << 'PY'
import sqlite3
d = sqlite3.connect("runs/bad/runs.db")
d.execute("UPDATE cells SET status = 'failed' WHERE status = 'done'")
d.execute("INSERT INTO cells VALUES ('gone', 'gone', 'done', 1, 1.0, 1.0, NULL, 1, 'deadbeef')")
d.commit()
PY
    refused 1 'in the table cells is damaged' "$TARE" sweep bad.ini
    "$TARE" sweep bad.ini --retry log.progress=none > out.txt 2> err.txt && bad 'no cell failed again' || ok
    grep -q 'cell gone is damaged.*removed' err.txt && grep -q '1 done, 1 to run' err.txt && ok || bad "--retry: $(cat err.txt)"
    "$TARE" sweep bad.ini > out.txt 2> err.txt || true
    grep -q 'damaged' err.txt && bad "damaged rows remain: $(cat err.txt)" || ok
fi
# The message of a damaged list of checksums has a remedy, and a dangling link does not count as a
# folder without checksums.
cp -r base listed
for text in '' '{' '[]' '{"fxrmat":1,"files":[]}'; do
    printf '%s' "$text" > listed/sums.json
    refused 1 'sums.json.*or remove .*sums.json' "$TARE" generate listed
done
rm listed/sums.json
ln -s /nonexistent listed/sums.json
refused 1 'sums.json.*link' "$TARE" generate listed
rm listed/sums.json
cp base/sums.json listed
"$TARE" chat listed < /dev/null > out.txt 2> err.txt && ok || bad "chat: $(cat err.txt)"
flip listed/tokenizer.json 40
refused 1 'tokenizer.json: is damaged' "$TARE" chat listed
done_
