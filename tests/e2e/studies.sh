#!/usr/bin/env bash
# Checks planned studies: tare sweep --plan prints the number of seeds that a difference needs and
# the intervals that exclude 0; --until-decided stops when all do; tare report compares two studies.
. "$(dirname "$0")/common.inc"
tiny_config
easy_judge
sed -i 's/^steps = 12/steps = 10/' tiny.ini
"$TARE" -q sft sft.ini > /dev/null 2> err.txt || { bad "sft: $(cat err.txt)"; done_; exit 1; }
study() { # NAME AXIS
    { cat tiny.ini; printf '[sweep]\nname = %s\nmetric = %s\nbaseline = %s\nrun.seed = %s\n%s\n' "$@"; } > "$1.ini"
}
study lr lr:last train.lr=1e-3 1..8 'train.lr = 1e-3, 5e-4'
"$TARE" sweep lr.ini train.steps=1 eval.before=false --until-decided sweep.concurrent=1 > lr.md 2> lr.err && ok || bad "--until-decided: $(cat lr.err)"
# Two rates differ equally in every seed: five pairs decide it, and no sixth seed is run.
grep -q 'every difference is decided; 6 cells are not run' lr.err && ok || bad "not stopped after five pairs: $(cat lr.err)"
grep -q '| lr 0.0005 | 5 of 8 |\|| lr 5e-4 | 5 of 8 |' lr.md && ok || bad "the table: $(cat lr.md)"
"$TARE" sweep lr.ini train.steps=1 eval.before=false --plan --difference 1e-4 > plan.md 2> err.txt && ok || bad "--plan: $(cat err.txt)"
grep -q '| 5 | -0.0005 | 0.0000 | -0.0005 to -0.0005 | below the baseline | 2 | 2 |' plan.md && ok || bad "the plan: $(cat plan.md)"
"$TARE" sweep lr.ini train.steps=1 eval.before=false --plan > plan.md 2> err.txt && ok || bad "--plan: $(cat err.txt)"
grep -q 'seeds for' plan.md && bad "seeds that were not requested" || ok

for name in first second; do study $name reward/mean:tail estimator.plugin=grpo 1..3 'estimator.plugin = grpo, rloo, dr_grpo'; done
"$TARE" -q sweep first.ini --plan --difference 0.1 > plan.md 2> err.txt && ok || bad "--plan without runs: $(cat err.txt)"
[ "$(grep -c '| 0 | - | - | - | open | - | - |' plan.md)" = 2 ] && ok || bad "the plan without runs: $(cat plan.md)"
for name in first second; do "$TARE" -q sweep $name.ini > $name.md 2> err.txt && ok || bad "$name: $(cat err.txt)"; done
"$TARE" -q sweep first.ini --plan --difference 0.1 --power 0.9 --alpha 0.01 > plan.md 2> err.txt && ok || bad "--plan: $(cat err.txt)"
grep -q 'no bound yet | open | [0-9]* | [0-9]* |' plan.md && ok || bad "the plan of three seeds: $(cat plan.md)"
grep -q 'at 0.01 detects a mean difference of 0.1 with probability 0.9' plan.md && ok || bad "the note: $(cat plan.md)"
for wrong in '--difference 0' '--power 1' '--alpha 0' '--difference'; do
    # shellcheck disable=SC2086 # an option and its value
    "$TARE" sweep first.ini --plan $wrong > out.txt 2> err.txt && bad "$wrong was accepted" || ok
done
sed '/^baseline/d' first.ini > none.ini
"$TARE" sweep none.ini --plan > out.txt 2> err.txt && bad "a plan without a baseline was accepted" || ok
grep -q 'name one: --baseline key=value' err.txt && ok || bad "no baseline: $(cat err.txt)"
"$TARE" sweep none.ini --until-decided > out.txt 2> err.txt && bad "--until-decided without a baseline was accepted" || ok
grep -q -- '--until-decided needs a baseline; set --baseline key=value' err.txt && ok || bad "no baseline to decide by: $(cat err.txt)"

"$TARE" -q report runs/first runs/second -o both.html 2> err.txt && ok || bad "report: $(cat err.txt)"
for text in 'Studies side by side' 'second less first' '<td>+0.0000</td>' 'Studies together' 'interquartile mean' "Kendall's tau-b" 'first and second 1.00\|first and second none' \
    'Performance profile'; do
    grep -q -- "$text" both.html && ok || bad "the report of two studies lacks '$text'"
done
"$TARE" -q report runs/first -o one.html 2> err.txt && ok || bad "report: $(cat err.txt)"
grep -q 'Studies side by side' one.html && bad "a single study has a second one next to it" || ok
done_
