#!/usr/bin/env bash
# Soak: training runs under one to five random faults each, chosen by seed, and resumed after each; after every process its promises are checked.
#   tests/soak/soak.sh BUILD SECONDS [SEED]       runs for so long, from that seed on (1); prints a line a minute and the counts at the end
#   SOAK_RUNS=N       ends after N runs (SECONDS 0: no other end)
#   SOAK_PLANT=1      at the end of a run one of its numbers is changed, which the checks must find: each run has to fail
# Faults: a process killed at a point or after a time, interrupted, out of memory, a full disk or a failing one (once, or from there on).
# Checked after each: it ends by itself with status 0, 1 or 130, or by SIGKILL when it was killed; status 1 comes with a message; no sum of the run is wrong but
# those of files that a process writes as it begins. At the end, resumed without a fault: weights, metrics and rollouts as of the run that met none,
# each step once in metrics.jsonl and runs.db, all sums right. Exit status 1 when a promise was broken; the run's folder is kept and named.
set -euo pipefail
build=$(cd "${1:?usage: soak.sh BUILD SECONDS [SEED]}" && pwd) seconds=${2:?usage: soak.sh BUILD SECONDS [SEED]} seed=${3:-1}
export TARE=${TARE:-$build/tare} SOURCE=${SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
interpose=$build/libtare_interpose.so
[ -e "$interpose" ] || interpose=
[ -n "${TARE_PLUGIN_PATH:-}" ] || export TARE_PLUGIN_PATH=$build/plugins
. "$SOURCE/tests/e2e/common.inc"
trap - EXIT
tiny_config
runs=0 processes=0 killed=0 failed_ones=0 finished=0 broken=0
train() { "$TARE" train tiny.ini log.progress=none run.dir="$1" train.steps=12 checkpoint.every=2 log.level=warn "${@:2}"; }
records() { sed -E 's/"(time|memory)\/[^"]*":[^,}]*,?//g; s/"tokens_per_second":[^,}]*,?//g' "$1/metrics.jsonl"; }
"$TARE" -q sft sft.ini
train whole > /dev/null

broke() {
    broken=$((broken + 1)) told=1
    printf 'BROKEN: seed %d, run %d, fault "%s": %s (%s)\n' "$seed" $((runs + 1)) "$fault" "$*" "$PWD/soak-$seed"
}
points=(data rollout sample verify update apply recorded checkpoint checkpoint.files checkpoint.listed checkpoint.named)
choose() { # sets fault, for env
    local step at onward
    draw 12
    step=$((1 + drawn))
    draw ${#points[@]}
    at=${points[drawn]}
    draw 2
    onward=$([ $drawn = 1 ] || echo +)
    draw $([ -n "$interpose" ] && echo 6 || echo 3)
    case $drawn in
    0) fault="TARE_FAULT=stage=$at,step=$step,kind=kill" ;;
    1) fault="TARE_FAULT=stage=$at,step=$step,kind=stop" ;;
    2) draw 10; fault="TARE_FAULT=stage=data,step=$step,kind=kill,after=0.$drawn" ;;
    3) draw 60000; fault="LD_PRELOAD=$interpose TARE_INTERPOSE=alloc=$((1 + drawn))$onward" ;;
    4) draw 1500; fault="LD_PRELOAD=$interpose TARE_INTERPOSE_ERRNO=28 TARE_INTERPOSE=io=$((1 + drawn))$onward" ;;
    5) draw 1500; fault="LD_PRELOAD=$interpose TARE_INTERPOSE_ERRNO=5 TARE_INTERPOSE=io=$((1 + drawn))$onward" ;;
    esac
}
sums_hold() { # of a run that has a step
    [ -e "soak-$seed/metrics.jsonl" ] && [ -e "soak-$seed/chain.jsonl" ] || return 0
    "$TARE" -q verify-run "soak-$seed" > sums.txt 2>&1
}
one_process() { # fault...
    local status=0
    resume=$([ -e "soak-$seed/manifest.json" ] && echo --resume || true)
    # shellcheck disable=SC2086
    { timeout -s QUIT 300 env "$@" "$TARE" train tiny.ini log.progress=none run.dir="soak-$seed" train.steps=12 checkpoint.every=2 log.level=warn $resume > out.txt 2> err.txt || status=$?; } 2> /dev/null
    processes=$((processes + 1))
    case $status in
    0) ;;
    137) killed=$((killed + 1)); [[ "$*" == *kind=kill* ]] || broke "killed without having been told to: $(tail -1 err.txt)" ;;
    1 | 3 | 130) failed_ones=$((failed_ones + 1)); grep -q '^tare: ' err.txt || broke "exit status $status without a message" ;;
    127) grep -qE 'out of memory|cannot allocate memory' err.txt || broke "exit status 127: $(tail -1 err.txt)" ;; # the system's loader
    *) broke "exit status $status: $(tail -1 err.txt)" ;;
    esac
    sums_hold || broke "sums: $(grep -vE '^note: ' sums.txt | head -2)"
    return $status
}
one_run() {
    local n i
    draw 5
    n=$((1 + drawn))
    for ((i = 0; i < n; i++)); do
        choose
        # shellcheck disable=SC2086
        one_process $fault && break
    done
    fault="none, at the end"
    one_process LC_ALL=C || { broke "it does not continue: $(tail -1 err.txt)"; return; }
    finished=$((finished + 1))
    # here, and not before: a run that its fault stopped before its first checkpoint starts over, and what was planted would be gone
    [ -z "${SOAK_PLANT:-}" ] || sed -i '1s/"reward\/mean":/"reward\/mean":1/' "soak-$seed/metrics.jsonl"
    cmp -s whole/checkpoints/step-000012/model.safetensors "soak-$seed/checkpoints/step-000012/model.safetensors" || broke "other weights"
    cmp -s <(records whole) <(records "soak-$seed") || broke "other metrics"
    diff -rq whole/rollouts "soak-$seed/rollouts" > /dev/null || broke "other rollouts"
    "$TARE" -q verify-run "soak-$seed" > sums.txt 2>&1 || broke "sums at the end: $(grep -v '^note: ' sums.txt | head -2)"
    ! command -v python3 > /dev/null || python3 - "$PWD/soak-$seed" <<'PY' || broke "runs.db"
import os, sqlite3, sys
db = sqlite3.connect("runs.db")
runs = [r[0] for r in db.execute("select id from runs where dir = ? or dir = ?", (sys.argv[1], os.path.basename(sys.argv[1])))]
assert len(runs) == 1, runs
steps = [s for s, in db.execute("select step from metrics where run = ? and name = 'reward/mean' order by step", (runs[0],))]
assert steps == list(range(1, 13)), steps
PY
}
totals() { printf '%d runs, %d processes (%d killed, %d that failed or were interrupted), %d continued to the end, %d promises broken\n' $runs $processes $killed $failed_ones $finished $broken; }
said=$SECONDS
while { [ "$seconds" = 0 ] || [ $SECONDS -lt "$seconds" ]; } && [ $runs -lt "${SOAK_RUNS:-1000000000}" ]; do
    RANDOM=$seed told=0
    one_run
    runs=$((runs + 1))
    [ $told = 1 ] || rm -rf "soak-$seed"
    seed=$((seed + 1))
    [ $((SECONDS - said)) -lt 60 ] || { said=$SECONDS; totals; }
done
totals
[ $broken = 0 ] || exit 1
cd / && rm -rf "$WORK"
