#!/usr/bin/env bash
# Checks log.export: the exporter follows the run; a resumed run continues the same record and sends
# no step twice. An exporter that is missing, dies or hangs gives one warning, and the run is
# bit-identical. The service's client is a stand-in next to the configuration.
source "$(dirname "$0")/common.inc"
command -v python3 > /dev/null || skip "no python3"
export PYTHONPATH=$SOURCE/sdk/python:. PYTHONDONTWRITEBYTECODE=1
tiny_config
cat > wandb.py <<'PY'
import json, os, time
class Run:
    def log(self, values, step):
        with open("sent.jsonl", "a") as f:
            print(json.dumps([step, values["reward/mean"]]), file=f)
        while os.path.exists("hangs"):
            time.sleep(0.1)
        if os.path.exists("dies"):
            os._exit(7)
        if os.path.exists("leaves"):
            os._exit(0)
    def finish(self):
        pass
def init(**what):
    with open("records.txt", "a") as f:
        print(what["id"], file=f)
    return Run()
PY
train() { "$TARE" train tiny.ini log.progress=none checkpoint.last=true "$@" > out.txt 2> err.txt; }
# The exporter has ended before the run checks it: the run stops itself at that point until then.
train_until_gone() { # RUN STAGE STEP [key=value ...]
    local run=$1 stage=$2 step=$3
    shift 3
    frozen_at "$stage" "$step" "$TARE" train tiny.ini log.progress=none checkpoint.last=true run.dir="$WORK/$run" log.export=wandb "$@" > out.txt 2> err.txt || return 1
    exported "$run"
    kill -CONT $pid
    wait $pid
}
# exported: until no exporter of the run and no writer of its log remains: a slow machine gets as
# long as it needs
exported() {
    while pgrep -f "tare_sdk.loggers $WORK/$1 |$WORK/$1/export/log.txt " > found.txt; do sleep 0.1; done
}
steps() { cut -d, -f1 sent.jsonl | tr -d '[\n'; }
same() { # RUN WHAT
    cmp -s plain/checkpoints/step-000012/model.safetensors "$1/checkpoints/step-000012/model.safetensors" && ok || bad "$2: the run differs"
}
warnings() { # NUMBER WHAT
    [ "$(grep -c 'log\.export' err.txt || true)" = "$1" ] && ok || bad "$2: $(grep 'log\.export' err.txt)"
}
train run.dir="$WORK"/plain || bad "a run without: $(cat err.txt)"
[ ! -e plain/export ] && [ ! -e sent.jsonl ] && ok || bad "a run without log.export sends data"

train run.dir="$WORK"/run log.export=wandb --until 6 || bad "the first half: $(cat err.txt)"
exported run
[ "$(steps)" = 123456 ] && ok || bad "the first half: $(cat sent.jsonl)"
"$TARE" train run --resume log.progress=none > out.txt 2> err.txt || bad "the second half: $(cat err.txt)"
exported run
[ "$(steps)" = 123456789101112 ] && [ "$(sort -u records.txt | wc -l)" = 1 ] && ok || bad "not every step once, in one record: $(cat sent.jsonl records.txt)"
same run "with an exporter"
"$TARE" reproduce run --steps 11-12 > out.txt 2>&1 && ok || bad "the run's folder: $(tail -n 5 out.txt)"

# Killed in the middle: steps that the killed process had not saved are repeated and not sent again.
rm -f sent.jsonl records.txt
killed_at recorded 8 "$TARE" train tiny.ini run.dir="$WORK"/killed log.progress=none checkpoint.last=true log.export=wandb && ok || bad "not killed"
exported killed
[ "$(steps)" = 12345678 ] && ok || bad "killed: $(cat sent.jsonl)"
"$TARE" train killed --resume log.progress=none > out.txt 2> err.txt || bad "after the kill: $(cat err.txt)"
exported killed
[ "$(steps)" = 123456789101112 ] && ok || bad "after the kill: $(cat sent.jsonl)"

