#!/usr/bin/env bash
# Checks that a run which waits for its verifiers reacts to SIGTERM at once, long before their
# time-outs, and continues with bit-identical results. Processes started by the verifiers, and their
# children, end with the run however it ends.
. "$(dirname "$0")/common.inc"
tiny_config
"$TARE" -q sft sft.ini 2> /dev/null
# until_ waits for at most half an hour; nothing below waits for a time-out of 86400 seconds.
all_gone() { for p in $(cat pids); do ! lives "$p" || return 1; done; }
# The verifier works until the file `wait` exists. Then it starts a process and a second one that
# has its own session and no living parent, writes down all ids, and hangs. When the file `leave`
# exists it starts only the second one, and continues to work.
cat > judge.sh << 'SH'
far() {
    rm -f "$1/far"
    (setsid sh -c 'sleep 86400 > /dev/null < /dev/null & echo $$ $! > "$1/far.tmp"; mv "$1/far.tmp" "$1/far"; wait' sh "$1" > /dev/null < /dev/null &)
    while [ ! -e "$1/far" ]; do sleep 0.1; done
}
while read -r line; do
    if [ -e "$1/leave" ] && [ ! -e "$1/pids" ]; then
        far "$1"
        mv "$1/far" "$1/pids"
    fi
    if [ -e "$1/wait" ]; then
        sleep 86400 &
        near=$!
        far "$1"
        echo $$ $near $(cat "$1/far") > "$1/pids.tmp"
        mv "$1/pids.tmp" "$1/pids"
        while :; do sleep 86400; done
    fi
    case $line in *[02468]\",*) echo '{"reward":1}' ;; *) echo '{"reward":0}' ;; esac
done
SH
cat > judge.py << PY
import os, subprocess, time
def reward(completions, **row):
    if os.path.exists("$WORK/wait"):
        near, far = subprocess.Popen(["sleep", "86400"]), subprocess.Popen(["sleep", "86400"], start_new_session=True)
        with open("$WORK/pids.tmp", "w") as f: f.write("%d %d %d\n" % (os.getpid(), near.pid, far.pid))
        os.rename("$WORK/pids.tmp", "$WORK/pids")
        while True: time.sleep(86400)
    return [float(c[-1:] in "02468") for c in completions]
PY
cat >> tiny.ini << INI
[verifier.command]
command = sh $WORK/judge.sh $WORK
[verifier.python]
file = judge.py
INI
command=("$TARE" -q train tiny.ini log.progress=none train.steps=4 checkpoint.every=2 verifier.timeout=80000 verifier.workers=1 eval.before=false)
train() { "${command[@]}" "$@"; }
verifiers=command
! has_python || verifiers="command python"
for verifier in $verifiers; do
    rm -rf whole
    train verifier.plugins=$verifier run.dir=whole > /dev/null 2> err.txt && ok || bad "$verifier: $(cat err.txt)"
    for isolate in thread process; do
        for signal in TERM KILL; do
            what="$verifier, isolate=$isolate, SIG$signal"
            rm -rf run pids
            train verifier.plugins=$verifier verifier.isolate=$isolate run.dir=run --until 2 > /dev/null 2> err.txt || bad "$what: $(cat err.txt)"
            touch wait
            "${command[@]}" verifier.plugins=$verifier verifier.isolate=$isolate run.dir=run --resume > /dev/null 2> err.txt &
            engine=$!
            until_ '[ -e pids ]' && ok || bad "$what: the verifier does not begin: $(cat err.txt)"
            kill -$signal $engine
            until_ "! lives $engine" && ok || bad "$what: the signal was ignored"
            status=0
            { wait $engine || status=$?; } 2> /dev/null
            rm -f wait
            if [ $signal = TERM ]; then
                [ $status = 130 ] && grep 'interrupted after step 2; continue with' err.txt > /dev/null && ok || bad "$what: status $status, $(cat err.txt)"
            else
                [ $status = 137 ] && ok || bad "$what: status $status"
            fi
            until_ all_gone && ok || { bad "$what: a process outlived the run: $(cat pids)"; kill -9 $(cat pids) 2> /dev/null; }
            train verifier.plugins=$verifier verifier.isolate=$isolate run.dir=run --resume > /dev/null 2> err.txt || bad "$what: not resumed: $(cat err.txt)"
            cmp -s whole/checkpoints/step-000004/model.safetensors run/checkpoints/step-000004/model.safetensors && ok || bad "$what: the weights differ"
        done
    done
done
# A process that left the group ends with the run even when the run ends normally.
rm -rf run pids
touch leave
train verifier.plugins=command run.dir=run > /dev/null 2> err.txt && [ "$(wc -w < pids)" = 2 ] && ok || bad "a verifier that leaves a process: $(cat err.txt)"
until_ all_gone && ok || { bad "a process outlived the run: $(cat pids)"; kill -9 $(cat pids) 2> /dev/null; }
rm -f leave

# This holds for a program in the sandbox, too, which is recognised by the folder's name in its text.
if has_python; then
    printf '{"id":"1","completion":"import time\\ntime.sleep(86400) # %s","answer":"","tests":[{"input":"","output":""}]}\n' "$WORK" > row
    mine() { pgrep -f "time.sleep.86400. # $WORK" || true; }
    sandboxes="full limits"
    if ! echo '{"completion":"print(1)","answer":"","tests":[{"input":"","output":"1"}]}' | "$TARE" verify code > /dev/null 2>&1; then
        sandboxes=limits
        skip_part "user namespaces cannot be had here"
    fi
    for sandbox in $sandboxes; do
        mkfifo open
        exec 3<> open
        "$TARE" verify code --timeout 80000 sandbox=$sandbox wall=86400 < open > /dev/null 2> err.txt 3>&- &
        engine=$!
        cat row >&3
        until_ '[ -n "$(mine)" ]' && ok || bad "code, $sandbox: the program does not begin: $(cat err.txt)"
        kill -9 $engine
        { wait $engine || true; } 2> /dev/null
        exec 3>&-
        rm open
        until_ '[ -z "$(mine)" ]' && ok || { bad "code, $sandbox: the program outlived tare"; kill -9 $(mine); }
    done
fi
done_
