#!/usr/bin/env bash
# Runs every command of docs/writing-plugins.md as written, against an installed program; the first
# block has at most five commands.
source "$(dirname "$0")/common.inc"
build=${BUILD:-$(dirname "$TARE")}
for tool in make cmake cc; do command -v $tool > /dev/null || skip "$tool is missing"; done
cmake --install "$build" --prefix "$WORK/prefix" > install.log || { cat install.log; exit 1; }
unset TARE_PLUGIN_PATH TARE
PATH=$WORK/prefix/bin:$PATH
cp -r "$SOURCE/configs" .
awk '/^```sh$/ { n++; on = 1; next } /^```$/ { on = 0 } on { print > ("block" n) }' "$SOURCE/docs/writing-plugins.md"
[ -e block1 ] || bad "the document has no commands"
if [ "$(wc -l < block1)" -le 5 ]; then ok; else bad "more than five commands from nothing to a run"; fi
for block in block*; do
    if grep -q cpp "$block" && ! command -v c++ > /dev/null; then skip_part "$block: no C++ compiler"; continue; fi
    if grep -q python "$block" && ! command -v python3 > /dev/null; then skip_part "$block: python3 is not installed"; without_python=yes; continue; fi
    while IFS= read -r line; do
        if bash -c "$line" > log 2>&1 < /dev/null; then ok; else bad "$line: $(tail -n 5 log)"; fi
    done < "$block"
done
for run in trial half judged python; do
    [ "${without_python:-}" = "" ] || [ -e "runs/$run" ] || continue
    if [ "$(grep -c '"reward/mean"' runs/$run/metrics.jsonl)" = 10 ]; then ok; else bad "run $run did not make its ten steps"; fi
done
if grep -q '"name": *"mine"' runs/trial/manifest.json; then ok; else bad "the run did not use the new estimator"; fi
done_