# An exporter that prints without end: its log is cut, and its work continues.
cp wandb.py quiet.py
sed -i 's/^    def log.*/&\n        print(("x" * 99 + "\\n") * 4000, flush=True)/' wandb.py
rm -f sent.jsonl
train run.dir="$WORK"/chatty log.export=wandb && ok || bad "an exporter that prints: $(cat err.txt)"
exported chatty
[ "$(steps)" = 123456789101112 ] && ok || bad "an exporter that prints: $(cat sent.jsonl)"
[ "$(wc -c < chatty/export/log.txt)" -le $(((1 << 20) + 100)) ] && [ "$(tail -n 1 chatty/export/log.txt)" = '[the rest is left out: more than 1048576 bytes]' ] && ok ||
    bad "an exporter that prints: a log of $(wc -c < chatty/export/log.txt) bytes, $(tail -c 100 chatty/export/log.txt)"
same chatty "an exporter that prints"
mv quiet.py wandb.py

touch dies
train_until_gone dead recorded 6 && ok || bad "an exporter that dies: $(cat err.txt)"
warnings 1 "an exporter that dies"
grep 'the exporter has ended (exit status 7).*the run continues, and `python3 -m tare_sdk.loggers .*dead --to wandb` sends the rest' err.txt > found.txt && ok || bad "an exporter that dies: $(cat err.txt)"
same dead "an exporter that dies"
rm dies sent.jsonl
# An exporter that ends early with exit status 0, in a run so short that it is over before that is
# noticed: the record of sent steps shows it.
touch leaves
train_until_gone left checkpoint.named 2 train.steps=2 && ok || bad "an exporter that leaves: $(cat err.txt)"
warnings 1 "an exporter that leaves"
grep 'the exporter has ended (exit status 0).*sends the rest' err.txt > found.txt && ok || bad "an exporter that leaves: $(cat err.txt)"
rm leaves sent.jsonl
touch hangs
train run.dir="$WORK"/slow log.export=wandb && ok || bad "an exporter that hangs: $(cat err.txt)"
rm hangs
warnings 1 "an exporter that hangs"
grep 'the exporter (process [0-9]*) is still sending after 10 s; it continues in the background' err.txt > found.txt && ok || bad "an exporter that hangs: $(cat err.txt)"
same slow "an exporter that hangs"
exported slow # it hung and did not die: it sends the rest
[ "$(steps)" = 123456789101112 ] && ok || bad "an exporter that hung: $(cat sent.jsonl)"

# A missing part is reported by the check and by the run: Python without the packages that it needs,
# then no Python at all.
mkdir bare none
printf '#!/bin/sh\nexec %s -S "$@"\n' "$(command -v python3)" > bare/python3
chmod +x bare/python3
mv wandb.py away.py
PATH=$PWD/bare:$PATH "$TARE" config check tiny.ini log.export=wandb,comet > out.txt 2> err.txt || bad "a check: $(cat err.txt)"
grep 'log.export = wandb,comet: python3 does not find wandb (`pip install wandb`), comet_ml (`pip install comet_ml`); a run would continue without sending anything' err.txt > found.txt && ok ||
    bad "a missing client: $(cat err.txt)"
PATH=$PWD/bare:$PATH train run.dir="$WORK"/lacks log.export=wandb && ok || bad "without a client: $(cat err.txt)"
warnings 1 "without a client"
same lacks "without a client"
PYTHONPATH='' PATH=$PWD/bare:$PATH "$TARE" config check tiny.ini log.export=wandb > out.txt 2> err.txt || bad "a check: $(cat err.txt)"
grep 'does not find tare_sdk (`pip install ./sdk/python`' err.txt > found.txt && ok || bad "the package is missing: $(cat err.txt)"
PATH=$PWD/none train run.dir="$WORK"/nothing log.export=wandb && ok || bad "without Python: $(cat err.txt)"
grep 'cannot run python3; install Python' err.txt > found.txt && ok || bad "without Python: $(cat err.txt)"
status=0
train run.dir="$WORK"/unknown log.export=wandb,nothing || status=$?
[ $status = 3 ] && [ ! -e unknown ] && grep "unknown service 'nothing'; allowed: wandb, trackio, mlflow, swanlab, comet" err.txt > found.txt && ok || bad "unknown service: status $status: $(cat err.txt)"
done_
