#!/usr/bin/env bash
# A crash of the machine: from the recorded system calls of a training run, of one that is resumed, and of a sweep, states that a crash could leave are
# made and tried (tests/faults/crash_try.py): the run goes on to the same bits. What a program that forgets a sync would leave is found.
# CRASH_STATES: how many states of each record and rule (default: a few; 0: all); CRASH_SEED; CRASH_SECONDS: of each. Whole: docs/dev/reliability.md.
. "$(dirname "$0")/common.inc"
[ -n "${RECORD:-}" ] && [ -f "$RECORD" ] || skip "a sanitizer's build has an allocator of its own: calls are not recorded"
command -v python3 > /dev/null || skip "what python3 checks: it is not installed"
N=${CRASH_STATES:-8} SEED=${CRASH_SEED:-1} SECONDS_=${CRASH_SECONDS:-0}
tiny_config
"$TARE" -q sft sft.ini 2> /dev/null
train() { printf '%s\n' "$TARE" -q train tiny.ini log.progress=none log.rollouts=true eval.before=false eval.after=false train.steps=4 checkpoint.every=2 checkpoint.keep=1 "run.dir=$1/run"; }
tried() { # WHAT option...: the states of one record; its folder is the second word of --root
    local what=$1
    shift
    if PYTHONDONTWRITEBYTECODE=1 python3 "$SOURCE/tests/faults/crash_try.py" --record "$RECORD" --seed "$SEED" --seconds "$SECONDS_" "$@" > out.txt 2>&1; then ok; else bad "$what"; fi
    cat out.txt
}
found() { # WHAT option...: a planted fault
    local what=$1
    shift
    if PYTHONDONTWRITEBYTECODE=1 python3 "$SOURCE/tests/faults/crash_try.py" --record "$RECORD" --seed "$SEED" "$@" > out.txt 2>&1; then
        bad "not found: $what: $(cat out.txt)"
    elif grep -q '^BROKEN' out.txt; then
        ok
        printf 'found: %s: %s\n' "$what" "$(tail -1 out.txt)"
    else
        bad "not tried: $what: $(tail -3 out.txt)"
    fi
}
ready() { # FOLDER: a run in it that was killed in step 4, after the checkpoint of step 2 and the records of step 3
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
mkdir runs
tried "a sweep, strict" --most $(((N + 1) / 2)) --root runs -- "$TARE" -q sweep sweep.ini log.progress=none

# A program that forgets a sync.
plant() { # WHAT REGEX
    rm -rf fresh
    mkdir fresh
    mapfile -t command < <(train "$PWD/fresh")
    found "$1" --plant "$2" --most "${CRASH_PLANT_STATES:-60}" --first --root fresh --run run -- "${command[@]}"
}
plant "the weights of a checkpoint are not synced" 'step-0+4.*/model\.safetensors'
plant "the folder of checkpoints is not synced" '^run/checkpoints$'
plant "metrics.jsonl is not synced before a checkpoint" '^run/metrics\.jsonl(\.tmp)?$'
done_
