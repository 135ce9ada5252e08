#!/usr/bin/env bash
# Checks a run while another process locks runs.db, from the start or from the middle of the run.
# The run ends well, waits once, and prints one warning; --resume fills the database.
. "$(dirname "$0")/common.inc"
[ -n "${CLOCK:-}" ] && [ -f "$CLOCK" ] || skip "the preloaded clock, for a wait of ten seconds: a sanitizer's build has an allocator of its own"
has_python || skip "a database is locked by python3: it is not installed"
tiny_config
KEYS="train.steps=4 checkpoint.every=1 eval.before=false eval.after=false log.progress=none"
"$TARE" -q sft sft.ini sft.steps=3 2> err.txt || { bad "the model was not made: $(cat err.txt)"; done_; exit 1; }
mkfifo go
exec 7<> go
# hold FOLDER: locks its runs.db until let_go.
hold() {
    python3 - "$1/runs.db" held <<'PY' 7>&- &
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
db.execute("BEGIN EXCLUSIVE")
open(sys.argv[2], "w").close()
open("go").readline()
PY
    holder=$!
    until_ '[ -e held ]'
    rm held
}
let_go() { echo >&7; wait $holder; }
# one_wait RUN WHAT
one_wait() {
    [ $status = 0 ] && [ "$(grep -c "warning: .*$WORK/$1/runs.db: database is locked; this run continues without the database" err.txt)" = 1 ] && [ "$(grep -c warning err.txt)" = 1 ] && ok || bad "$2: exit status $status: $(cat err.txt)"
    [ "$(cat naps)" -ge 5000 ] && [ "$(cat naps)" -lt 15000 ] && ok || bad "$2: waited for $(cat naps) ms in all"
    "$TARE" -q reproduce "$1/run" > out.txt 2>&1 && [ "$(wc -l < "$1/run/metrics.jsonl")" = 3 ] && ok || bad "$2: $(cat out.txt)"
}
filled() { # RUN WHAT
    "$TARE" -q train "$1/run" --resume log.progress=none > out.txt 2> err.txt && [ ! -s err.txt ] && ok || bad "$2, resumed: $(cat err.txt)"
    checked "$2: the database lacks steps" "$1" <<'PY'
import json, sqlite3, sys
db = sqlite3.connect(sys.argv[1] + "/runs.db")
assert db.execute("SELECT status, step FROM runs").fetchall() == [("done", 4)], db.execute("SELECT status, step FROM runs").fetchall()
rows = {(r["step"], k): v for r in map(json.loads, open(sys.argv[1] + "/run/metrics.jsonl")) for k, v in r.items() if k != "step"}
got = {(s, k): v for s, k, v in db.execute("SELECT step, name, value FROM metrics")}
assert got == rows and {s for s, k in got} == {1, 2, 3, 4}, (len(got), len(rows))
PY
}
export TARE_CLOCK_NAPS="$WORK/naps"
mkdir first middle
hold first
status=0
# shellcheck disable=SC2086
LD_PRELOAD=$CLOCK "$TARE" train tiny.ini $KEYS run.dir=first/run --until 3 > out.txt 2> err.txt || status=$?
one_wait first "locked from the beginning"
let_go
filled first "locked from the beginning"
# shellcheck disable=SC2086
LD_PRELOAD=$CLOCK frozen_at recorded 1 "$TARE" train tiny.ini $KEYS run.dir=middle/run --until 3 > out.txt 2> err.txt && ok || bad "not stopped: $(cat err.txt)"
hold middle
kill -CONT $pid
status=0
wait $pid || status=$?
one_wait middle "locked from step 2 on"
let_go
filled middle "locked from step 2 on"
done_
