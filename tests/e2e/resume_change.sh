#!/usr/bin/env bash
# Checks that --resume never destroys: a run whose checkpoints are all damaged stays unchanged; a
# changed configuration is reported and refused unless allowed, and config.ini keeps the settings of
# earlier steps. `tare train RUN --resume` continues as the run began, and so does the hint after
# Ctrl-C.
. "$(dirname "$0")/common.inc"
tiny_config
train() { "$TARE" train "$@" log.progress=none > out.txt 2> err.txt; }
says() { grep -q "$1" err.txt && ok || { bad "missing in the output: $1"; cat err.txt; }; }
status() { [ "$1" = "$2" ] && ok || { bad "status $1, expected $2: $3"; cat err.txt; }; }
"$TARE" -q sft sft.ini
got=0; TARE_FAULT=stage=update,step=5,kind=stop train tiny.ini train.steps=40 run.dir=runs/k4 train.lr=2e-4 || got=$?
status $got 130 interrupted
says 'continue with: tare train runs/k4 --resume'
if command -v sqlite3 > /dev/null; then
    [ "$(sqlite3 runs/runs.db 'select status from runs')" = interrupted ] && ok || bad "runs.db: not interrupted"
else
    checked "runs.db: not interrupted" <<< 'import sqlite3; assert sqlite3.connect("runs/runs.db").execute("select status from runs").fetchone()[0] == "interrupted"'
fi
step=$(sed -n 's/.*interrupted after step \([0-9]*\);.*/\1/p' err.txt)

# The day of the run is recorded: a prompt with the date does not change when the run is resumed on
# another day.
today=$(sed -n 's/^date = //p' runs/k4/config.ini)
case $today in 20[0-9][0-9]-[01][0-9]-[0-3][0-9]) ok ;; *) bad "data.date is not recorded: '$today'" ;; esac
sed -i 's/^date = .*/date = 2020-02-29/' runs/k4/config.ini

# Another configuration.
cp -r runs/k4 before
got=0; train runs/k4 --resume train.lr=1 || got=$?
status $got 3 "another lr"
says 'train.lr (0.0002 -> 1)'
grep -q 'goes on\|continues' err.txt && bad "the message says that a refused run continues: $(cat err.txt)" || ok
got=0; train runs/k4 --resume train.steps=1 --allow-change || got=$?
status $got 3 "fewer steps than were done"
says "train.steps = 1: runs/k4 has already finished $step steps"
diff -r before runs/k4 > /dev/null && ok || { bad "a refused resume changed the run"; diff -rq before runs/k4; }
got=0; train runs/k4 --resume train.steps=60 || got=$?
status $got 3 "more steps under a falling schedule"
says 'train.steps (40 -> 60) (the learning rate falls.*over train.steps.*--allow-change'
got=0; train runs/k4 --resume train.steps=$((step + 1)) train.lr=1e-4 --allow-change || got=$?
status $got 0 "allowed"
says 'train.lr: 0.0002 -> 0.0001'
grep -q '^date = 2020-02-29' runs/k4/config.ini && ok || bad "the resumed run has another date"
grep -q "^# after step $step (.*Z): train.lr: 0.0002 -> 0.0001" runs/k4/config.ini && grep -q '^lr = 0.0001' runs/k4/config.ini && ok || { bad "config.ini has no history"; head -5 runs/k4/config.ini; }
got=0; train runs/k4 --resume run.threads=1 log.level=warn || got=$?
status $got 0 "a key that changes no weight"
grep -q "^# after step $step (.*): train.lr" runs/k4/config.ini && grep -q '^# after step.*run.threads' runs/k4/config.ini && ok || { bad "the history was lost"; head -5 runs/k4/config.ini; }

# The command that the run was started with, without the model that it named.
got=0; train tiny.ini model.path= run.dir=runs/k4 --resume || got=$?
status $got 3 "without a model"
says 'model.path is not set; the run has its own keys in runs/k4/config.ini: tare train runs/k4 --resume$'

# A constant rate does not depend on the number of steps: more steps need no option, and are
# bit-identical to a run that had this length from the start.
constant="train.schedule=constant train.warmup_steps=2"
for length in 2 4; do train tiny.ini $constant train.steps=$length run.dir=runs/long$length || bad "$length steps: $(cat err.txt)"; done
got=0; train runs/long2 --resume train.steps=4 || got=$?
status $got 0 "more steps at a constant rate"
says 'train.steps: 2 -> 4 (allowed)'
cmp -s runs/long2/checkpoints/step-000004/model.safetensors runs/long4/checkpoints/step-000004/model.safetensors && ok || bad "a longer run has other weights"

# Every checkpoint is damaged.
for folder in runs/k4/checkpoints/step-*; do echo >> "$folder/tokenizer_config.json"; done
rm -rf before; cp -r runs/k4 before
got=0; train runs/k4 --resume train.steps=$((step + 2)) --allow-change || got=$?
status $got 1 "all checkpoints damaged"
says "none of its [0-9]* checkpoints can be used.*rollouts of $((step + 1)) steps"
diff -r before runs/k4 > /dev/null && ok || bad "a run whose checkpoints are damaged was changed"
# This holds for supervised training, too.
sed 's/^out = .*/out = other/; s/^steps = .*/steps = 40/' sft.ini > sft2.ini
printf '[checkpoint]\nevery = 2\n' >> sft2.ini
got=0; TARE_FAULT=stage=update,step=5,kind=stop "$TARE" -q sft sft2.ini > out.txt 2> err.txt || got=$?
status $got 130 "interrupted sft"
for folder in other.training/checkpoints/step-*; do echo >> "$folder/tokenizer_config.json"; done
got=0; "$TARE" sft sft2.ini --resume > out.txt 2> err.txt || got=$?
status $got 1 "sft with damaged checkpoints"
says 'checkpoints is usable.*nothing was changed'
ls other.training/checkpoints/step-* > /dev/null && ok || bad "the checkpoints were removed"
# Two runs need the same model: the second one waits while the first one makes it. The first one
# continues once the second one has reported that it waits.
sed 's/^out = .*/out = slow/; s/^steps = .*/steps = 20/' sft.ini > sft3.ini
frozen_at update 10 "$TARE" train tiny.ini model.path=slow model.warm_start="$PWD/sft3.ini" run.dir=runs/first train.steps=1 log.progress=none > first.txt 2>&1 || bad "the first run: $(cat first.txt)"
train tiny.ini model.path=slow model.warm_start="$PWD/sft3.ini" run.dir=runs/second train.steps=1 &
second=$!
until_ '! lives $second || grep "slow is being made by another process: waiting for it" err.txt > found.txt' || bad "the second run neither waits nor ends"
kill -CONT $pid
got=0; wait $second || got=$?
status $got 0 "the second run"
says 'slow is being made by another process: waiting for it'
wait $pid && ok || { bad "the first run"; cat first.txt; }
done_
