#!/bin/sh
# The figure by difficulty: for each seed, both methods' checkpoints on buckets from the model before training.
#   tare sweep configs/studies/difficulty.ini && sh configs/studies/difficulty.sh
# TARE: the program. SAMPLES: answers per question at each checkpoint; ESTIMATE: answers per question
# that define the buckets.
set -eu
TARE=${TARE:-build/tare}
SAMPLES=${SAMPLES:-8}
ESTIMATE=${ESTIMATE:-16}
CONFIG=${CONFIG:-configs/studies/difficulty.ini}
STUDY=${STUDY:-runs/study-difficulty}
for first in "$STUDY"/*grpo_seed-*; do
    seed=${first##*_seed-}
    set --
    for run in "$STUDY"/*_seed-"$seed"; do set -- "$@" --checkpoints "$run"; done
    "$TARE" -q eval "$CONFIG" "$@" --estimate-samples "$ESTIMATE" "run.seed=$seed" "eval.samples=$SAMPLES" eval.name=heldout
    echo "$(dirname "$first")/$(basename "$first")/eval/heldout/difficulty.html"
done
