#!/usr/bin/env bash
# One bit of a message between ranks is turned on its way (tests/faults/proxy.py): MPI over TCP gives no sums of its own. Whichever long message it is (the packed batch, gradients on
# their way to their owners, weights that are gathered), it is found in that step, before it is learnt from, and named; --resume goes on to the bits of a run without it.
. "$(dirname "$0")/proxy.inc"
easy_judge
STEPS=4
KEYS=(checkpoint.every=1 checkpoint.keep=0 data.eval= eval.before=false eval.after=false)
proxy_start
whole
found=0
# flipped_at AFTER [LEFT]: the bit of the long message after so many bytes; LEFT: none is turned
flipped_at() {
    local after=$1 status=0
    rm -rf flipped run
    TARE_FAULT=rank=1,stage=rollout,step=2,kind=freeze job 2 run.dir=run > out.txt 2> err.txt &
    pid=$!
    who=$(frozen) || { bad "does not come to step 2: $(tail -2 err.txt)"; kill $pid; wait $pid; return; }
    echo "$@" > flip.new
    mv flip.new flip
    kill -CONT "$who"
    { wait $pid || status=$?; } 2> /dev/null
    echo "after $after bytes: exit status $status: $(cat err.txt)"
    rm -f flip
    [ -e flipped ] || return 0 # it ended before
    found=$((found + 1))
    [ "$(left_behind)" = 0 ] && ok || bad "after $after: a process is left"
    [ $status = 1 ] && [ "$(messages err.txt)" = 1 ] && ok || bad "after $after: exit status $status: $(cat err.txt)"
    grep -qE 'of step [23]: |^tare: step [23], ' err.txt && grep -qE '(gradients|weights) that rank [01] sent to rank [01] were changed in transit|unit [0-9]* of the weights arrived with digest|packed batch: changed in transit|the weights that rank 1 samples from .* are not those of rank 0' err.txt && ok ||
        bad "after $after: not named: $(cat err.txt)"
    [ ! -e "run/checkpoints/step-00000$STEPS" ] && ok || bad "after $after: the run went on"
    job 2 run.dir=run --resume > out.txt 2> err.txt && ok || bad "after $after: does not go on: $(tail -2 err.txt)"
    same run && ok || bad "after $after: the weights differ"
    "$TARE" -q reproduce run > out.txt 2>&1 && ok || bad "after $after: reproduce: $(tail -2 out.txt)"
}
for after in 0 140000 350000 550000 850000 1000000 1150000; do flipped_at $after; done # bytes of long messages before the one that is changed; a step has twice as many as the last
[ $found -ge 4 ] && ok || bad "only $found messages were changed"
# the checks find a bit that is turned and that nobody sees: the proxy says that it has, and has not
planted 'a change that nobody sees' flipped_at 0 left
grep -q '^FAILED: after 0: exit status 0' planted.txt && grep -q '^FAILED: after 0: the run went on' planted.txt && ok || bad "planted: $(grep FAILED planted.txt)"
done_
