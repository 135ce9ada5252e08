#!/usr/bin/env bash
# Checks that one flipped bit in a message between ranks is found (tests/faults/proxy.py); MPI over
# TCP has no checksums. Each long message is tried: the packed batch, gradients on their
# way to their owners, gathered weights. The error is found in that step, before it is learnt from,
# and is named. --resume ends bit-identical to an undisturbed run.
. "$(dirname "$0")/proxy.inc"
easy_judge
STEPS=4
KEYS=(checkpoint.every=1 checkpoint.keep=0 data.eval= eval.before=false eval.after=false)
proxy_start
whole
found=0
# flipped_at AFTER [LEFT]: flips a bit of the long message after that many bytes; LEFT: flips none.
flipped_at() {
    local after=$1 status=0
    rm -rf flipped run
    TARE_FAULT=rank=1,stage=rollout,step=2,kind=freeze job 2 run.dir=run > out.txt 2> err.txt &
    pid=$!
    who=$(frozen) || { bad "does not reach step 2: $(tail -2 err.txt)"; kill $pid; wait $pid; return; }
    echo "$@" > flip.new
    mv flip.new flip
    kill -CONT "$who"
    { wait $pid || status=$?; } 2> /dev/null
    echo "after $after bytes: exit status $status: $(cat err.txt)"
    rm -f flip
    [ -e flipped ] || return 0 # it ended before
    found=$((found + 1))
    [ "$(left_behind)" = 0 ] && ok || bad "after $after: a process remains"
    [ $status = 1 ] && [ "$(messages err.txt)" = 1 ] && ok || bad "after $after: exit status $status: $(cat err.txt)"
    grep -qE 'of step [23]: |^tare: step [23], ' err.txt && grep -qE '(gradients|weights) that rank [01] sent to rank [01] were changed in transit|unit [0-9]* of the weights arrived with digest|packed batch: changed in transit|the weights that rank 1 samples from .* are not those of rank 0' err.txt && ok ||
        bad "after $after: the message does not name it: $(cat err.txt)"
    [ ! -e "run/checkpoints/step-00000$STEPS" ] && ok || bad "after $after: the run went on"
    job 2 run.dir=run --resume > out.txt 2> err.txt && ok || bad "after $after: does not continue: $(tail -2 err.txt)"
    same run && ok || bad "after $after: the weights differ"
    "$TARE" -q reproduce run > out.txt 2>&1 && ok || bad "after $after: reproduce: $(tail -2 out.txt)"
}
# Bytes of long messages before the one that is changed; a step has twice as many as the last.
for after in 0 140000 350000 550000 850000 1000000 1150000; do flipped_at $after; done
[ $found -ge 4 ] && ok || bad "only $found messages were changed"
# The checks find a bit that is flipped without being noticed: the proxy reports a flip and does not
# make it.
planted 'an unnoticed change' flipped_at 0 left
grep -q '^FAILED: after 0: exit status 0' planted.txt && grep -q '^FAILED: after 0: the run went on' planted.txt && ok || bad "planted: $(grep FAILED planted.txt)"
done_
