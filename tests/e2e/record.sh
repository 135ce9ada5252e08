#!/usr/bin/env bash
# Checks records/quickstart as a stranger would: its files are intact, steps are computed again, and
# the whole run is made again on this machine, with the same metrics and weights.
. "$(dirname "$0")/common.inc"
RECORD=$SOURCE/records/quickstart
"$TARE" reproduce "$RECORD" > out.txt 2>&1 && grep -q 'quickstart: intact$' out.txt && ok || bad "the record: $(cat out.txt)"
mkdir copy && cp -r "$RECORD"/. copy
sed -i '150s/"reward\/mean":0\./"reward\/mean":1./' copy/metrics.jsonl
"$TARE" reproduce copy > out.txt 2>&1 && bad "a changed line was not found" || ok
"$TARE" -q sft "$SOURCE/configs/quickstart-phase2.ini" run.seed=1 > out.txt 2>&1 && ok || bad "the warm start: $(cat out.txt)"
"$TARE" reproduce "$RECORD" --steps 1-3 model.path=runs/quickstart-base-1 > out.txt 2>&1 && grep -q 'recomputed, bit-identical (3 metrics' out.txt && ok || bad "three steps: $(cat out.txt)"
"$TARE" -q train "$SOURCE/configs/quickstart.ini" run.dir=again log.rollouts=false > out.txt 2>&1 && ok || bad "the run: $(cat out.txt)"
"$TARE" diff "$RECORD" again > out.txt 2>&1 && ok || bad "the metrics differ: $(head -20 out.txt)"
cmp -s "$RECORD.safetensors" again/checkpoints/step-000300/model.safetensors && ok || bad "the weights differ"
done_
