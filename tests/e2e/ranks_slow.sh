#!/usr/bin/env bash
# Checks a rank that is slow but not lost. Stopped for three seconds in a step, and then stopped and
# continued again and again, it is waited for, and the result is bit-identical. A rank that stays
# stopped counts as lost after seven seconds of silence, as docs/ranks.md states; the job ends, and
# --resume is bit-identical.
. "$(dirname "$0")/ranks.inc"
export TARE_FAULT=
tiny_config
easy_judge
STEPS=4
job() { # RANKS [key=value ...]
    local n=$1
    shift
    timeout 600 $MPIRUN -x TARE_FAULT -n "$n" "$TARE" -q train tiny.ini log.progress=none log.rollouts=true train.steps=$STEPS checkpoint.every=1 checkpoint.keep=0 data.eval= eval.before=false \
        eval.after=false "$@"
}
same() { (cd "$1" && find checkpoints rollouts -type f ! -name complete.json | sort | xargs sha256sum) > got.txt && cmp -s want.txt got.txt; }
"$TARE" sft sft.ini 2> /dev/null
job 2 run.dir=whole > out.txt 2> err.txt || { bad "two ranks: $(tail -2 err.txt)"; done_; exit 1; }
same whole || cp got.txt want.txt
gone='^tare: rank 1 (host .*) failed in .* of step [0-9]*: nothing has been heard from it for 7 s .*; the job ends on all ranks, --resume'

# begun RUN: starts the job in the background, as `pid`, and waits until rank 1 has stopped itself
# in the second step, as `who`.
begun() {
    TARE_FAULT=rank=1,stage=update,step=2,kind=freeze job 2 run.dir="$1" > out.txt 2> err.txt &
    pid=$!
    who=$(frozen)
}
# slowed: stops rank 1 for three seconds, then lets it run for a tenth of its time until the job has
# ended.
slowed() {
    rm -rf slow
    begun slow || { bad "slow: rank 1 does not reach step 2: $(tail -2 err.txt)"; return 1; }
    sleep 3
    local i
    kill -CONT "$who"
    for ((i = 0; i < 30; i++)); do
        sleep 0.02
        kill -STOP "$who" 2> /dev/null || break
        sleep 0.18
        kill -CONT "$who" 2> /dev/null || break
    done
    status=0
    { wait $pid || status=$?; } 2> /dev/null
    slept=$i
}
# On a very busy machine three seconds may become seven, and the rank counts as lost: then the case
# is repeated, twice at most.
status=1 slept=0
for try in 1 2 3; do
    slowed || break
    echo "slow: exit status $status, stopped $slept times: $(cat err.txt)"
    [ $status != 0 ] && grep -q "$gone" err.txt || break
done
[ "$status" = 0 ] && [ ! -s err.txt ] && ok || bad "slow: exit status $status: $(tail -2 err.txt)"
[ "$slept" -ge 3 ] && ok || bad "slow: stopped $slept times"
same slow && ok || bad "slow: not bit-identical: $(diff want.txt got.txt | head -3)"

# Stopped for good: the same, but the rank is never continued.
status=0
if begun gone; then
    { wait $pid || status=$?; } 2> /dev/null
    [ $status != 0 ] && [ $status != 124 ] && ok || bad "lost: exit status $status"
    grep -q "$gone" err.txt && [ "$(messages err.txt)" = 1 ] && ok || bad "lost: not named once: $(cat err.txt)"
    [ "$(left_behind)" = 0 ] && ok || bad "lost: a process remains"
    job 2 run.dir=gone --resume > out.txt 2> err.txt && ok || bad "lost: does not continue: $(tail -2 err.txt)"
    same gone && ok || bad "lost: not bit-identical: $(diff want.txt got.txt | head -3)"
else
    bad "lost: rank 1 does not reach step 2: $(tail -2 err.txt)"
fi
done_
