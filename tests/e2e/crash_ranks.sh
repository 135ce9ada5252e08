#!/usr/bin/env bash
# Checks that a run of two ranks continues on one, two and three ranks, with bit-identical results,
# after a crash (crash.inc) of all machines at once or of one rank's host alone.
. "$(dirname "$0")/ranks.inc"
. "$(dirname "$0")/crash.inc"
[ "$(id -u)" = 0 ] && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
tiny_config
"$TARE" -q sft sft.ini 2> /dev/null
train=("$TARE" -q train tiny.ini log.progress=none log.rollouts=true eval.before=false eval.after=false train.steps=4 checkpoint.every=2 checkpoint.keep=1 dist.ranks=2 run.dir=fresh/run)
for rules in strict ext4; do
    rm -rf fresh
    mkdir fresh
    tried "two ranks, $rules" --rules $rules --most $(((N + 1) / 2)) --root fresh --run run -- "${train[@]}"
done
rm -rf fresh
mkdir fresh
found "a rank does not sync its slice of the optimizer" --plant 'step-0+4.*/optimizer-00001' --root fresh --run run -- "${train[@]}"
done_
