#!/usr/bin/env bash
# SIGKILL at any time: training on one and on several ranks, supervised training, evaluation, a sweep.
# Each is killed and started again until it has ended. Then its results must equal those of an
# undisturbed job, with nothing lost and nothing twice.
#   tests/soak/kills.sh BUILD KILLS [SEED]     continues until KILLS kills have hit a running process;
#                     prints a line for each job and the counts
#   KILLS_JOBS="train sft eval sweep ranks sft_ranks eval_ranks"    the jobs; those of two to four
#                     ranks need mpirun
#   KILLS_SECONDS=N   ends after that time
#   KILLS_RUNS=N      ends after N jobs
#   KILLS_PLANT=1     changes a number in the results at the end of each job, which the checks must
#                     find
# One in four processes is stopped (SIGSTOP) for a moment and continued; one in three has a clock that
# jumps (tests/faults/clock.c), also over the end of summer time. The times are drawn by seed from the
# duration of the whole job on this machine. The points that they hit differ from run to run, but the
# checks do not. Exit status 1 when a promise was broken; the folder is kept and printed.
set -euo pipefail
build=$(cd "${1:?usage: kills.sh BUILD KILLS [SEED]}" && pwd) wanted=${2:?usage: kills.sh BUILD KILLS [SEED]} seed=${3:-1}
export TARE=${TARE:-$build/tare} SOURCE=${SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
[ -n "${TARE_PLUGIN_PATH:-}" ] || export TARE_PLUGIN_PATH=$build/plugins
clock=$build/libtare_clock.so
[ -e "$clock" ] || clock=
. "$SOURCE/tests/e2e/common.inc"
. "$SOURCE/tests/soak/jobs.inc"
trap - EXIT
RANDOM=$seed
jobs_config
jobs=${KILLS_JOBS:-train sft eval sweep ranks sft_ranks eval_ranks}
command -v mpirun > /dev/null || jobs=$(printf '%s\n' $jobs | grep -v 'ranks$')
ranks_surroundings

declare -A took want hits
runs=0 kills=0 missed=0 processes=0 stopped=0 jumped=0 broken=0 finished=0
broke() {
    broken=$((broken + 1))
    printf 'BROKEN: %s, seed %d, job %d: %s (%s)\n' "$job" "$seed" "$runs" "$*" "$WORK/$where"
}
whole() { # of each job once: its results and its duration
    mkdir -p "whole-$1"
    local began
    began=$(ms)
    job_command "$1" "$WORK/whole-$1" ''
    (cd "$(in_folder "whole-$1")" && "${command[@]}") > "whole-$1.out" 2>&1 || { cat "whole-$1.out"; exit 1; }
    took[$1]=$(($(ms) - began)) hits[$1]=0
    rows_of "whole-$1"
    want[$1]=$(digest "whole-$1")
}
# settle_down: no process of the killed job remains: ranks notice within seconds, cells of a sweep
# continue alone to their end
settle_down() {
    local i
    for ((i = 0; i < 3000; i++)); do [ -n "$(members)" ] || return 0; sleep 0.1; done
    broke "processes outlive the job by five minutes"
}
# attempt: starts the job's process and kills it at a random time, unless this is the last attempt;
# sets status and hit
attempt() {
    local last=$1 list victim pid resume
    mark=$$-$processes status=0 hit=0
    resume=$(resume_of "$job" "$where")
    job_command "$job" "$WORK/$where" "$resume"
    local -a surroundings=(KILLS_MARK="$mark")
    draw 3
    if [ -n "$clock" ] && [ "$drawn" = 0 ]; then # the ranks end at different times
        draw 30000
        # The night in which summer time ends, in a zone that has it.
        surroundings+=(LD_PRELOAD="$clock" TARE_CLOCK=$((1 + drawn)) TZ=Europe/Berlin TARE_CLOCK_AT=1729990790)
        jumped=$((jumped + 1))
    fi
    processes=$((processes + 1))
    (cd "$(in_folder "$where")" && exec env "${surroundings[@]}" "${command[@]}") > out.txt 2> err.txt &
    pid=$!
    if [ "$last" = 0 ]; then
        draw $((took[$job] + 1))
        local at=$drawn
        draw 4
        if [ "$drawn" = 0 ]; then
            sleep "$(printf '%d.%03d' $((at / 2000)) $((at / 2 % 1000)))"
            # shellcheck disable=SC2046 # a list of numbers
            kill -STOP $(members) 2> /dev/null && sleep 0.3 && kill -CONT $(members) 2> /dev/null && stopped=$((stopped + 1)) || true
            at=$((at / 2))
        fi
        sleep "$(printf '%d.%03d' $((at / 1000)) $((at % 1000)))"
        mapfile -t list < <(members)
        if [ ${#list[@]} -gt 0 ]; then
            draw ${#list[@]}
            victim=${list[drawn]}
            kill -KILL "$victim" 2> /dev/null && hit=1 || true
        fi
    fi
    { wait $pid || status=$?; } 2> /dev/null
    settle_down
}
one_job() {
    local attempts=0 most
    draw 12
    most=$((5 + drawn))
    where=job-$runs
    mkdir -p "$where"
    while :; do
        # Killed when the model existed, before or after its checkpoints were removed.
        if [[ $job == sft* ]] && [ -e "$where/model" ]; then
            rm -rf "$where/model.training"
            break
        fi
        attempts=$((attempts + 1))
        attempt $((attempts > most))
        if [ $hit = 1 ] && [ $status != 0 ]; then
            kills=$((kills + 1)) hits[$job]=$((hits[$job] + 1))
        elif [ $hit = 0 ] && [ $status != 0 ]; then
            # A killed cell makes a sweep fail: it is run again.
            [ "$job" = sweep ] && [ $attempts -le $((most + 1)) ] || { broke "exit status $status: $(grep . err.txt | tail -n 2)"; return; }
        elif [ $hit = 1 ]; then
            # Killed just before the end, or a cell that the sweep started again.
            missed=$((missed + 1))
        fi
        if [ $status = 0 ] && { [ "$job" = sweep ] || [ $hit = 0 ] || [ $attempts -gt $most ]; }; then break; fi
    done
    if [ "$job" = sweep ]; then (cd "$where" && "${command[@]}") > out.txt 2> err.txt || { broke "the sweep's end: $(tail -n 2 err.txt)"; return; }; fi
    [ -z "${KILLS_PLANT:-}" ] || find "$where" \( -name metrics.jsonl -o -name results.json -o -name model.safetensors \) -exec sh -c 'printf x >> "$1"' _ {} \;
    rows_of "$where"
    digest "$where" > got.txt
    if [ "$(cat got.txt)" != "${want[$job]}" ]; then
        broke "$(diff <(printf '%s\n' "${want[$job]}") got.txt | head -n 4 | tr '\n' ' ')"
        return
    fi
    case $job in
    train | ranks) "$TARE" -q reproduce "$where/run" > sums.txt 2>&1 || { broke "checksums: $(grep -v '^note' sums.txt | head -n 2)"; return; } ;;
    esac
    finished=$((finished + 1))
    rm -rf "$where"
}
for job in $jobs; do whole "$job"; done
list=($jobs)
until [ $kills -ge "$wanted" ] || [ $runs -ge "${KILLS_RUNS:-1000000000}" ] || [ $SECONDS -ge "${KILLS_SECONDS:-1000000000}" ]; do
    job=${list[$((runs % ${#list[@]}))]}
    one_job
    runs=$((runs + 1))
    printf '%s: job %d, %d kills\n' "$job" $runs $kills
done
printf '%d jobs (%d ended as the undisturbed ones), %d processes, %d kills' $runs $finished $processes $kills
for job in $jobs; do printf ', %s %d' "$job" "${hits[$job]}"; done
printf '; %d stopped and continued, %d with a clock that jumps; %d promises broken\n' $stopped $jumped $broken
[ $broken = 0 ] || exit 1
cd / && rm -rf "$WORK"
