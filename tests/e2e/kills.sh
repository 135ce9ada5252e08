#!/usr/bin/env bash
# Kills training, supervised training and evaluation at random times, stops them, and runs them with
# a clock that jumps (tests/soak/kills.sh, a few jobs). Each ends with the results of an undisturbed
# job; no check depends on the time. A changed number must be found.
. "$(dirname "$0")/common.inc"
export TMPDIR=$WORK
kills() { bash "$SOURCE/tests/soak/kills.sh" "$(dirname "$TARE")" 1000 "$1" > out.txt 2>&1; }
KILLS_JOBS="train sft eval" KILLS_RUNS=3 kills 1 && ok || bad "$(tail -5 out.txt)"
grep '^3 jobs (3 ended as the undisturbed ones)' out.txt && ok || bad "$(tail -1 out.txt)"
KILLS_JOBS=train KILLS_RUNS=1 KILLS_PLANT=1 kills 2 && bad "the planted change was not found" || ok
grep '^BROKEN: ' out.txt > found.txt && ok || bad "$(tail -1 out.txt)"
done_
