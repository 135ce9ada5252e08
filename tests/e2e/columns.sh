#!/usr/bin/env bash
# Checks an estimator that reads fields of the data set's rows as numbers: in training, on two
# ranks, killed and resumed, and recomputed from the records. A row whose field is not a number is
# refused with its line before the run starts.
. "$(dirname "$0")/common.inc"
tiny_config
"$TARE" sft sft.ini 2> /dev/null || { bad "the model was not made"; done_; }
easy_judge
for i in $(seq 1 40); do # some rows have a level, others a weight, the rest neither
    case $((i % 4)) in 0) fields='' ;; 1) fields=',"level":'$((i % 5)) ;; 2) fields=',"weight":0.5,"level":null' ;; *) fields=',"level":1.25,"weight":true' ;; esac
    printf '{"id":"r%d","question":"%d+1=","answer":"%d","subject":"s"%s}\n' "$i" "$i" $((i + 1)) "$fields"
done > rows.jsonl
common="train.steps=5 train.lr=5e-3 log.progress=none log.rollouts=true data.train=rows.jsonl data.eval= estimator.plugin=$FIXTURES/columns.so"
train() { "$TARE" train tiny.ini $common "$@" > /dev/null 2>> log.txt; }
weights() { cksum < "$1/checkpoints/$(ls "$1/checkpoints" | tail -1)/model.safetensors"; }
state() { cksum < "$1/checkpoints/$(ls "$1/checkpoints" | tail -1)/training.state"; }
train run.dir=whole || { bad "the run failed: $(tail -n 2 log.txt)"; done_; }
train run.dir=one estimator.columns.by=weight || bad "one column: $(tail -n 2 log.txt)"
[ "$(weights whole)" != "$(weights one)" ] && ok || bad "the level makes no difference"
# Every advantage follows from its row.
checked "the advantages do not follow from the rows" <<'PY'
import glob, json
rows = {r["id"]: r for r in map(json.loads, open("rows.jsonl"))}
of = lambda row, name: 7 if row.get(name) is None else float(row[name])
seen = set()
for file in glob.glob("whole/rollouts/*.jsonl"):
    for line in map(json.loads, open(file)):
        row = rows[line["id"]]
        assert line["advantage"] == line["reward"] * (1 + 10 * of(row, "level") + 1000 * of(row, "weight")), (line, row)
        seen.add(("level" in row, row.get("weight")))
assert len(seen) == 4, seen
PY
train run.dir=ranks dist.ranks=2 || bad "on two ranks: $(tail -n 2 log.txt)"
[ "$(weights whole)" = "$(weights ranks)" ] && ok || bad "two ranks: the weights differ"
diff -r whole/estimator ranks/estimator > difference && ok || bad "two ranks: the state differs: $(head -n 3 difference)"
killed_at update 4 "$TARE" train tiny.ini $common run.dir=broken && ok || bad "not killed"
train run.dir=broken --resume || bad "not resumed: $(tail -n 2 log.txt)"
[ "$(weights whole)" = "$(weights broken)" ] && [ "$(state whole)" = "$(state broken)" ] && ok || bad "not bit-identical after resuming"
"$TARE" reproduce whole > out.txt 2>&1 && ok || bad "reproduce: $(tail -n 2 out.txt)"
"$TARE" estimate --replay whole --step 3 > out.txt 2> err.txt && ok || bad "tare replay: $(tail -n 1 err.txt)"
sed -i 's/"id":"r7"/"id":"seven"/; s/"id":"r\([0-9]*\)"/"id":"s\1"/' rows.jsonl
status=0
"$TARE" estimate --replay whole --step 3 > out.txt 2> err.txt || status=$?
[ $status != 0 ] && grep -q "has no row with the prompt uid .*has the file changed since the run" err.txt && ok || bad "tare replay with other rows: status $status: $(tail -n 1 err.txt)"
# `config check` and `train` refuse it, and `train` has written nothing.
sed -i '7s/"level":1.25/"level":"hard"/' rows.jsonl
for verb in "config check" train; do
    status=0
    "$TARE" $verb tiny.ini $common run.dir=none > out.txt 2> err.txt || status=$?
    [ $status = 3 ] && grep -q 'rows.jsonl:7: "level" is a text, but the estimator reads it as a number: write a number, or remove it' err.txt && [ ! -e none ] && ok ||
        bad "tare $verb with a text: status $status: $(tail -n 1 err.txt)"
done
done_
