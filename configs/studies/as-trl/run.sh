#!/bin/sh
# The study of docs/results/as-trl.md, run from the root of the tree. After an interruption the same
# command continues: finished trainings are not repeated.
#   PEERS=PYTHON sh configs/studies/as-trl/run.sh && python3 configs/studies/as-trl/tables.py collect runs
# PEERS: a Python with torch, transformers, trl and datasets. TARE: the program. TOGETHER: how many of TRL's
# trainings run at once (2), each on one thread.
set -eu
TARE=${TARE:-build/tare}
STUDY=configs/studies/as-trl
TOP=runs/as-trl
mkdir -p "$TOP"
[ -d runs/quickstart-base-1 ] || "$TARE" -q sft configs/quickstart-phase2.ini run.seed=1
[ -f "$TOP/train.jsonl" ] || "$TARE" -q data check builtin:arithmetic/train "write=$TOP/train.jsonl" > "$TOP/left-out.jsonl"

tare() {
    for arm in grpo dr_grpo dapo gspo; do
        echo "$(date +%T) tare, $arm" >&2
        "$TARE" -q sweep "$STUDY/$arm.ini" > /dev/null
    done
}
train() { # ARM SEED: a training with TRL, and its model's reward on the held-out questions
    out=$TOP/trl-$1/seed-$2
    [ ! -f "$out/eval/results.json" ] || return 0
    rm -rf "$out"
    mkdir -p "$out"
    OMP_NUM_THREADS=1 "$PEERS" bench/peers/trl_learn.py runs/quickstart-base-1 "$TOP/train.jsonl" "$1" "$2" 300 "$out" > "$out/output.txt" 2>&1
    "$TARE" -q eval "$STUDY/$1.ini" "model.path=$out" "run.seed=$2" "eval.out=$out/eval" > "$out/table.md"
}
queue() { # ARM SEEDS
    for seed in $(seq 1 "$2"); do echo "$1 $seed"; done
}
if [ $# = 2 ]; then
    train "$1" "$2"
else
    tare
    echo "$(date +%T) TRL" >&2
    { queue grpo 10 && queue dr_grpo 5 && queue dapo 5 && queue gspo 5; } | xargs -P "${TOGETHER:-2}" -L 1 sh "$0"
fi
