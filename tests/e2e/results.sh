#!/usr/bin/env bash
# Checks that the tables of docs/results/which-estimator.md and as-trl.md follow from their CSV files, and
# that a changed number in either, or in the figure, is found. A seed counts when every arm has finished
# it. The study's configurations are complete.
. "$(dirname "$0")/common.inc"
STUDY=configs/studies/which
mkdir -p "$STUDY" docs/results
cp "$SOURCE/$STUDY/tables.py" "$STUDY"
cp "$SOURCE"/docs/results/which-estimator* docs/results
copies=$PWD
check() { # STATUS MESSAGE
    local got=0
    python3 "$copies/$STUDY/tables.py" --check > out.txt 2>&1 || got=$?
    [ $got = "$1" ] && ok || bad "$2: status $got, expected $1: $(cat out.txt)"
}
cell() { # STUDY ESTIMATOR SEED LAST-STEP: a run of eight steps
    local run=runs/which-$1/$2_seed-$3
    mkdir -p "$run"
    printf '[train]\nsteps = 8\nlr = 0.001\nmax_grad_norm = 1\n[run]\nseed = %s\n[estimator]\nplugin = %s\n' "$3" "$2" > "$run/config.ini"
    for step in $(seq "$4"); do printf '{"step":%s,"reward/all_wrong_groups":0.5,"grad_norm":2,"eval/reward":0.25}\n' "$step"; done > "$run/metrics.jsonl"
}
if has_python; then
    check 0 "the page and its files"
    page=docs/results/which-estimator.md
    cp $page page.md
    sed 's/| grpo: mean | 0\./| grpo: mean | 1./' page.md > $page
    check 1 "a number changed in the page"
    cp page.md $page
    sed -i '2s/,101,,0\./,101,,1./' docs/results/which-estimator.csv
    check 1 "a number changed in the file"
    cp "$SOURCE"/docs/results/which-estimator.csv docs/results
    sed -i 's/ r="4"/ r="5"/' docs/results/which-estimator.svg
    check 1 "the figure changed"

    # Only seeds that every arm has finished count, and only studies with five of them.
    for seed in 1 2 3 4 5 6; do cell toy grpo $seed 8; done
    for seed in 1 2 3 4 5; do cell toy rloo $seed 8; done
    cell toy rloo 6 7 # stopped a step early
    for seed in 1 2 3 4; do cell few grpo $seed 8; done
    printf '{"cells":[{"name":"grpo_seed-1"},{"name":"rloo_seed-1"}]}' > runs/which-toy/sweep.json
    printf '{"cells":[{"name":"grpo_seed-1"}]}' > runs/which-few/sweep.json
    python3 "$STUDY/tables.py" collect runs > out.txt 2>&1 && [ "$(cut -d, -f1,2,5 docs/results/which-estimator.csv | tr '\n' ' ')" = \
        "study,arm,seed toy,grpo,1 toy,grpo,2 toy,grpo,3 toy,grpo,4 toy,grpo,5 toy,rloo,1 toy,rloo,2 toy,rloo,3 toy,rloo,4 toy,rloo,5 " ] && ok ||
        bad "finished seeds: $(cat out.txt docs/results/which-estimator.csv)"
fi
if has_python; then
    STUDY=configs/studies/as-trl
    mkdir -p "$STUDY"
    cp "$SOURCE/$STUDY/tables.py" "$STUDY"
    cp "$SOURCE"/docs/results/as-trl* docs/results
    check 0 "as-trl: the page and its files"
    sed -i '2s/,0\.8/,0.9/' docs/results/as-trl.csv
    check 1 "as-trl: a number changed in the file"
    cp "$SOURCE"/docs/results/as-trl.csv docs/results
    sed -i 's/opacity="0.2"/opacity="0.3"/' docs/results/as-trl.svg
    check 1 "as-trl: the figure changed"
fi
for arm in grpo dr_grpo dapo gspo; do # their model and rows are made by run.sh
    "$TARE" config dump "$SOURCE/configs/studies/as-trl/$arm.ini" > out.txt 2> err.txt && ok || bad "as-trl, $arm: $(cat err.txt)"
done
STUDY=configs/studies/which
for file in "$SOURCE/$STUDY"/*.ini; do
    name=$(basename "$file" .ini)
    case $name in arms | smollm2) continue ;; esac # no separate task; needs files
    "$TARE" sweep "$file" --dry-run > out.txt 2> err.txt && [ "$(wc -l < out.txt)" -ge 20 ] && ok || bad "$name: $(tail -n 3 err.txt)"
done
done_
