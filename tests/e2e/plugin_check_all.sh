#!/usr/bin/env bash
# Checks tare plugin check --all, which passes for every built-in plugin, rows of the user, and the
# messages for a name of another kind.
source "$(dirname "$0")/common.inc"
"$TARE" plugin check --all --only parameters > all.txt 2> err.txt && ok || bad "check --all: $(grep -v ^pass all.txt) $(cat err.txt)"
grep -q '^[0-9]* plugins, [0-9]* skipped, 0 failed$' all.txt && [ "$(grep -c ^pass all.txt)" -gt 50 ] && ok || bad "check --all: $(cat all.txt)"
"$TARE" plugin check --all > all.txt 2> err.txt && ok || bad "check --all: $(grep -v ^pass all.txt) $(cat err.txt)"
"$TARE" plugin check --all grpo > /dev/null 2>&1 && bad "--all with a name was accepted" || ok
# Rows of the user replace the example's.
echo '{"regex":"(","question":"q"}' > rows.jsonl
"$TARE" plugin check regex rows=rows.jsonl --only speed > out.txt 2>&1 && bad "a row with an invalid pattern was not used" || ok
printf '%s\n' '{"regex":"answer is (\\d+)","question":"q"}' '' '{"regex":"42"}' > rows.jsonl
"$TARE" plugin check regex rows=rows.jsonl > out.txt 2>&1 && ok || bad "rows: $(grep -v ^pass out.txt)"
printf '{}\n[1]\n' > wrong.jsonl
"$TARE" plugin check regex rows=wrong.jsonl > out.txt 2>&1 && bad "a list was taken as a row" || grep -q 'wrong.jsonl:2: must be a JSON object' out.txt && ok || bad "wrong row: $(cat out.txt)"
"$TARE" plugin check kmeans > out.txt 2>&1 && bad "kmeans without its file passed" || grep -q 'path is missing' out.txt && ok || bad "kmeans: $(cat out.txt)"
tiny_config
for case in 'estimator.plugin=gspo|gspo is an objective: objective.plugin=gspo' 'estimator.plugin=kmeans|kmeans is a codebook: codebook.plugin=kmeans' \
    'codebook.plugin=hashed|hashed is an encoder: encoder.plugin=hashed' \
    'verifier.plugins=grpo|grpo is an estimator: estimator.plugin=grpo' 'objective.plugin=minilm|minilm is an encoder: encoder.plugin=minilm'; do
    "$TARE" config check tiny.ini "${case%%|*}" > out.txt 2>&1 && bad "${case%%|*} was accepted" || grep -q "${case#*|}" out.txt && ok || bad "${case%%|*}: $(cat out.txt)"
done
done_
