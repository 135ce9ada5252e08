#!/bin/sh
# The measurements at fixed weights for docs/results/which-estimator.md: estimators at five checkpoints
# of GRPO's run, and the lengths of the updates of three runs. Run it from the root of the tree after
# run.sh, which makes the initial model. Writes about 1.2 GB of checkpoints.
set -eu
TARE=${TARE:-build/tare}
CONFIG=configs/studies/which/format.ini
run() { # NAME key=value ...
    name=$1
    shift
    [ -d "runs/p-$name/checkpoints/step-000300" ] || "$TARE" -q train $CONFIG run.seed=1 "run.dir=runs/p-$name" "estimator.plugin=$name" checkpoint.every=1 checkpoint.keep=400 "$@"
}
run grpo
run bv_blend estimator.bv_blend.mapping=linear
run eb_blend estimator.eb_blend.scale=cluster
set --
for step in 1 50 100 200 300; do set -- "$@" --from "runs/p-grpo@$step"; done
for name in grpo rloo dr_grpo maxrl james_stein quantile "bv_blend mapping=exp" "bv_blend mapping=reciprocal" "bv_blend mapping=linear" bv_beta "eb_blend scale=none" \
    "eb_blend scale=prompt" "eb_blend scale=cluster" "eb_blend scale=cluster prior=0.2 floor=0.02"; do set -- "$@" --estimator "$name"; done
"$TARE" variance $CONFIG "$@" --prompts 128 --rollouts 128 --groups 32 --warm 32 --batch 16 --group-sizes 8 -o runs/p-lab > runs/p-lab.md
python3 configs/studies/which/tables.py measured runs/p-lab/variance.jsonl
python3 configs/studies/which/tables.py norms runs/p-grpo runs/p-bv_blend runs/p-eb_blend
