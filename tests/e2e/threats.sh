#!/usr/bin/env bash
# Checks the promises of THREATS.md about untrusted input: nothing of it is executed, written
# outside of the requested folder, or sent to a terminal as a command. Programs started by tare have
# no shell that reads the input, none of tare's descriptors, and no surviving processes. No
# connection is opened.
. "$(dirname "$0")/common.inc"
tiny_config
"$TARE" -q sft sft.ini 2> err.txt || bad "warm start: $(cat err.txt)"
"$TARE" -q train tiny.ini log.progress=none train.steps=4 2> err.txt || bad "train: $(cat err.txt)"
nothing_ran() { [ ! -e PWNED ] && ok || { bad "$1: an untrusted command was executed"; rm -f PWNED; }; }
escape=$(printf '\033')

# Messages: names with control characters.
mkdir model
printf '{"model_type":"\\u001b]0;title\\u0007\\u009b1m"}' > model/config.json
"$TARE" score model < /dev/null > out.txt 2> err.txt && bad "a model of an unknown type was accepted"
grep -q '?]0;title' err.txt && ok || bad "the message does not name the type: $(cat -v err.txt)"
LC_ALL=C grep -q "[$(printf '\001-\010\013-\037\177')]" err.txt && bad "a message has terminal commands: $(cat -v err.txt)" || ok
LC_ALL=C grep -q "$(printf '\302\233')" err.txt && bad "a message has U+009B" || ok

# Models: pickles are not read, and code is not executed.
cp base/tokenizer.json model/ 2> /dev/null || true
sed 's/{/{"auto_map":{"AutoModelForCausalLM":"modeling_x.Model"},"trust_remote_code":true,/' base/config.json > model/config.json
echo 'import os; os.system("touch PWNED")' > model/modeling_x.py
printf 'cposix\nsystem\n(S"touch PWNED"\ntR.' > model/pytorch_model.bin
"$TARE" score model < /dev/null > out.txt 2> err.txt && bad "a pickle was read as weights"
grep -q 'safetensors' err.txt && ok || bad "the message does not ask for safetensors: $(cat err.txt)"
nothing_ran "a model"

# Checkpoints: names that lead out of their folder (the file has the size and the checksum of the
# list).
checkpoint=run/checkpoints/step-000004
entry=$(grep -o '{[^{}]*"name": *"config.json"[^{}]*}' $checkpoint/complete.json)
[ -n "$entry" ] && ok || bad "complete.json has another format, so the rest checks nothing"
for name in "$WORK/precious" ../../../precious estimator/../../../../precious; do
    rm -rf evil evil-fork-4 elsewhere
    cp -r run evil
    cp $checkpoint/config.json precious
    rm -rf evil/checkpoints/step-000003
    mkdir -p elsewhere evil/checkpoints/step-000004/estimator
    sed -i "s|\"files\": *\[|&$(sed "s|config.json|$name|" <<< "$entry"),|" evil/checkpoints/step-000004/complete.json
    "$TARE" fork evil@4 run.dir=elsewhere/deeper/fork > out.txt 2> err.txt || true
    grep -q 'complete.json: lists .*precious, which is outside that folder' err.txt && ok || bad "$name: accepted from a checkpoint: $(cat err.txt)"
    cmp -s precious $checkpoint/config.json && ok || bad "$name: a fork wrote to a file outside of it"
    [ -z "$(find elsewhere -name precious)" ] && ok || bad "$name: a fork left a file outside of it"
done
printf '{"step":4,"link":"end","files":{"../precious":"00000000000000000000000000000000"},"chain":"00000000000000000000000000000000"}\n' >> evil/chain.jsonl
"$TARE" reproduce evil > out.txt 2>&1 && bad "a chain with a file outside of the run was accepted"
grep -q 'invalid name ../precious: must be in the run' out.txt && ok || bad "reproduce: $(cat out.txt)"

# Folders of runs: commands that only read them start none of the programs that they name.
rm -rf evil
cp -r run evil
sed -i 's/^plugins = exact/plugins = command/; s|^\[verifier\]|[verifier.command]\ncommand = touch PWNED; cat\n&|' evil/config.ini
grep -q PWNED evil/config.ini && ok || bad "config.ini has another format, so the rest checks nothing"
reads() { # STATUS PATTERN WORD...: checks that the command did its work and started no program
    local want=$1 text=$2 status=0
    shift 2
    timeout 300 "$TARE" "$@" > out.txt 2> err.txt < /dev/null || status=$?
    [ $status = "$want" ] && grep -q -- "$text" out.txt err.txt && ok || bad "tare $*: status $status, not $want, or no '$text': $(cat out.txt err.txt)"
    nothing_ran "tare $*"
}
reads 0 'page.html' report evil -o page.html
reads 0 'page.html' report run evil -o page.html
reads 1 'verifier.plugins' diff run evil
reads 1 'config.ini' reproduce evil
reads 0 'training reward' watch evil
reads 0 'verifier.plugins' config diff run evil

