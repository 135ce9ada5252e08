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
checks() { # STATUS MESSAGE PLUGIN
    local status=0
    TARE_PLUGIN_PATH=$PWD/path "$TARE" plugin check "$3" > out.txt 2>&1 || status=$?
    [ "$status" = "$1" ] && grep -q "$2" out.txt && ok || bad "check $3: status $status, expected $1: $(cat out.txt)"
}
# A file is opened in child processes only, also while its name is looked for: its constructor ends
# the process.
if command -v cc > /dev/null; then
    mkdir -p path/objectives
    printf '%s\n' '#include <unistd.h>' '__attribute__((constructor)) static void leave(void) { _exit(7); }' 'void *tare_plugin_v1(void) { return 0; }' > leaves.c
    cc -shared -fPIC -o path/objectives/leaves.so leaves.c
    checks 1 'ended the process with exit status 7' leaves
    checks 0 ' 0 failed' gspo
else
    skip_part "a plugin whose constructor ends the process: there is no C compiler"
fi
checks 1 "no plugin named 'gsop'; did you mean gspo" gsop
checks 1 "no plugin named 'nothing_like_it'" nothing_like_it
tiny_config
for case in 'estimator.plugin=gspo|gspo is an objective: objective.plugin=gspo' 'estimator.plugin=kmeans|kmeans is a codebook: codebook.plugin=kmeans' \
    'codebook.plugin=hashed|hashed is an encoder: encoder.plugin=hashed' \
    'verifier.plugins=grpo|grpo is an estimator: estimator.plugin=grpo' 'objective.plugin=minilm|minilm is an encoder: encoder.plugin=minilm'; do
    "$TARE" config check tiny.ini "${case%%|*}" > out.txt 2>&1 && bad "${case%%|*} was accepted" || grep -q "${case#*|}" out.txt && ok || bad "${case%%|*}: $(cat out.txt)"
done
done_
