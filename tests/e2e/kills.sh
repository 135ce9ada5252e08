#!/usr/bin/env bash
# Training, supervised training and evaluation are killed at any moment, stopped, and run with a clock that jumps (tests/soak/kills.sh, a few jobs): each ends
# with what one that nobody disturbed has. What holds does not depend on the moment. A number that was changed is found.
. "$(dirname "$0")/common.inc"
export TMPDIR=$WORK
kills() { bash "$SOURCE/tests/soak/kills.sh" "$(dirname "$TARE")" 1000 "$1" > out.txt 2>&1; }
KILLS_JOBS="train sft eval" KILLS_RUNS=3 kills 1 && ok || bad "$(tail -5 out.txt)"
grep '^3 jobs (3 ended as the undisturbed ones)' out.txt && ok || bad "$(tail -1 out.txt)"
KILLS_JOBS=train KILLS_RUNS=1 KILLS_PLANT=1 kills 2 && bad "what is planted is not found" || ok
grep '^BROKEN: ' out.txt > found.txt && ok || bad "$(tail -1 out.txt)"
done_