# Tables in a terminal: names of folders, of rows and of a data set's columns.
raw=$(printf '\033]0;title\007\302\2331m')
written='\u001b]0;title\u0007\u009b1m'
for i in 1 2 3 4 5 6 7 8; do printf '{"id":"%s %d","prompt":"%d+1=","answer":"%d","subject":"%s"}\n' "$written" $i $i $((i + 1)) "$written"; done > named.jsonl
named=(run.name="$raw" data.train=named.jsonl data.eval=named.jsonl train.steps=2 train.minibatch=32 checkpoint.every=2 log.progress=none)
"$TARE" -q train tiny.ini "${named[@]}" run.dir="$raw" 2> err.txt || bad "train: $(cat -v err.txt)"
"$TARE" -q train tiny.ini "${named[@]}" run.dir=other run.seed=2 2> err.txt || bad "train: $(cat -v err.txt)"
cp -r "$raw" "audited$raw"
sed -i 's/"reward":0.0,/"reward":1.0,/' "audited$raw"/rollouts/*.jsonl
harmless() { # STATUS WORD...: checks that the name is shown, without terminal commands
    local want=$1 status=0
    shift
    timeout 300 "$TARE" "$@" > out.txt 2> err.txt < /dev/null || status=$?
    [ $status = "$want" ] && grep -qF '?]0;title???1m' out.txt && ok || bad "tare $(cat -v <<< "$*"): status $status, not $want, or the name is not shown: $(cat -v out.txt err.txt)"
    LC_ALL=C grep -q "[$(printf '\001-\010\013-\037\177')]" out.txt err.txt && bad "tare $(cat -v <<< "$*"): terminal commands: $(cat -v out.txt err.txt)" || ok
    LC_ALL=C grep -q "$(printf '\302\233')" out.txt err.txt && bad "tare $(cat -v <<< "$*"): U+009B" || ok
}
harmless 0 watch "$raw"
harmless 1 diff "$raw" other
harmless 0 config diff other "$raw"
harmless 1 audit "audited$raw"
harmless 0 reproduce "$raw"
harmless 0 eval "$raw"

# Programs of the verifiers: they get rows on standard input only.
cat > rows.jsonl <<'ROWS'
{"id":"$(touch PWNED)","completion":"$(touch PWNED)","answer":"`touch PWNED`","level":"'; touch PWNED; '"}
{"id":"2","completion":"\"; touch PWNED; \"","answer":"a\nb","question":"| touch PWNED"}
ROWS
"$TARE" verify command command="while read -r line; do echo 1; done" < rows.jsonl > out.txt 2> err.txt && [ "$(wc -l < out.txt)" = 2 ] && ok || bad "verify: $(cat err.txt)"
nothing_ran "a row"
# Programs, in threads and in worker processes: they have none of tare's descriptors, and all
# processes that they start end with them, in or out of their group.
cat > kids.sh <<'SH'
while read -r line; do
    sleep 4000 & one=$!
    setsid sleep 4000 & two=$!
    ls -1 /proc/self/fd > fds
    echo "$one $two" > kids.new && mv kids.new kids
    case $line in *late*) sleep 4000 ;; esac
    echo 1
done
SH
cat > kids.py <<'PY'
import os, subprocess, time
def reward(completions, **row):
    kids = [subprocess.Popen(["sleep", "4000"], start_new_session=leaves) for leaves in (False, True)]
    link = lambda n: os.path.exists(f"/proc/self/fd/{n}") and os.readlink(f"/proc/self/fd/{n}") or ""
    own = [link(n) for n in (0, 1, 2)]
    with open("fds", "w") as f: # files other than the first three descriptors
        names = [n for n in sorted(os.listdir("/proc/self/fd"), key=int) if link(n) not in own + ["", "/dev/null", f"{os.getcwd()}/fds"]]
        f.write("".join(n + "\n" for n in names if int(n) > 2))
        f.write("0\n")
    with open("kids.new", "w") as f: f.write(" ".join(str(k.pid) for k in kids))
    os.rename("kids.new", "kids")
    if "late" in completions[0]: time.sleep(4000)
    return [1.0] * len(completions)
PY
sh -c 'ls -1 /proc/self/fd > usual; while read -r line; do echo 1; done' < /dev/null
echo '{"completion":"late","answer":"x"}' > late.jsonl
gone() { # WHEN: it has ended; the system removes it a little later
    for kid in $(cat kids); do until_ '! lives $kid' && ok || { bad "$way: $1: a process started by a program continues"; kill "$kid"; }; done
}
late() { "$TARE" verify "${program[@]}" timeout=$LIMIT < late.jsonl > out.txt 2>&1 && [ -s kids ]; }
ended() { # PROGRAM...: in order, late, and by the death of tare
    local program=("$@") way="$*" pid
    rm -f kids fds
    echo '{"completion":"x","answer":"x"}' | "$TARE" verify "$@" > out.txt 2>&1 && [ -s kids ] && ok || bad "$way: $(cat out.txt)"
    [ -s fds ] && [ -z "$(sort fds | comm -23 - <(sort usual))" ] && ok || bad "$way: a program has tare's descriptors: $(tr '\n' ' ' < fds) instead of $(tr '\n' ' ' < usual)"
    gone "in order"
    rm -f kids
    patient late && gone late || bad "$way: late: $(cat out.txt)"
    rm -f kids
    "$TARE" verify "$@" --timeout 3600 < late.jsonl > out.txt 2>&1 &
    pid=$!
    until_ '[ -s kids ] || ! lives $pid' && [ -s kids ] || bad "$way: no program: $(cat out.txt)"
    kill -9 $pid
    wait $pid 2> /dev/null || true
    gone killed
}
for isolate in "" --isolate; do
    # shellcheck disable=SC2086
    ended command command='sh kids.sh' $isolate
    # shellcheck disable=SC2086
    if has_python; then ended python file=kids.py $isolate; fi
done
# The same in a run, which has more open files than `tare verify`.
for isolate in thread process; do
    for plugin in command python; do
        key="verifier.command.command=sh kids.sh"
        [ $plugin = command ] || { has_python || continue; key=verifier.python.file=kids.py; }
        rm -f kids fds
        "$TARE" -q train tiny.ini log.progress=none run.dir=seen-$isolate-$plugin train.steps=1 verifier.plugins=$plugin verifier.workers=2 verifier.isolate=$isolate \
            "$key" 2> err.txt && ok || bad "train, $plugin in a $isolate: $(cat err.txt)"
        [ -s fds ] && [ -z "$(sort fds | comm -23 - <(sort usual))" ] && ok || bad "$plugin in a $isolate has tare's descriptors: $(tr '\n' ' ' < fds) instead of $(tr '\n' ' ' < usual)"
        way="train, $plugin in a $isolate" gone "in order"
    done
done

# Files: as private as the umask demands; temporary files are removed, and are not in folders where
# other users could replace them.
mkdir tmp
(umask 077 && TMPDIR=$WORK/tmp "$TARE" -q train tiny.ini log.progress=none run.dir=private train.steps=4 2> err.txt) && ok || bad "umask 077: $(cat err.txt)"
[ -z "$(find private runs.db -newer tmp -perm /077 ! -name runs.db)" ] && ok || bad "other users may read $(find private -perm /077 | head -3)"
TMPDIR=$WORK/tmp "$TARE" -q reproduce private --steps 4 > out.txt 2>&1 && TMPDIR=$WORK/tmp "$TARE" -q plan tiny.ini > out.txt 2>&1 && ok || bad "TMPDIR: $(cat out.txt)"
[ -z "$(ls -A tmp)" ] && ok || bad "files remain in TMPDIR: $(ls -A tmp)"

# Connections: none on one rank, whatever the command.
if [ -n "${INTERPOSE:-}" ] && [ -f "$INTERPOSE" ]; then
    count() { TARE_INTERPOSE_COUNT=$PWD/count LD_PRELOAD=$INTERPOSE "$TARE" -q "$@" > out.txt 2> err.txt < rows.jsonl || bad "tare $*: $(cat err.txt)"; }
    count train tiny.ini log.progress=none run.dir=counted train.steps=2
    count eval tiny.ini run.dir=counted eval.rows=2
    count report counted -o page.html
    count reproduce counted --steps 2
    count verify exact --isolate
    echo "{\"text\":\"1+1=\"}" > rows.jsonl
    count generate base rollout.max_new_tokens=2
    count doctor
    [ "$(wc -l < count)" -ge 7 ] && ! grep -vq ' net 0$' count && ok || bad "a connection was opened: $(cat count)"
else
    skip_part "a sanitizer's build has an allocator of its own: faults are not injected"
fi
done_
