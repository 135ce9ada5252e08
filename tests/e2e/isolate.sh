#!/usr/bin/env bash
# verifier.isolate = process: a verifier that aborts, hangs, segfaults, exits or prints costs one verdict; too many crashes stop the run.
source "$(dirname "$0")/common.inc"
bad_one=${FIXTURES:?}/verdicts.so
[ -e "$bad_one" ] || skip "the fixtures are not built"
for what in fine abort fine segfault exit hang print fine; do
    printf '{"id":"%s","completion":"%s","answer":"x"}\n' $what $what
done > rows
judged() { # what hangs runs out of time, and nothing else does
    timeout 900 "$TARE" verify "$bad_one" --isolate --timeout $LIMIT < rows > out 2> err || return 1
    timeout 900 "$TARE" verify "$bad_one" --isolate --threads 3 --timeout $LIMIT < rows > out3 2> /dev/null || return 1
    got=$(grep -o '"verdict":"[a-z_]*"' out | cut -d '"' -f 4 | tr '\n' ' ')
    [ "$got" = "correct crashed correct crashed crashed timeout correct correct " ] && cmp -s out out3
}
if patient judged; then ok; else bad "verdicts, by one worker and by three: $(cat out out3), $(tail -n 3 err)"; fi
if [ "$(grep -c '"reward":0,' out)" = 4 ] && grep -q printed err && ! grep -q '"printed"' out; then ok; else bad "rewards, or what was printed: $(cat out)"; fi
if grep -q abort rows && ! "$TARE" verify "$bad_one" < rows > /dev/null 2>&1; then ok; else bad "in process it should have died"; fi

tiny_config
train() { timeout 300 "$TARE" train tiny.ini train.steps=2 checkpoint.every=1 verifier.plugins="$bad_one" verifier.workers=2 "$@" > log 2>&1; }
# every call crashes, and all of that is allowed: the run goes on, and the share is a metric
if train run.dir=on verifier.isolate=process verifier.verdicts.always=segfault verifier.max_crash_share=1 &&
    [ "$(grep -c '"verifier/crashed":1[,}.]' on/metrics.jsonl)" = 2 ]; then ok; else bad "crashes that are allowed: $(tail -n 3 log)"; fi
if train run.dir=late verifier.isolate=process verifier.verdicts.always=hang verifier.timeout=0.05 train.steps=1 &&
    grep -q '"verifier/timeout":1[,}.]' late/metrics.jsonl; then ok; else bad "hangs: $(tail -n 3 log)"; fi
if train run.dir=stopped verifier.isolate=process verifier.verdicts.always=abort; then bad "a run went on with nothing but crashes"; fi
if grep -q 'verifier calls crashed, above verifier.max_crash_share = 0.05' log; then ok; else bad "message: $(tail -n 3 log)"; fi
# the engine is killed while a worker hangs: the worker goes too
mkfifo open
exec 3<> open # its input does not end
printf '{"completion":"hang","answer":"x"}\n' >&3
"$TARE" verify "$bad_one" --isolate --timeout 600 < open > /dev/null 2>&1 3>&- &
engine=$!
until_ 'worker=$(pgrep -P $engine -f "verify --worker")' || bad "no worker"
until_ '[ "$(sed "s/.*) //" /proc/$worker/stat | cut -d " " -f 12)" -gt 10 ]' || bad "the worker does not hang" # it turns: a tenth of a second of its own time
kill -9 $engine
wait $engine 2> /dev/null || true
if until_ '! lives $worker'; then ok; else bad "a worker outlived the engine"; fi
done_
