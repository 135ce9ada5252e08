#!/bin/sh
# The study of docs/results/which-estimator.md, run from the root of the tree. After an interruption the
# same command continues.
#   sh configs/studies/which/run.sh && python3 configs/studies/which/tables.py collect runs
# SmolLM2 needs a model, so it is a separate command:
#   tare sweep configs/studies/which/smollm2.ini model.path=FOLDER
# TARE: the program. Smaller studies are completed before more seeds begin. Progress and remaining time
# are printed on standard error.
set -eu
TARE=${TARE:-build/tare}
STUDY=configs/studies/which
study() {
    echo "$(date +%T) $1, seeds $2" >&2
    "$TARE" sweep "$STUDY/$1.ini" "sweep.run.seed=$2" > /dev/null
}
echo "$(date +%T) the models that training begins with" >&2
"$TARE" -q ladder format arithmetic rewrite bandit --seeds 1..1
study format 101..110
study format-control 101..105
study bandit 101..105
study rewrite 101..105
study cold 101..103
study format-unclipped 101..105
study arithmetic 101..105
study format-control 106..110
for task in bandit rewrite format-unclipped arithmetic; do study $task 106..110; done
study cold 104..110
for task in format bandit rewrite arithmetic; do study $task 111..120; done
