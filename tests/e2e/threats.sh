#!/usr/bin/env bash
# What THREATS.md promises of input from strangers: nothing of it runs, is written outside of the folder that was asked for, or commands a terminal; what tare
# starts has no shell that reads it, no descriptors of tare's and no survivors; no connection is opened.
. "$(dirname "$0")/common.inc"
tiny_config
"$TARE" -q sft sft.ini 2> err.txt || bad "warm start: $(cat err.txt)"
"$TARE" -q train tiny.ini log.progress=none train.steps=4 2> err.txt || bad "train: $(cat err.txt)"
nothing_ran() { [ ! -e PWNED ] && ok || { bad "$1: a stranger's command ran"; rm -f PWNED; }; }
escape=$(printf '\033')

# Messages: names with control characters
mkdir model
printf '{"model_type":"\\u001b]0;title\\u0007\\u009b1m"}' > model/config.json
"$TARE" score model < /dev/null > out.txt 2> err.txt && bad "a model of no known type is taken"
grep -q '?]0;title' err.txt && ok || bad "the type is not named: $(cat -v err.txt)"
LC_ALL=C grep -q "[$(printf '\001-\010\013-\037\177')]" err.txt && bad "a message commands the terminal: $(cat -v err.txt)" || ok
LC_ALL=C grep -q "$(printf '\302\233')" err.txt && bad "a message has U+009B" || ok

# Models: pickles are not read, code is not run
cp base/tokenizer.json model/ 2> /dev/null || true
sed 's/{/{"auto_map":{"AutoModelForCausalLM":"modeling_x.Model"},"trust_remote_code":true,/' base/config.json > model/config.json
echo 'import os; os.system("touch PWNED")' > model/modeling_x.py
printf 'cposix\nsystem\n(S"touch PWNED"\ntR.' > model/pytorch_model.bin
"$TARE" score model < /dev/null > out.txt 2> err.txt && bad "a pickle is taken for weights"
grep -q 'safetensors' err.txt && ok || bad "it is not said that safetensors are wanted: $(cat err.txt)"
nothing_ran "a model"

# Checkpoints: names that lead out of their folder (the file has the size and the sum that the list wants)
checkpoint=run/checkpoints/step-000004
entry=$(grep -o '{[^{}]*"name": *"config.json"[^{}]*}' $checkpoint/complete.json)
[ -n "$entry" ] && ok || bad "complete.json has another form, so what follows tests nothing"
for name in "$WORK/precious" ../../../precious estimator/../../../../precious; do
    rm -rf evil evil-fork-4 elsewhere
    cp -r run evil
    cp $checkpoint/config.json precious
    rm -rf evil/checkpoints/step-000003
    mkdir -p elsewhere evil/checkpoints/step-000004/estimator
    sed -i "s|\"files\": *\[|&$(sed "s|config.json|$name|" <<< "$entry"),|" evil/checkpoints/step-000004/complete.json
    "$TARE" fork evil@4 run.dir=elsewhere/deeper/fork > out.txt 2> err.txt || true
    grep -q 'complete.json: lists .*precious, which is not in that folder' err.txt && ok || bad "$name: taken from a checkpoint: $(cat err.txt)"
    cmp -s precious $checkpoint/config.json && ok || bad "$name: a fork wrote to a file outside of it"
    [ -z "$(find elsewhere -name precious)" ] && ok || bad "$name: a fork left a file outside of it"
done
printf '{"step":4,"link":"end","files":{"../precious":"00000000000000000000000000000000"},"chain":"00000000000000000000000000000000"}\n' >> evil/chain.jsonl
"$TARE" verify-run evil > out.txt 2>&1 && bad "a chain with a file outside of the run is taken"
grep -q 'names ../precious, which is not in the run' out.txt && ok || bad "verify-run: $(cat out.txt)"

# Folders of runs: what only reads them starts nothing that they name
rm -rf evil
cp -r run evil
sed -i 's/^plugins = exact/plugins = command/; s|^\[verifier\]|[verifier.command]\ncommand = touch PWNED; cat\n&|' evil/config.ini
grep -q PWNED evil/config.ini && ok || bad "config.ini has another form, so what follows tests nothing"
for command in "report evil -o page.html" "diff run evil" "verify-run evil" "watch evil --once" "config diff run evil" "report run evil -o page.html"; do
    timeout 60 "$TARE" $command > out.txt 2> err.txt < /dev/null || true
    nothing_ran "tare $command"
