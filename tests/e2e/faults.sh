#!/usr/bin/env bash
# Every allocation and every file operation of a command fails once, and then it and all that follow (tests/faults/interpose.c).
# So does every operation of SQLite on its files; and every read and write does only half of what it was asked, or is interrupted.
# Each time: an end without a signal and in time; on failure a message, and nothing of the result left under its final name that
# the command without faults would not have written; on success the same result. After it the command works again.
# A transfer that is short or interrupted, and a database that fails, change nothing of a command.
# Built with the address sanitizer, tare's own allocations fail, and nothing else: no leak, and nothing read or written that is not there.
# FAULT_POINTS: how many points of each command and kind are tried (default 12, evenly spread from a start that FAULT_SEED moves);
# "all": every one; "paths": every call path (the return addresses up the stack) by which calls come, at its first and at its last call:
# every place of the program, in a tenth of the points. FAULT_ONLY: a regular expression, of the commands that are tried.
# FAULT_PART=2/3: of the points the second of three parts. Figures of whole runs: docs/dev/reliability.md.
. "$(dirname "$0")/common.inc"
KINDS='alloc io db short eintr'
if [ -n "${WRAPPED:-}" ]; then
    KINDS=alloc
    export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}exitcode=99 UBSAN_OPTIONS=exitcode=99
elif [ -z "${INTERPOSE:-}" ] || [ ! -f "$INTERPOSE" ]; then
    skip "the thread sanitizer's build has an allocator of its own: faults are not injected"
fi
POINTS=${FAULT_POINTS:-12} SEED=${FAULT_SEED:-1}
PART=${FAULT_PART:-1/1}
MODEL=$SOURCE/tests/data/models/tiny/qwen3
tried=0 unmet=0

INPUT=/dev/null # of the command
# once COMMAND...: its standard output and exit status; what it writes, RESULT and the database of runs, is removed before: every try makes the same calls
RESULT=()
once() {
    local status=0
    rm -rf "${RESULT[@]}" runs.db*
    LD_PRELOAD=${INTERPOSE:-} timeout -s KILL 300 "$@" < "$INPUT" > out.txt 2> err.txt || status=$?
    return $status
}
files() { # the sums of all that the command has written, but for what holds times, or sums of them
    for path in "${RESULT[@]}"; do
        [ ! -e "$path" ] || (find "$path" -type f ! -name metrics.jsonl ! -name chain.jsonl ! -name manifest.json ! -name lock ! -name 'events.*' | sort | xargs -r sha256sum)
    done
}
sums() {
    files
    sed 's/, [0-9.]* s$//' out.txt # how long a codebook took
}
# Files that a command that failed has left under their final names and that are not those of the command without faults. samples.jsonl grows row by row.
strange() {
    files | grep -vE '\.tmp(-[0-9]+/.*)?$|/samples\.jsonl$' | sort | comm -23 - <(sort want)
}
# points KIND: those to try, one a line
points() {
    if [ "$POINTS" = paths ]; then
        awk -v k="$1" '$1 == k && $3 > n[$2] { n[$2] = $3 } END { for (p in n) { print "@" p ".1"; if (n[p] > 1) print "@" p "." n[p] } }' paths | sort
        return
    fi
    local total step=1 points=$POINTS
    total=$(awk -v k="$1" '{ for (i = 1; i < NF; i += 2) if ($i == k && $(i + 1) > n) n = $(i + 1) } END { print n + 0 }' count)
    [ "$POINTS" = all ] || [ "$1" = alloc ] || [ "$1" = io ] || points=$(((POINTS + 2) / 3))
    [ "$POINTS" = all ] || step=$(((total + points - 1) / points))
    [ $step -gt 0 ] || step=1
    seq $((1 + SEED * 7 % step)) $step "$total"
}
# try NAME KIND POINT COMMAND...: the call fails, and what the command does then is judged
try() {
    local name=$1 kind=$2 point=$3 status=0 why=''
    shift 3
    tried=$((tried + 1))
    export TARE_INTERPOSE_ERRNO=$((tried % 2 ? 28 : 5)) # ENOSPC, EIO
    rm -f met
    TARE_INTERPOSE=$kind=$point TARE_INTERPOSE_COUNT=$PWD/met once "$@" || status=$?
    if [ $status = 127 ] && grep -qE 'out of memory|^cannot allocate memory' err.txt; then
        : # the system's loader ends a process whose library or thread it cannot serve, with its own message
    elif [ $status = 99 ]; then
        why="the sanitizer says: $(grep -m 6 -E 'ERROR|runtime error|SUMMARY|^ +#[0-4] ' err.txt)"
    elif [ $status -ge 124 ]; then
        why="exit status $status"
    elif [ $status != 0 ] && [[ $kind != alloc && $kind != io ]]; then
        why="exit status $status"
    elif [ $status != 0 ]; then
        grep -q '^tare: ' err.txt || why="exit status $status without a message"
        [ -z "$(strange)" ] || why="it left $(strange)"
    elif [ -z "${LOOSE:-}" ]; then
        sums | cmp -s - want || why="exit status 0 and another result"
    fi
    [ ! -e met ] || grep -qv ' failed 0 ' met || unmet=$((unmet + 1))
    if [ -n "$why" ]; then
        bad "$name, $kind=$point (errno $TARE_INTERPOSE_ERRNO): $why: $(tail -2 err.txt)"
    else
        ok
    fi
}
# injected NAME COMMAND...
injected() {
    local name=$1 kind how before=$tried
    shift
    [[ $name =~ ${FAULT_ONLY:-.} ]] || return 0
    rm -f count paths
    (
        export TARE_INTERPOSE_COUNT=$PWD/count
        [ "$POINTS" != paths ] || export TARE_INTERPOSE_PATHS=$PWD/paths
        once "$@"
    ) || { bad "$name fails without a fault: $(head -3 err.txt)"; return; }
    sums > want
    for kind in $KINDS; do
        points $kind | awk -v part="${PART%/*}" -v of="${PART#*/}" 'NR % of == part % of' > points
        for how in '' +; do
            [ $kind$how != eintr+ ] || continue # nothing would ever be read
            while read -r point <&3; do try "$name" $kind "$point$how" "$@"; done 3< points
        done
    done
    once "$@" && sums | cmp -s - want || bad "$name: after all faults it does not give its result"
    [ -z "${FAULT_POINTS:-}" ] || echo "$name: $((tried - before)) points"
}
q="log.level=warn log.progress=none"

