#!/usr/bin/env bash
# SIGKILL at any moment: training on one and on several ranks, supervised training, evaluation, a sweep. Each is killed again and again and started again
# until it has ended; then it has what one that nobody disturbed has: nothing lost, nothing twice.
#   tests/soak/kills.sh BUILD KILLS [SEED]     goes on until so many kills have hit a running process; prints a line for each job and the counts
#   KILLS_JOBS="train sft eval sweep ranks sft_ranks eval_ranks"    which jobs; those of two to four ranks only where mpirun is
#   KILLS_SECONDS=N   ends after so long
#   KILLS_RUNS=N      ends after N jobs
#   KILLS_PLANT=1     a number of what was made is changed at the end of each job, which the checks must find
# One in four processes is stopped (SIGSTOP) for a moment and goes on; one in three has a clock that jumps (tests/faults/clock.c), over the end of summer time too.
# Moments are drawn by seed from the time that the whole job takes here; what they hit differs from run to run, what must hold does not.
# Exit status 1 when a promise was broken; the folder is kept and named.
set -euo pipefail
build=$(cd "${1:?usage: kills.sh BUILD KILLS [SEED]}" && pwd) wanted=${2:?usage: kills.sh BUILD KILLS [SEED]} seed=${3:-1}
export TARE=${TARE:-$build/tare} SOURCE=${SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
[ -n "${TARE_PLUGIN_PATH:-}" ] || export TARE_PLUGIN_PATH=$build/plugins
clock=$build/libtare_clock.so
[ -e "$clock" ] || clock=
. "$SOURCE/tests/e2e/common.inc"
trap - EXIT
RANDOM=$seed
tiny_config
jobs=${KILLS_JOBS:-train sft eval sweep ranks sft_ranks eval_ranks}
command -v mpirun > /dev/null || jobs=$(printf '%s\n' $jobs | grep -v 'ranks$')
export OMPI_MCA_btl=^tcp OMPI_MCA_orte_execute_quiet=1 OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
common="log.progress=none log.level=warn"
"$TARE" -q sft sft.ini
# the cells of the sweep differ from a plain run in the seed; each has its own database
sed 's/^steps = 12/steps = 6/' tiny.ini > sweep.ini
printf '[sweep]\nname = kills\nmetric = reward/mean\nrun.seed = 1..3\n' >> sweep.ini

job_command() { # JOB WHERE RESUME: sets the array command
    case $1 in
    train) command=("$TARE" train tiny.ini $common run.dir="$2/run" checkpoint.every=2) ;;
    ranks) command=("$TARE" train tiny.ini $common run.dir="$2/run" checkpoint.every=2 dist.timeout_s=60 dist.ranks=$((2 + $(draw 3)))) ;;
    sft | sft_ranks) command=("$TARE" sft sft.ini $common sft.out="$2/model" sft.steps=40 checkpoint.every=5) ;;
    eval | eval_ranks) command=("$TARE" eval tiny.ini $common data.eval="builtin:arithmetic/heldout?rows=200" eval.samples=4 eval.chunk=8 eval.name=kills eval.out="$2/eval") ;;
    sweep) command=("$TARE" sweep ../sweep.ini --retry model.path="$WORK/base" $common checkpoint.every=2 sweep.concurrent=2) ;;
    esac
    case $1 in *_ranks) command+=(dist.timeout_s=60 dist.ranks=$((2 + $(draw 3)))) ;; esac
    if [ -n "$3" ]; then command+=("$3"); fi
}
draw() { printf '%d' $(((RANDOM * 32768 + RANDOM) % $1)); }
ms() { date +%s%3N; }
resume_of() { # JOB WHERE
    case $1 in
    train | ranks) [ ! -e "$2/run/manifest.json" ] || echo --resume ;;
    sft*) [ ! -e "$2/model.training/manifest.json" ] && [ ! -d "$2/model.training/checkpoints" ] || echo --resume ;;
    esac
}
records() { sed -E 's/"(time|memory)\/[^"]*":[^,}]*,?//g; s/"tokens_per_second":[^,}]*,?//g; s/,}/}/' "$1"; }
digest() { # WHERE: what the job has made, without times
    local f
    (cd "$1" && find . -type f \( -name '*.safetensors' -o -name samples.jsonl -o -name results.json -o -name 'step-*.jsonl*' -o -name 'step-*.state' -o -path '*/rollouts/*' \) |
        grep -vE '/(\.tmp|\.old)-|/cache/' | sort | xargs -r sha256sum)
    (cd "$1" && find . -name metrics.jsonl | sort) | while read -r f; do printf '%s %s\n' "$f" "$(records "$1/$f" | sha256sum)"; done
    printf 'steps %s\n' "$(cd "$1" && find . -name metrics.jsonl | sort | xargs -r grep -ho '"step":[0-9]*' | sort | uniq -c | sha256sum)"
    [ ! -e "$1/rows.txt" ] || cat "$1/rows.txt"
}
rows_of() { # WHERE: what runs.db has of its runs, each step once
    local where=$1
    rm -f "$where/rows.txt"
    [ -e "$where/runs.db" ] || [ -e "$where/runs/runs.db" ] || return 0
    command -v python3 > /dev/null || return 0
    python3 - "$where" > "$where/rows.txt" << 'PY'
import glob, os, sqlite3, sys
for path in sorted(glob.glob(sys.argv[1] + "/runs.db") + glob.glob(sys.argv[1] + "/runs/runs.db")):
    db = sqlite3.connect(path)
    for name, n, steps in db.execute("select dir, count(*), count(distinct metrics.step) from metrics join runs on run = id where metrics.name = 'reward/mean' group by dir order by dir"):
        print(os.path.basename(name), n, steps)
    print(sorted(os.path.basename(d) for d, in db.execute("select dir from runs")))
PY
}
in_folder() { # WHERE: where the job's process runs
    [ "$job" = sweep ] && echo "$1" || echo "$WORK"
}
declare -A took want hits
runs=0 kills=0 missed=0 processes=0 stopped=0 jumped=0 broken=0 finished=0
broke() {
    broken=$((broken + 1))
    printf 'BROKEN: %s, seed %d, job %d: %s (%s)\n' "$job" "$seed" "$runs" "$*" "$WORK/$where"
}
whole() { # of each job once: what it makes, and how long that takes
    mkdir -p "whole-$1"
    local began
    began=$(ms)
    job_command "$1" "$WORK/whole-$1" ''
    (cd "$(in_folder "whole-$1")" && "${command[@]}") > "whole-$1.out" 2>&1 || { cat "whole-$1.out"; exit 1; }
    took[$1]=$(($(ms) - began)) hits[$1]=0
    rows_of "whole-$1"
    want[$1]=$(digest "whole-$1")
}
# Every process of the job: those of the group, and those of ranks, which mpirun gives groups of their own. They carry the mark.
members() {
    local f
    for f in $(grep -lzx "KILLS_MARK=$mark" /proc/[0-9]*/environ 2> /dev/null); do
        f=${f%/environ}
        [ "$(readlink "$f/exe" 2> /dev/null)" = "$TARE_EXE" ] && echo "${f#/proc/}"
    done
    return 0
}
TARE_EXE=$(readlink -f "$TARE")
settle_down() { # nobody of the killed job is left: ranks notice within seconds, cells of a sweep go on alone to their end
    local i
    for ((i = 0; i < 3000; i++)); do [ -n "$(members)" ] || return 0; sleep 0.1; done
    broke "processes outlive the job by five minutes"
}
attempt() { # starts the job's process; kills it at a moment unless it is the last attempt. Sets status, and hit
    local last=$1 list victim pid resume
    mark=$$-$processes status=0 hit=0
    resume=$(resume_of "$job" "$where")
    job_command "$job" "$WORK/$where" "$resume"
    local -a surroundings=(KILLS_MARK="$mark")
    if [ -n "$clock" ] && [ "$(draw 3)" = 0 ]; then # each rank has a time of its own
        # the night in which summer time ends, in a zone that has one
        surroundings+=(LD_PRELOAD="$clock" TARE_CLOCK=$((1 + $(draw 30000))) TZ=Europe/Berlin TARE_CLOCK_AT=1729990790)
        jumped=$((jumped + 1))
    fi
    processes=$((processes + 1))
    (cd "$(in_folder "$where")" && exec env "${surroundings[@]}" "${command[@]}") > out.txt 2> err.txt &
    pid=$!
    if [ "$last" = 0 ]; then
        local at=$(($(draw $((took[$job] + 1)))))
        if [ "$(draw 4)" = 0 ]; then
            sleep "$(printf '%d.%03d' $((at / 2000)) $((at / 2 % 1000)))"
            # shellcheck disable=SC2046 # a list of numbers
            kill -STOP $(members) 2> /dev/null && sleep 0.3 && kill -CONT $(members) 2> /dev/null && stopped=$((stopped + 1)) || true
            at=$((at / 2))
        fi
        sleep "$(printf '%d.%03d' $((at / 1000)) $((at % 1000)))"
        mapfile -t list < <(members)
        if [ ${#list[@]} -gt 0 ]; then
            victim=${list[$(draw ${#list[@]})]}
            kill -KILL "$victim" 2> /dev/null && hit=1 || true
        fi
    fi
    { wait $pid || status=$?; } 2> /dev/null
    settle_down
}
one_job() {
    local attempts=0 most=$((5 + $(draw 12)))
    where=job-$runs
    mkdir -p "$where"
    while :; do
        if [[ $job == sft* ]] && [ -e "$where/model" ]; then # killed when the model was there, before or after its checkpoints were removed
            rm -rf "$where/model.training"
            break
        fi
        attempts=$((attempts + 1))
        attempt $((attempts > most))
        if [ $hit = 1 ] && [ $status != 0 ]; then
            kills=$((kills + 1)) hits[$job]=$((hits[$job] + 1))
        elif [ $hit = 0 ] && [ $status != 0 ]; then
            # a cell of a sweep that was killed makes it fail: it is made again
            [ "$job" = sweep ] && [ $attempts -le $((most + 1)) ] || { broke "exit status $status: $(grep . err.txt | tail -n 2)"; return; }
        elif [ $hit = 1 ]; then
            missed=$((missed + 1)) # what was killed was about to end, or a cell that the sweep began anew
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
    train | ranks) "$TARE" -q verify-run "$where/run" > sums.txt 2>&1 || { broke "sums: $(grep -v '^note' sums.txt | head -n 2)"; return; } ;;
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
printf '; %d stopped and gone on, %d with a clock that jumps; %d promises broken\n' $stopped $jumped $broken
[ $broken = 0 ] || exit 1
cd / && rm -rf "$WORK"