done

# Programs of the verifiers: rows are their standard input and nothing else
cat > rows.jsonl <<'ROWS'
{"id":"$(touch PWNED)","completion":"$(touch PWNED)","answer":"`touch PWNED`","level":"'; touch PWNED; '"}
{"id":"2","completion":"\"; touch PWNED; \"","answer":"a\nb","question":"| touch PWNED"}
ROWS
"$TARE" verify command command="while read -r line; do echo 1; done" < rows.jsonl > out.txt 2> err.txt && [ "$(wc -l < out.txt)" = 2 ] && ok || bad "verify: $(cat err.txt)"
nothing_ran "a row"
"$TARE" -q train tiny.ini log.progress=none run.dir=seen train.steps=1 verifier.plugins=command verifier.workers=2 \
    verifier.command.command="ls -1 /proc/self/fd > fds; while read -r line; do echo 1; done" 2> err.txt && ok || bad "train with a program: $(cat err.txt)"
sh -c 'ls -1 /proc/self/fd > usual; while read -r line; do echo 1; done' < /dev/null
[ -s fds ] && [ -z "$(sort fds | comm -23 - <(sort usual))" ] && ok || bad "a program has descriptors of tare's: $(tr '\n' ' ' < fds) instead of $(tr '\n' ' ' < usual)"
echo '{"completion":"x","answer":"x"}' | "$TARE" verify command command='sleep 4000 & echo $! > child; while read -r line; do echo 1; done' > out.txt 2>&1 || bad "verify: $(cat out.txt)"
late() { echo '{"completion":"x","answer":"x"}' | "$TARE" verify command timeout=$LIMIT command='sleep 4000 & echo $! > late; sleep 4000' > out.txt 2>&1 && [ -s late ]; }
patient late || bad "verify: $(cat out.txt)"
for file in child late; do # it is ended; the system takes it away in its own time
    until_ '! lives "$(cat $file)"' && ok || { bad "$file: what a program started goes on"; kill "$(cat $file)"; }
done

# Files: as private as the umask says, temporary ones gone, and none where another could have put it
mkdir tmp
(umask 077 && TMPDIR=$WORK/tmp "$TARE" -q train tiny.ini log.progress=none run.dir=private train.steps=4 2> err.txt) && ok || bad "umask 077: $(cat err.txt)"
[ -z "$(find private runs.db -newer tmp -perm /077 ! -name runs.db)" ] && ok || bad "others may read $(find private -perm /077 | head -3)"
TMPDIR=$WORK/tmp "$TARE" -q verify-run private --steps 4 > out.txt 2>&1 && TMPDIR=$WORK/tmp "$TARE" -q plan tiny.ini > out.txt 2>&1 && ok || bad "TMPDIR: $(cat out.txt)"
[ -z "$(ls -A tmp)" ] && ok || bad "left in TMPDIR: $(ls -A tmp)"

# Connections: none, whatever is done on one rank
if [ -n "${INTERPOSE:-}" ] && [ -f "$INTERPOSE" ]; then
    count() { TARE_INTERPOSE_COUNT=$PWD/count LD_PRELOAD=$INTERPOSE "$TARE" -q "$@" > out.txt 2> err.txt < rows.jsonl || bad "tare $*: $(cat err.txt)"; }
    count train tiny.ini log.progress=none run.dir=counted train.steps=2
    count eval tiny.ini run.dir=counted eval.rows=2
    count report counted -o page.html
    count verify-run counted --steps 2
    count verify exact --isolate
    echo "{\"text\":\"1+1=\"}" > rows.jsonl
    count generate base rollout.max_new_tokens=2
    count doctor
    [ "$(wc -l < count)" -ge 7 ] && ! grep -vq ' net 0$' count && ok || bad "a connection was opened: $(cat count)"
else
    skip_part "a sanitizer's build has an allocator of its own: faults are not injected"
fi
done_