for i in $(seq 40); do echo "{\"id\":$i,\"completion\":\"it is \\\\boxed{$((i % 7))}\",\"answer\":\"3\"}"; done > verify.jsonl
INPUT=verify.jsonl
injected 'verify exact' "$TARE" verify exact
injected 'verify number' "$TARE" verify number --threads 2
[ ! -e "$TARE_PLUGIN_PATH/verifiers/math.so" ] || injected 'verify math' "$TARE" verify math
for i in $(seq 8); do echo "{\"groups\":[{\"cluster\":0,\"rewards\":[1,0,0,1]},{\"cluster\":1,\"rewards\":[0,0,1,$((i % 2))]}]}"; done > groups.jsonl
INPUT=groups.jsonl
injected 'estimate bv_blend' "$TARE" estimate bv_blend clusters=2
for i in $(seq 8); do echo "{\"id\":\"r$i\",\"ids\":[$i,5,7,9]}"; done > ids.jsonl
INPUT=ids.jsonl
injected score "$TARE" score "$MODEL"
INPUT=/dev/null
tiny_config
injected 'config dump' "$TARE" config dump tiny.ini
RESULT=(sft base)
injected sft "$TARE" sft sft.ini $q sft.steps=2
RESULT=()
rm -rf sft base
"$TARE" sft sft.ini $q > /dev/null || bad 'warm start'
injected 'config check' "$TARE" config check tiny.ini
RESULT=(run)
injected train "$TARE" train tiny.ini $q train.steps=2 checkpoint.every=1
RESULT=(evaluation)
injected eval "$TARE" eval tiny.ini $q run.dir=evaluation model.path=base
RESULT=()
rm -rf run
"$TARE" train tiny.ini $q train.steps=2 > /dev/null || bad 'training'
injected diff "$TARE" diff run run
injected verify-run "$TARE" verify-run run
RESULT=(page.html)
injected report "$TARE" report run -o page.html
RESULT=()
echo '{"id":1,"text":"1+1="}' > prompts.jsonl
INPUT=prompts.jsonl
injected tokenize "$TARE" tokenize base
injected generate "$TARE" generate base rollout.max_new_tokens=4
INPUT=ids.jsonl
injected detokenize "$TARE" detokenize base
INPUT=/dev/null
for i in $(seq 6); do echo "{\"id\":\"q$i\",\"prompt\":\"$i+$i=\",\"text\":\"$i and $i\",\"answer\":\"$((2 * i))\"}"; done > rows.jsonl
injected 'data show' "$TARE" data show tiny.ini
injected plan "$TARE" plan tiny.ini
injected audit "$TARE" audit run
"$TARE" train tiny.ini $q train.steps=1 checkpoint.every=1 run.dir=adapter lora.rank=2 > /dev/null || bad 'training of an adapter'
RESULT=(merged)
injected merge "$TARE" merge adapter merged
RESULT=()
rm -rf run
"$TARE" train tiny.ini $q train.steps=2 checkpoint.every=1 > /dev/null || bad 'training'
RESULT=(branch)
injected fork "$TARE" fork run@1 --run-dir branch $q
RESULT=(codebook.safetensors)
INPUT=rows.jsonl
injected codebook "$TARE" codebook hashed dim=16 --clusters 2 --seed 1 --restarts 1 -o codebook.safetensors
RESULT=()
"$TARE" codebook hashed dim=16 --clusters 2 --seed 1 --restarts 1 -o known.safetensors < rows.jsonl > /dev/null || bad 'a codebook'
POINTS=${FAULT_POINTS:-paths} # these take so little time that every place is tried each time
injected cluster "$TARE" cluster known.safetensors
injected embed "$TARE" embed hashed dim=16
INPUT=/dev/null
injected 'data check' "$TARE" data check rows.jsonl
RESULT=(new.ini)
injected 'config init' "$TARE" config init new.ini
printf '%d points tried, %d of them not reached\n' "$tried" "$unmet" # the order of threads moves a point a little
done_
