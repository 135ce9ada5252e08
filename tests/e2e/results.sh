#!/usr/bin/env bash
# The tables of docs/results/which-estimator.md are those that its CSV files give, and a number that was changed in either is found; the study's configurations are
# whole.
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
if has_python; then
    check 0 "the page and its files"
    page=docs/results/which-estimator.md
    cp $page page.md
    sed 's/| grpo: mean | 0\./| grpo: mean | 1./' page.md > $page
    check 1 "a number changed in the page"
    cp page.md $page
    sed -i '2s/,101,0\./,101,1./' docs/results/which-estimator.csv
    check 1 "a number changed in the file"
fi
for file in "$SOURCE/$STUDY"/*.ini; do
    name=$(basename "$file" .ini)
    case $name in arms | smollm2) continue ;; esac # no task of its own; needs files
    "$TARE" sweep "$file" --dry-run > out.txt 2> err.txt && [ "$(wc -l < out.txt)" -ge 20 ] && ok || bad "$name: $(tail -n 3 err.txt)"
done
done_
