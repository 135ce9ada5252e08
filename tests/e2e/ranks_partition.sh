#!/usr/bin/env bash
# The network between ranks goes down in the middle of a step and of a checkpoint, in both
# directions and in one. Checks that it is found after some seconds of silence, long before
# dist.timeout_s, with one message; no process remains; and --resume continues on another number of
# ranks, bit-identically. A link that returns soon is waited for. All connections between ranks go
# through a proxy (tests/faults/proxy.py), which any user may stop.
. "$(dirname "$0")/proxy.inc"
STEPS=6
KEYS=(checkpoint.every=2)
proxy_start
whole

# A rank without messages from rank 0 waits two seconds for mpirun to end it before it reports, too.
# On a busy machine mpirun may take longer, so the case is repeated, twice at most.
cut_link() { # as cut_once
    local i
    for i in 1 2 3; do
        rm -rf "$1"
        cut_once "$@"
        [ "$(messages first.txt)" -gt 1 ] || return 0
        echo "$1: more than one message: $i of 3 times"
    done
    bad "$1: $(cat first.txt)"
}
# cut_once NAME DIRECTIONS RANK STAGE STEP BACK RESUMED: cuts the link when RANK reaches STAGE of
# STEP (a checkpoint's STAGE names its step), and restores it after BACK seconds (never: not at
# all). Then resumes on RESUMED ranks.
cut_once() {
    local name=$1 directions=$2 rank=$3 stage=$4 step=$5 back=$6 n=$7 status=0 pid who began
    TARE_FAULT=rank=$rank,stage=$stage,step=$step,kind=freeze job 2 run.dir="$name" > out.txt 2> err.txt &
    pid=$!
    who=$(frozen) || { bad "$name: does not reach $stage of step $step: $(tail -2 err.txt)"; kill $pid; wait $pid; return; }
    began=$SECONDS
    echo "$directions" > cut
    kill -CONT "$who"
    if [ "$back" != never ]; then
        sleep "$back"
        rm cut
    fi
    { wait $pid || status=$?; } 2> /dev/null
    cp err.txt first.txt
    echo "$name: exit status $status after $((SECONDS - began)) s: $(cat err.txt)"
    rm -f cut
    [ "$(left_behind)" = 0 ] && ok || bad "$name: a process remains"
    # On a very busy machine one second of silence may become seven, which ends the job as if the
    # link had stayed down.
    if [ "$back" = never ] || [ $status != 0 ]; then
        [ $status != 0 ] && [ $status != 124 ] && [ $((SECONDS - began)) -lt 300 ] && ok || bad "$name: exit status $status after $((SECONDS - began)) s"
        [ "$(messages err.txt)" -ge 1 ] && ok || bad "$name: no message: $(cat err.txt)"
        grep -E "^tare: rank [01] \(host .*\) failed in .* of step [0-9]*: (nothing has been heard from it|it has heard nothing from rank 0) for 7 s .*; the job ends on all ranks, --resume" err.txt > found.txt && ok ||
            bad "$name: the message does not name it: $(cat err.txt)"
        job "$n" run.dir="$name" --resume > out.txt 2> err.txt && ok || bad "$name: does not continue on $n ranks: $(tail -2 err.txt)"
    fi
    same "$name" && ok || bad "$name: the weights differ"
    "$TARE" -q reproduce "$name" > out.txt 2>&1 && ok || bad "$name: reproduce: $(tail -2 out.txt)"
}
cut_link step "" 1 update 3 never 3
cut_link checkpoint "" 1 checkpoint 4 never 1
cut_link up up 1 rollout 3 never 1
cut_link down down 1 update 5 never 3
cut_link back "" 1 update 3 1 2
# The checks find a link that does not go down (the proxy does not know this direction), and other
# weights.
KEYS+=(run.seed=2)
planted 'no cut' cut_once planted nowhere 1 update 3 never 1
grep -q '^FAILED: planted: exit status 0' planted.txt && grep -q '^FAILED: planted: the weights differ' planted.txt && ok || bad "planted: $(grep FAILED planted.txt)"
done_
