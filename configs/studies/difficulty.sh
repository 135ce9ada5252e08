#!/bin/sh
# Evaluates the checkpoints of the difficulty study: buckets from the model before training, the same for all.
#   tare sweep configs/studies/difficulty.ini && sh configs/studies/difficulty.sh && tare report runs/study-difficulty/grpo_seed-1
# TARE: the program. SAMPLES: per question, for the buckets and for each checkpoint.
set -eu
TARE=${TARE:-build/tare}
SAMPLES=${SAMPLES:-8}
CONFIG=${CONFIG:-configs/studies/difficulty.ini}
STUDY=${STUDY:-runs/study-difficulty}
for run in "$STUDY"/*_seed-*; do
    seed=${run##*_seed-}
    base=$(sed -n 's/^path = //p' "$run/config.ini" | head -1)
    evaluate() { "$TARE" -q eval "$CONFIG" "run.seed=$seed" "run.dir=$run" "eval.samples=$SAMPLES" eval.name=heldout "$@" > /dev/null; }
    [ -f "$STUDY/base-$seed/questions.jsonl" ] || evaluate "model.path=$base" "eval.out=$STUDY/base-$seed"
    evaluate "model.path=$base" "eval.out=$run/eval/step-000000" "eval.difficulty=$STUDY/base-$seed/questions.jsonl"
    for checkpoint in "$run"/checkpoints/step-*; do
        evaluate "model.path=$checkpoint" "eval.out=$run/eval/${checkpoint##*/}" "eval.difficulty=$STUDY/base-$seed/questions.jsonl"
    done
    echo "$run"
done
