#!/usr/bin/env bash
# The value of a secret parameter is nowhere in a run's folder, the run database, the output, a sweep
# or a report, in process and in worker processes, even if the plugin repeats it; a sweep over it is
# refused. The verifier's identity is in the manifest of both.
source "$(dirname "$0")/common.inc"
teller=${FIXTURES:?}/tells_secret.so
[ -e "$teller" ] || skip "the fixtures are not built"
export SECRET_WORD=open-sesame-4711
tiny_config
set -- verifier.plugins="$teller" verifier.tells_secret.word=SECRET_WORD train.steps=2 checkpoint.every=1
nowhere() { # WHAT
    if grep -rl "$SECRET_WORD" . > found.txt; then bad "$1: the secret is in $(tr '\n' ' ' < found.txt)"; else ok; fi
}
for isolate in thread process; do
    if "$TARE" train tiny.ini run.dir=$isolate verifier.isolate=$isolate "$@" > out.txt 2>&1; then ok; else bad "$isolate: $(tail -n 2 out.txt)"; fi
    grep -q 'asked with \*\*\*\*' out.txt && ok || bad "$isolate: the plugin's message is not there: $(tail -n 3 out.txt)"
    grep -q '"identity": "tells_secret/0.1.0 refuse=false judge-7"' $isolate/manifest.json && ok || bad "$isolate: the identity: $(grep identity $isolate/manifest.json)"
    nowhere "a run with verifier.isolate = $isolate"
done
# It is the value that the plugin got, and the variable's name that was recorded.
grep -rq SECRET_WORD thread/config.ini && grep -q '"verifier.tells_secret/bytes":16[,}.]\|"verifier/bytes":16[,}.]' thread/metrics.jsonl && ok || bad "the plugin did not get the secret"
"$TARE" train tiny.ini run.dir=thread "$@" train.steps=3 --resume --allow-change > out.txt 2>&1 && ok || bad "resume: $(tail -n 1 out.txt)"
"$TARE" report thread -o report.html > out.txt 2>&1 && ok || bad "report: $(tail -n 1 out.txt)"
"$TARE" verify "$teller" word=SECRET_WORD --explain > out.txt 2>&1 <<< '{"id":"a","completion":"x","answer":"x"}' || true
"$TARE" -v -v train tiny.ini run.dir=refused "$@" verifier.tells_secret.refuse=true > out.txt 2>&1 && bad "it was to be refused" || ok
grep -q 'no entry for \*\*\*\*' out.txt && ok || bad "the refusal: $(tail -n 2 out.txt)"
"$TARE" plugin check "$teller" word=SECRET_WORD > out.txt 2>&1 || true
nowhere "resume, report, verify, a refusal, plugin check"
# Two instances have a secret each, and a value in the variable's place is not repeated.
OTHER_WORD=another-word "$TARE" train tiny.ini run.dir=two "$@" verifier.plugins="$teller as first, $teller as second" verifier.first.word=SECRET_WORD \
    verifier.second.word=OTHER_WORD > out.txt 2>&1 && ok || bad "two instances: $(tail -n 1 out.txt)"
grep -q '"verifier.first/bytes":16[,}.]' two/metrics.jsonl && grep -q '"verifier.second/bytes":12[,}.]' two/metrics.jsonl && ok || bad "the secrets of two instances"
if "$TARE" train tiny.ini run.dir=value "$@" verifier.tells_secret.word="$SECRET_WORD" > out.txt 2>&1; then bad "a value was taken for a variable"; else ok; fi
grep -q 'must be the name of an environment variable' out.txt && ok || bad "message: $(tail -n 1 out.txt)"
nowhere "two instances and a value"
# A sweep over a secret is refused, by each name of the plugin and of the parameter.
for axis in tells_secret.word tells_secret.key; do
    printf 'include = tiny.ini\n[verifier]\nplugins = %s\n[verifier.tells_secret]\nword = SECRET_WORD\n[sweep]\nverifier.%s = SECRET_WORD, HOME\n' "$teller" "$axis" > sweep.ini
    if "$TARE" sweep sweep.ini > out.txt 2>&1; then bad "$axis was swept"; else ok; fi
    grep -q "sweep.verifier.$axis: the parameter holds a secret" out.txt && ok || bad "$axis: $(tail -n 1 out.txt)"
done
printf 'include = tiny.ini\n[verifier]\nplugins = %s as judge\n[verifier.judge]\nword = SECRET_WORD\n[sweep]\nverifier.judge.word = SECRET_WORD, HOME\n' "$teller" > sweep.ini
if "$TARE" sweep sweep.ini > out.txt 2>&1; then bad "a secret of an instance was swept"; else ok; fi
grep -q "sweep.verifier.judge.word: the parameter holds a secret" out.txt && ok || bad "judge: $(tail -n 1 out.txt)"
done_
