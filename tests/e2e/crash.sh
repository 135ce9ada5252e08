#!/usr/bin/env bash
# Checks that a training run, a resumed run and a sweep continue after a crash of the machine
# (crash.inc) with bit-identical results.
. "$(dirname "$0")/common.inc"
. "$(dirname "$0")/crash.inc"
tiny_config
"$TARE" -q sft sft.ini 2> /dev/null
train() { printf '%s\n' "$TARE" -q train tiny.ini log.progress=none log.rollouts=true eval.before=false eval.after=false train.steps=4 checkpoint.every=2 checkpoint.keep=1 "run.dir=$1/run"; }
# ready FOLDER: a run in it that was killed in step 4, after the checkpoint of step 2 and the
# records of step 3
ready() {
    rm -rf "$1"
    mkdir -p "$1"
    mapfile -t command < <(train "$1")
    killed_at update 4 "${command[@]}" || bad "not killed"
}
for rules in strict ext4; do
    rm -rf fresh
    mkdir fresh
    mapfile -t command < <(train "$PWD/fresh")
    tried "a new run, $rules" --rules $rules --most "$N" --root fresh --run run -- "${command[@]}"
    ready "$PWD/again"
    mapfile -t command < <(train "$PWD/again")
    tried "a resumed run, $rules" --rules $rules --most "$N" --root again --run run -- "${command[@]}" --resume
done
# A sweep of two cells, one after the other, with its database.
sed 's/^steps = 12/steps = 2/; s/^every = 3/every = 1/; s/^samples = 1/samples = 1\nbefore = false\nafter = true/' tiny.ini > sweep.ini
printf '[sweep]\nname = two\nrun.seed = 1..2\n' >> sweep.ini
for rules in strict ext4; do
    rm -rf runs
    mkdir runs
    tried "a sweep, $rules" --rules $rules --most $(((N + 1) / 2)) --root runs -- "$TARE" -q sweep sweep.ini log.progress=none
done

# A program that forgets a sync.
plant() { # WHAT REGEX
    rm -rf fresh
    mkdir fresh
    mapfile -t command < <(train "$PWD/fresh")
    found "$1" --plant "$2" --root fresh --run run -- "${command[@]}"
}
plant "the weights of a checkpoint are not synced" 'step-0+4.*/model\.safetensors'
plant "the folder of checkpoints is not synced" '^run/checkpoints$'
plant "metrics.jsonl is not synced before a checkpoint" '^run/metrics\.jsonl(\.tmp)?$'
done_
