#!/usr/bin/env bash
# Checks tare_sdk.loggers on a run's folder, with stand-ins for the services' clients
# (sdk/python/tests/test_loggers.py --real tests the clients themselves).
source "$(dirname "$0")/common.inc"
command -v python3 > /dev/null || skip "no python3"
export PYTHONPATH=$SOURCE/sdk/python PYTHONDONTWRITEBYTECODE=1
tiny_config
"$TARE" train tiny.ini log.progress=none > log.txt 2>&1 || { bad "the run: $(tail -n 5 log.txt)"; done_; exit 1; }
if python3 -W error "$SOURCE/sdk/python/tests/test_loggers.py" run > out.txt 2>&1 && grep -x 'loggers: 3 passed' out.txt > found.txt; then ok; else bad "$(tail -n 20 out.txt)"; fi
"$TARE" reproduce run --steps 11-12 > out.txt 2>&1 && ok || bad "the run's folder: $(tail -n 5 out.txt)"

# The command follows a run while it is written. The service's client is a stand-in next to the
# configuration.
cat > wandb.py <<'PY'
import json
class Run:
    def log(self, values, step):
        with open("sent.jsonl", "a") as f:
            print(json.dumps([step, values["reward/mean"]]), file=f)
    def finish(self):
        open("finished", "w").close()
def init(**what):
    return Run()
PY
export PYTHONPATH=$PYTHONPATH:.
rm -rf run
"$TARE" train tiny.ini log.progress=none --until 6 > log.txt 2>&1 || bad "the first half: $(tail -n 5 log.txt)"
python3 -m tare_sdk.loggers run --to wandb --follow > out.txt 2>&1 && ok || bad "the first half: $(cat out.txt)"
"$TARE" train run --resume > log.txt 2>&1 || bad "the second half: $(tail -n 5 log.txt)"
python3 -m tare_sdk.loggers run --to wandb > out.txt 2>&1 && ok || bad "the second half: $(cat out.txt)"
[ "$(cut -d, -f1 sent.jsonl | tr -d '[\n')" = 123456789101112 ] && [ -e finished ] && ok || bad "not every step once: $(cat sent.jsonl)"
python3 -m tare_sdk.loggers run --to wandb,nothing > out.txt 2>&1 && bad "an unknown service was accepted"
grep 'unknown: nothing; there are wandb, trackio, mlflow' out.txt > found.txt && ok || bad "an unknown service: $(cat out.txt)"
python3 -m tare_sdk.loggers . --to wandb > out.txt 2>&1 && bad "a folder without a run was accepted"
grep 'has no config.ini, so it is no run' out.txt > found.txt && ok || bad "a folder without a run: $(cat out.txt)"
# Damaged or missing files: the message has the file and a remedy.
says() { # WORDS
    python3 -m tare_sdk.loggers run --to wandb > out.txt 2>&1 && bad "$1: status 0"
    grep -F "$1" out.txt > found.txt && ! grep -q 'other services go on' out.txt && ok || bad "$1: $(cat out.txt)"
}
for text in '' '[]' '{"step":1}' '{"step":"a","record":"b"}'; do
    printf %s "$text" > run/export/wandb.json
    says 'export/wandb.json: does not say how far wandb has come; remove it'
done
rm run/export/wandb.json
for line in garbage '[1,2]' '{"step":null}'; do
    (head -n 3 run/metrics.jsonl && echo "$line") > damaged.jsonl
    mv run/metrics.jsonl whole.jsonl && cp damaged.jsonl run/metrics.jsonl
    says 'metrics.jsonl:4: is no object with a step'
    mv whole.jsonl run/metrics.jsonl && rm run/export/wandb.json
done
mv run/metrics.jsonl away.jsonl
says 'metrics.jsonl is not there, so there is nothing to send'
rm -r run/export && ln -s nowhere/at/all run/export
python3 -m tare_sdk.loggers run --to wandb > out.txt 2>&1 && bad "a dangling link was accepted"
grep -q Traceback out.txt && bad "a dangling link: $(cat out.txt)" || ok
done_
