#!/usr/bin/env bash
# Soak test: training, supervised training, an evaluation, a sweep and a training on two ranks, each
# with one to five random faults chosen by seed, and continued after each fault. The promises are
# checked after every process.
#   tests/soak/soak.sh BUILD SECONDS [SEED]       runs for that time, from that seed on (1); prints a
#                     line per minute and the counts at the end
#   SOAK_KINDS="train sft eval sweep ranks"    a run's seed draws one of these; ranks needs mpirun
#   SOAK_LOG=FILE     adds a line to this tab-separated table at the end, and when SIGTERM or SIGINT
#                     ends the soak: the runs and their results
#   SOAK_RUNS=N       ends after N runs (SECONDS 0: no other end)
#   SOAK_PLANT=1      changes one of the results at the end of a run, which the checks must find: each
#                     run has to fail
# Faults: a process is killed at a point or after a time, interrupted, out of memory, or has a full
# or failing disk (once, or from there on). Of the ranks, one is killed, interrupted, or has an
# error; MPI's own allocations never fail, because their errors are not tare's. In a sweep each
# process has the fault.
# Checked after each process: it ends alone with status 0, 1 or 130, or by SIGKILL when it was
# killed; status 1 comes with a message; no process remains; the checksums of a training run match,
# except those of files that a process writes as it begins. At the end, continued without a fault:
# weights, metrics, rollouts, samples and rows of runs.db equal those of an undisturbed run, each
# step occurs once, and all checksums match. Exit status 1 when a promise was broken; the folder is
# kept and printed.
set -euo pipefail
build=$(cd "${1:?usage: soak.sh BUILD SECONDS [SEED]}" && pwd) seconds=${2:?usage: soak.sh BUILD SECONDS [SEED]} seed=${3:-1}
export TARE=${TARE:-$build/tare} SOURCE=${SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
interpose=$build/libtare_interpose.so
[ -e "$interpose" ] || interpose=
[ -n "${TARE_PLUGIN_PATH:-}" ] || export TARE_PLUGIN_PATH=$build/plugins
log=${SOAK_LOG:+$(realpath "$SOAK_LOG")}
. "$SOURCE/tests/e2e/common.inc"
. "$SOURCE/tests/soak/jobs.inc"
trap - EXIT
ended=0
trap 'ended=1' INT TERM # the current run is not counted
jobs_config
ranks_surroundings
RANKS=2
read -ra kinds <<< "${SOAK_KINDS:-train sft eval sweep ranks}"
command -v mpirun > /dev/null || read -ra kinds <<< "$(printf '%s\n' "${kinds[@]}" | grep -v '^ranks$' | tr '\n' ' ')"
declare -A want allocations files ran
first=$seed began_at=$SECONDS
runs=0 processes=0 killed=0 failed_ones=0 finished=0 broken=0
commit=$(git -C "$SOURCE" rev-parse --short HEAD 2> /dev/null || echo unknown)
# Not the state of that commit.
git -C "$SOURCE" diff --quiet HEAD -- core kernels plugins sdk 2> /dev/null || commit=$commit+

broke() {
    broken=$((broken + 1)) told=1
    printf 'BROKEN: seed %d, %s, fault "%s": %s (%s)\n' "$seed" "$job" "$fault" "$*" "$PWD/$where"
}
# whole: makes the results of an undisturbed job, and counts the calls of its busiest process.
whole() {
    local undisturbed=whole-$job
    mkdir -p "$undisturbed"
    job_command "$job" "$WORK/$undisturbed" ''
    (cd "$(in_folder "$undisturbed")" && LD_PRELOAD=$interpose TARE_INTERPOSE_COUNT=$WORK/count "${command[@]}") > "$undisturbed.out" 2>&1 || { cat "$undisturbed.out"; exit 1; }
    rows_of "$undisturbed"
    want[$job]=$(digest "$undisturbed")
    allocations[$job]=$(calls alloc) files[$job]=$(calls io) ran[$job]=0
    rm -f count
}
calls() { { cat count 2> /dev/null || true; } | awk -v k="$1" '{ for (i = 1; i < NF; i += 2) if ($i == k && $(i + 1) > n) n = $(i + 1) } END { print n + 1 }'; }
# choose: draws `fault`, for env. A step that a point never reaches would not be a fault:
# checkpoints have their own steps.
choose() {
    local -a points=(opening data rollout sample verify update apply recorded checkpoint checkpoint.files checkpoint.listed checkpoint.named)
    local step at onward steps=12 every=2 rank=''
    case $job in
    sft) points=(data update checkpoint checkpoint.files checkpoint.listed checkpoint.named result) steps=40 every=5 ;;
    eval) points=(evaluate questions) steps=200 every=8 ;;
    sweep) points+=(cell) steps=6 ;;
    ranks) draw 2; rank="rank=$drawn," ;;
    esac
    draw ${#points[@]}
    at=${points[drawn]}
    draw $steps
    step=$((1 + drawn))
    case $at in
    opening) step=$(((step - 1) % 6)) ;;
    result) step=$((step % 2)) ;;
    cell) step=$((step % 4)) ;;
    checkpoint* | evaluate | questions) step=$(((step + every - 1) / every * every)) ;;
    esac
    draw 2
    onward=$([ $drawn = 1 ] || echo +)
    if [ "$job" = ranks ]; then draw 4; elif [ -n "$interpose" ]; then draw 6; else draw 3; fi
    [ "$job$drawn" != ranks3 ] || drawn=error
    case $drawn in
    0) fault="TARE_FAULT=${rank}stage=$at,step=$step,kind=kill" ;;
    1) fault="TARE_FAULT=${rank}stage=$at,step=$step,kind=stop" ;;
    2) [ "$job" = eval ] || at=data; draw 10; fault="TARE_FAULT=${rank}stage=$at,step=$step,kind=kill,after=0.$drawn" ;;
    3) draw "${allocations[$job]}"; fault="LD_PRELOAD=$interpose TARE_INTERPOSE=alloc=$((1 + drawn))$onward" ;;
    4) draw "${files[$job]}"; fault="LD_PRELOAD=$interpose TARE_INTERPOSE_ERRNO=28 TARE_INTERPOSE=io=$((1 + drawn))$onward" ;;
    5) draw "${files[$job]}"; fault="LD_PRELOAD=$interpose TARE_INTERPOSE_ERRNO=5 TARE_INTERPOSE=io=$((1 + drawn))$onward" ;;
    error) fault="TARE_FAULT=${rank}stage=$at,step=$step,kind=fail" ;;
    esac
}
sums_hold() { # of runs with a step
    local run
    for run in "$where"/run "$where"/runs/*/*/; do
        [ -e "$run/metrics.jsonl" ] && [ -e "$run/chain.jsonl" ] || continue
        "$TARE" -q reproduce "$run" > sums.txt 2>&1 || { echo "checksums of $run: $(grep -v '^note: ' sums.txt | head -2 | tr '\n' ' ')"; return; }
    done
}
# settled: no process of the job remains: ranks notice within seconds, cells of a sweep continue
# alone to their end
settled() {
    local i
    for ((i = 0; i < 3000; i++)); do [ -n "$(members)" ] || return 0; sleep 0.1; done
    return 1
}
one_process() { # fault...
    local status=0 resume found
    mark=soak-$$-$processes
    resume=$(resume_of "$job" "$where")
    job_command "$job" "$WORK/$where" "$resume"
    { (cd "$(in_folder "$where")" && exec timeout -s QUIT 600 env KILLS_MARK="$mark" "$@" "${command[@]}") > out.txt 2> err.txt || status=$?; } 2> /dev/null
    [ $ended = 0 ] || return 0
    processes=$((processes + 1))
    settled || broke "processes outlive the job by five minutes"
    case $status in
    0) ;;
    137) killed=$((killed + 1)); [[ "$*" == *kind=kill* ]] || broke "killed without a kill fault: $(tail -1 err.txt)" ;;
    1 | 3 | 130) failed_ones=$((failed_ones + 1)); grep -q '^tare: ' err.txt || broke "exit status $status without a message" ;;
    127) grep -qE 'out of memory|cannot allocate memory' err.txt || broke "exit status 127: $(tail -1 err.txt)" ;; # the system's loader
    *) broke "exit status $status: $(tail -1 err.txt)" ;;
    esac
    found=$(sums_hold)
    [ -z "$found" ] || broke "$found"
    return $status
}
# A supervised model with its final name is complete. When requested again it is refused, or, if
# checkpoints were not removed yet, they are removed.
done_already() { [ "$job" = sft ] && [ -e "$where/model" ] && [ ! -e "$where/model.training" ]; }
one_run() {
    local n i found
    draw ${#kinds[@]}
    job=${kinds[drawn]}
    where=soak-$seed
    [ -n "${want[$job]:-}" ] || whole
    mkdir -p "$where"
    draw 5
    n=$((1 + drawn))
    for ((i = 0; i < n; i++)); do
        choose
        # shellcheck disable=SC2086
        one_process $fault && break
        [ $ended = 0 ] || return 0
        ! done_already || break
    done
    [ $ended = 0 ] || return 0
    fault="none, at the end"
    done_already || one_process LC_ALL=C || { broke "it does not continue: $(tail -1 err.txt)"; return; }
    [ $ended = 0 ] || return 0
    finished=$((finished + 1)) ran[$job]=$((ran[$job] + 1))
    # Here and not earlier: a run that its fault stopped before its first checkpoint starts over,
    # and the planted error would be lost.
    [ -z "${SOAK_PLANT:-}" ] || find "$where" \( -name metrics.jsonl -o -name results.json -o -name model.safetensors \) -exec sh -c 'printf x >> "$1"' _ {} \;
    rows_of "$where"
    digest "$where" > got.txt
    [ "$(cat got.txt)" = "${want[$job]}" ] || broke "$(diff <(printf '%s\n' "${want[$job]}") got.txt | head -n 4 | tr '\n' ' ')"
    found=$(sums_hold)
    [ -z "$found" ] || broke "at the end: $found"
}
by_kind() { for job in "${!ran[@]}"; do printf '%s %d, ' "$job" "${ran[$job]}"; done | sed 's/, $//'; }
totals() { printf '%d runs, %d processes (%d killed, %d that failed or were interrupted), %d continued to the end, %d promises broken\n' $runs $processes $killed $failed_ones $finished $broken; }
said=$SECONDS
while { [ "$seconds" = 0 ] || [ $SECONDS -lt "$seconds" ]; } && [ $runs -lt "${SOAK_RUNS:-1000000000}" ]; do
    RANDOM=$seed told=0
    one_run
    [ $ended = 0 ] || break
    runs=$((runs + 1))
    [ $told = 1 ] || rm -rf "$where"
    seed=$((seed + 1))
    [ $((SECONDS - said)) -lt 60 ] || { said=$SECONDS; totals; }
done
totals
if [ -n "$log" ]; then
    [ -s "$log" ] || printf 'ended\tcommit\tfirst seed\tlast seed\tseconds\truns\tprocesses\tkilled\tfailed\tbroken\tkinds\n' >> "$log"
    printf '%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n' "$(date -u +%FT%TZ)" "$commit" "$first" $((seed - 1)) $((SECONDS - began_at)) $runs $processes $killed $failed_ones $broken "$(by_kind)" >> "$log"
fi
[ $broken = 0 ] || exit 1
cd / && rm -rf "$WORK"
