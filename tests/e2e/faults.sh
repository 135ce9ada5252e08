#!/usr/bin/env bash
# Checks what a command does when the system fails it (tests/faults/interpose.c).
#
# Each allocation, each file operation, each query about a file, and each start of a process, thread
# or pipe fails once; in a second try it and all later ones fail. So does each operation of SQLite
# on its files. Each read and write transfers only half, or is interrupted.
#
# Every time the command must end in time and without a signal. Either the exit status is 0 and the
# result is the same, or the status is 1 or 3 with one line that gives the reason. In the second
# case no result has its final name, unless the command without faults would have written the same
# one, and nothing is half written. Afterwards the same command must succeed on the files that it
# left. Short or interrupted transfers and a failing database change no result, and a database that
# then lacks something has been reported. In a build with the address sanitizer only tare's own
# allocations fail, and the sanitizer finds leaks and invalid accesses. At the end faults are
# planted in the program (TARE_INTERPOSE_PLANT), and the checks must report each of them.
#
# FAULT_POINTS: the number of points tried for each command and kind (default 12, evenly spread from
# a start that FAULT_SEED moves; 4 for most commands at the end); "all": every point; "paths": every
# call path (the return addresses up the stack), at its first and its last call, which reaches every
# place of the program in a tenth of the points.
# FAULT_ONLY: a regular expression of the commands to try. FAULT_PART=2/3: the second of three parts
# of the points. FAULT_KINDS='look spawn': only these kinds.
# Figures of whole runs: docs/dev/reliability.md.
. "$(dirname "$0")/common.inc"
KINDS=${FAULT_KINDS:-alloc io db short eintr look spawn}
if [ -n "${WRAPPED:-}" ]; then
    KINDS=alloc
    export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}exitcode=99 UBSAN_OPTIONS=exitcode=99
elif [ -z "${INTERPOSE:-}" ] || [ ! -f "$INTERPOSE" ]; then
    skip "the thread sanitizer's build has an allocator of its own: faults are not injected"
fi
POINTS=${FAULT_POINTS:-12} SEED=${FAULT_SEED:-1}
PART=${FAULT_PART:-1/1}
MODEL=$SOURCE/tests/data/models/tiny/qwen3
tried=0 unmet=0 reported=0 again=0
J=$WORK # needed by the checks
mkdir place kept temporary
export TMPDIR=$WORK/temporary
cd place

INPUT=/dev/null # of the command
RESULT=() # files that it writes
FROM=() # files that it reads: they are copied from kept/ before each try
# The command that continues after a failed try, where it is not the same command; + at its start:
# these arguments are added.
NEXT=()
LEFT='' # a part of the command line of its processes, none of which may be left
DB='' # an exit status that is allowed when its database fails
ENDS='1 3' # exit statuses of a failure
MANY='' # not empty: a failure may print several lines
# Not empty: with status 0 the result may differ when err.txt has this pattern; any: in any case.
LOOSE=''
# The number of calls ("alloc 200 io 30") of processes that are killed before they can report it.
COUNT=''
fresh() { # every try makes the same calls
    [ -z "${RESULT[*]}${FROM[*]}" ] && ! compgen -G 'runs.db*' > /dev/null || rm -rf "${RESULT[@]}" "${FROM[@]}" runs.db*
    local name
    for name in "${FROM[@]}"; do cp -a "$WORK/kept/$name" .; done
}
# once COMMAND...: runs the command and keeps its standard output and exit status.
once() {
    local status=0
    LD_PRELOAD=${INTERPOSE:-} timeout -s KILL "${LIMIT:-300}" "$@" < "$INPUT" > "$J/out.txt" 2> "$J/err.txt" || status=$?
    return $status
}
# files: prints the checksums of all that the command has written, except files with times, or with
# checksums of such files
files() {
    local path
    for path in "${RESULT[@]}" "${FROM[@]}"; do
        [ ! -e "$path" ] || (find "$path" -type f ! -name metrics.jsonl ! -name chain.jsonl ! -name manifest.json ! -name lock ! -name 'events.*' ! -name 'runs.db*' ! -name log.txt | sort | xargs -r sha256sum)
    done
}
sums() {
    files
    sed 's/, [0-9.]* s$//' "$J/out.txt" # how long a codebook took
}
state() { find "$WORK/place" "$WORK/temporary" \( -type f -printf '%p %s %i %T@\n' \) -o -print; }
# strange: prints the files that a failed command has left under their final names and that differ
# from those of the command without faults. samples.jsonl grows row by row.
strange() {
    files | grep -vE '\.tmp(-[0-9]+)?(/.*)?$|/samples\.jsonl$' | sort | comm -23 - "$J/allowed"
}
# half: prints new files that are half written or should have been removed. Files cannot be removed
# when all file operations or queries fail from a point on, nor at the end that JSON without memory
# takes (core/base/json.h). A supervised training resumes from OUT.training, and begins by removing
# it.
half() {
    [[ $kind$point != io*+ && $kind$point != look*+ ]] && ! grep -q '^tare: no memory to read or write JSON' "$J/err.txt" || return 0
    find "$WORK/place" "$WORK/temporary" -mindepth 1 \( -name '*.tmp' -o -name '*.tmp-*' -o -name '*.making' -o -path "$WORK/temporary/*" \) ! -path '*.training/*' -print > "$J/half"
    [ ! -s "$J/half" ] || cut -d ' ' -f 1 "$J/before" | grep -vxF -f - "$J/half" | head -n 3
}
said() { { grep '^tare: ' "$J/err.txt" || tail -n 2 "$J/err.txt"; } | tail -n 3; }
count_errors() { # in `errors`
    local line
    errors=0
    while IFS= read -r line; do [[ ! $line =~ ^'tare: ' || $line =~ ^tare:\ (rank\ [0-9]+:\ )?warning: ]] || errors=$((errors + 1)); done < "$J/err.txt"
}
fault_met() {
    local line
    [ -e "$J/met" ] || return 1
    while IFS= read -r line; do [[ $line = *' failed 0 '* ]] || return 0; done < "$J/met"
    return 1
}
# Prints the contents of a database of runs: how far each run is, and the number of values of each
# step.
database() {
    local db
    for db in runs.db "${RESULT[@]/%//runs.db}"; do
        [ -e "$db" ] || continue
        python3 - "$db" 2> /dev/null << 'PY' || echo "not readable"
import sqlite3, sys
d = sqlite3.connect(sys.argv[1])
print(d.execute("select dir, status, step from runs order by dir").fetchall())
print(d.execute("select run, step, count(*) from metrics group by run, step order by run, step").fetchall())
PY
    done
}
# points KIND: prints the points to try, one per line.
points() {
    if [ "$POINTS" = paths ] && [ -z "$COUNT" ]; then
        awk -v k="$1" '$1 == k && $3 > n[$2] { n[$2] = $3 } END { for (p in n) { print "@" p ".1"; if (n[p] > 1) print "@" p "." n[p] } }' "$J/paths" | sort
        return
    fi
    local total step=1 points=${POINTS/paths/12}
    total=$(awk -v k="$1" '{ for (i = 1; i < NF; i += 2) if ($i == k && $(i + 1) > n) n = $(i + 1) } END { print n + 0 }' "$J/count")
    [ "$POINTS" = all ] || [ "$1" = alloc ] || [ "$1" = io ] || points=$(((POINTS + 2) / 3))
    [[ ! $1 = look && ! $1 = spawn ]] || points=$(((points + 1) / 2))
    [ "$POINTS" = all ] || step=$(((total + points - 1) / points))
    [ $step -gt 0 ] || step=1
    seq $((1 + SEED * 7 % step)) $step "$total"
}
# Prints the problem with the last try, if there is one. Two exceptions: the system's loader ends a
# process when it cannot serve a library or a thread, with its own message and status 127; the
# others are next to the command that they concern.
try_problem() { # KIND
    if [ $status = 127 ] && grep -qE 'out of memory|^cannot allocate memory' "$J/err.txt"; then
        :
    elif [ $status = 99 ]; then
        echo "the sanitizer reports: $(grep -m 6 -E 'ERROR|runtime error|SUMMARY|^ +#[0-4] ' "$J/err.txt")"
    elif [ $status -ge 124 ]; then
        echo "exit status $status"
    elif [ $status = 0 ]; then
        [ "$LOOSE" = any ] || { [ -n "$LOOSE" ] && grep -q -- "$LOOSE" "$J/err.txt"; } || sums | cmp -s - "$J/want" || echo "exit status 0 and another result"
        [ "$1" != db ] || [ ! -s "$J/database" ] || database | cmp -s - "$J/database" || grep -q 'warning: .*continues without the database' "$J/err.txt" || echo "the database lacks something, and no warning was printed"
    elif [[ $1 = short || $1 = eintr || ($1 = db && $status != "$DB") ]]; then
        echo "exit status $status"
    elif [[ ! " $ENDS " = *" $status "* ]]; then
        echo "exit status $status"
    else
        count_errors
        [ "$errors" -ge 1 ] || [ "$MANY" = any ] || echo "exit status $status without a message"
        # When a rank ends, the others report that it is lost.
        [ "$errors" -le 1 ] || grep -q '^tare: no memory to read or write JSON' "$J/err.txt" ||
             [ -n "$MANY" ] || echo "$errors messages"
        [ "$same" = 1 ] || [ -z "$(strange)" ] || echo "it left $(strange)"
        [ "$same" = 1 ] || [ -z "$(half)" ] || echo "half written: $(half)"
    fi
    [ -z "$LEFT" ] || ! pgrep -f "$LEFT" > "$J/left" || echo "a process is left"
    [ "$1" != db ] || fault_met || ! grep -q 'continues without the database' "$J/err.txt" || echo "a database that did not fail was given up"
}
# After a failure, stores in `why` the result of the command that continues. When the try has left
# nothing, this is the command without faults.
goes_on() {
    why=''
    [ $same = 0 ] || return 0
    # The files are complete: only a sync after them failed.
    [ -z "$(files)" ] || ! files | cmp -s - "$J/whole" || return 0
    again=$((again + 1))
    ! { once "$@" && sums | cmp -s - "$J/want"; } || return 0
    [ "${NEXT[0]:-}" != + ] || set -- "$@" "${NEXT[@]:1}"
    [ "${NEXT[0]:-+}" = + ] || set -- "${NEXT[@]}"
    ! { [ ${#NEXT[@]} != 0 ] && once "$@" && sums | cmp -s - "$J/want"; } || return 0
    why="the next one does not work on what it left: $(tail -n 1 "$J/err.txt")"
}
# try NAME KIND POINT COMMAND...: makes the call fail and checks what the command does then.
try() {
    local name=$1 kind=$2 point=$3 status=0 why='' errors=0 same=0
    shift 3
    tried=$((tried + 1))
    case $kind in # a full or failing disk; no memory or such a disk; no processes or no memory
    look) TARE_INTERPOSE_ERRNO=$((tried % 2 ? 12 : 5)) ;;
    spawn) TARE_INTERPOSE_ERRNO=$((tried % 2 ? 11 : 12)) ;;
    *) TARE_INTERPOSE_ERRNO=$((tried % 2 ? 28 : 5)) ;;
    esac
    export TARE_INTERPOSE_ERRNO
    fresh
    state > "$J/before"
    rm -f "$J/met"
    TARE_INTERPOSE=$kind=$point TARE_INTERPOSE_COUNT=$J/met once "$@" || status=$?
    [ $status = 0 ] || ! state | cmp -s - "$J/before" || same=1
    why=$(try_problem "$kind")
    [ ! -e "$J/met" ] || fault_met || unmet=$((unmet + 1))
    if [ -n "$why" ]; then
        bad "$name, $kind=$point (errno $TARE_INTERPOSE_ERRNO): $why: $(said)"
    else
        ok
    fi
    [ $status != 0 ] || return 0
    reported=$((reported + 1))
    goes_on "$@"
    [ $same = 1 ] || rm -rf "$WORK"/place/*.tmp* "$WORK"/temporary/*
    [ -z "$why" ] || bad "$name, $kind=$point (errno $TARE_INTERPOSE_ERRNO): $why"
}
# known NAME COMMAND...: stores the result without a fault and the number of calls.
known() {
    rm -f "$J/count" "$J/paths"
    fresh
    files > "$J/found"
    (
        export TARE_INTERPOSE_COUNT=$J/count
        [ "$POINTS" != paths ] || export TARE_INTERPOSE_PATHS=$J/paths
        once "${@:2}"
    ) || { bad "$1 fails without a fault: $(head -n 3 "$J/err.txt")"; return 1; }
    sums > "$J/want"
    files > "$J/whole"
    sort "$J/want" "$J/found" > "$J/allowed"
    [ -z "$COUNT" ] || echo "$COUNT" end > "$J/count"
    : > "$J/database"
    [[ " $KINDS " != *" db "* ]] || ! has_python || database > "$J/database"
}
# injected NAME COMMAND...: tries the faults of all kinds.
injected() {
    local name=$1 kind how before=$tried
    shift
    [[ $name =~ ${FAULT_ONLY:-.} ]] || return 0
    known "$name" "$@" || return 0
    for kind in $KINDS; do
        points $kind | awk -v part="${PART%/*}" -v of="${PART#*/}" 'NR % of == part % of' > "$J/points"
        for how in '' +; do
            [ $kind$how != eintr+ ] || continue # nothing would ever be read
            while read -r point <&3; do try "$name" $kind "$point$how" "$@"; done 3< "$J/points"
        done
    done
    fresh
    once "$@" && { [ -n "$LOOSE" ] || sums | cmp -s - "$J/want"; } || bad "$name: after all faults the result is not reached: $(said)"
    fresh
    [ -z "${FAULT_POINTS:-}" ] || echo "$name: $((tried - before)) points"
}
# planted PLANT KIND POINTS PATTERN COMMAND...: checks that a faulty program (TARE_INTERPOSE_PLANT)
# is reported, with PATTERN, at one of these points.
planted() {
    local plant=$1 kind=$2 pattern=$4 before=$failed tried_before=$tried point
    local -a points=($3)
    shift 4
    [[ planted =~ ${FAULT_ONLY:-.} ]] && [[ " $KINDS " = *" $kind "* ]] || return 0
    known planted "$@" || return 0
    export TARE_INTERPOSE_PLANT=$plant
    : > "$J/reported"
    for point in "${points[@]}"; do
        # From the end.
        [ "${point%+}" -gt 0 ] || point=$(($(awk -v k="$kind" '{ for (i = 1; i < NF; i += 2) if ($i == k) n = $(i + 1) } END { print n + 0 }' "$J/count") + ${point%+}))+
        try planted "$kind" "$point" "$@" >> "$J/reported"
    done
    unset TARE_INTERPOSE_PLANT
    failed=$before tried=$tried_before
    grep -q -- "$pattern" "$J/reported" && ok || bad "planted ($plant, $kind): the faulty program was not reported: $(cat "$J/reported")"
}
# paths KINDS COMMAND...: tries each call path of these kinds alone.
paths() {
    local kind kinds=''
    for kind in $1; do [[ " $KINDS " != *" $kind "* ]] || kinds="$kinds $kind"; done
    KINDS=$kinds POINTS=${FAULT_POINTS:-paths} "${@:2}"
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
NEXT=(+ --resume)
injected sft "$TARE" sft sft.ini $q sft.steps=2
RESULT=() NEXT=()
rm -rf sft base
"$TARE" sft sft.ini $q > /dev/null || bad 'warm start'
MANY=1 # it prints every error that it meets
injected 'config check' "$TARE" config check tiny.ini
MANY=''
RESULT=(run) NEXT=(+ --resume)
injected train "$TARE" train tiny.ini $q train.steps=2 checkpoint.every=1
RESULT=(evaluation)
injected eval "$TARE" eval tiny.ini $q run.dir=evaluation model.path=base
RESULT=() NEXT=()
rm -rf run
"$TARE" train tiny.ini $q train.steps=2 > /dev/null || bad 'training'
ENDS=2 # 1: the runs differ or the run is not as written; a fault must not give either
injected diff "$TARE" diff run run
injected reproduce "$TARE" reproduce run
paths look injected 'reproduce, questions' "$TARE" reproduce run
ENDS='1 3'
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
ENDS=2 # 1: findings
injected audit "$TARE" audit run
ENDS='1 3'
"$TARE" train tiny.ini $q train.steps=1 checkpoint.every=1 run.dir=adapter lora.rank=2 > /dev/null || bad 'training of an adapter'
RESULT=(merged)
injected merge "$TARE" -q merge adapter merged
RESULT=()
rm -rf run
"$TARE" train tiny.ini $q train.steps=2 checkpoint.every=1 > /dev/null || bad 'training'
RESULT=(branch) NEXT=("$TARE" train branch --resume)
injected fork "$TARE" -q fork run@1 --run-dir branch $q
RESULT=(codebook.safetensors) NEXT=()
INPUT=rows.jsonl
injected codebook "$TARE" cluster train hashed dim=16 --clusters 2 --seed 1 --restarts 1 -o codebook.safetensors
RESULT=()
"$TARE" cluster train hashed dim=16 --clusters 2 --seed 1 --restarts 1 -o known.safetensors < rows.jsonl > /dev/null || bad 'a codebook'
POINTS=${FAULT_POINTS:-paths} # these take so little time that every point is tried each time
injected cluster "$TARE" cluster assign known.safetensors
injected embed "$TARE" cluster embed hashed dim=16
INPUT=/dev/null
injected 'data check' "$TARE" data check rows.jsonl
RESULT=(new.ini)
injected 'config init' "$TARE" config init new.ini
RESULT=()
injected 'config diff' "$TARE" config diff run tiny.ini
injected watch env LC_ALL=C "$TARE" watch run # without memory for a locale it draws in ASCII
injected 'ladder list' "$TARE" ladder --list
POINTS=${FAULT_POINTS:-4} # the rest takes longer
LOOSE='warning: .*cannot be used' # the other problems are listed
injected 'plugin list' "$TARE" plugin list
LOOSE=''
injected 'plugin info' "$TARE" plugin info grpo
LOOSE=any MANY=any # a table of the plugin's behaviour, with reasons and times
injected 'plugin check' "$TARE" -q plugin check grpo --only order --in-process
LOOSE='' MANY=''
echo '{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}' > chat.jinja
echo '{"messages":[{"role":"user","content":"1+1="}],"add_generation_prompt":true}' > chat.jsonl
INPUT=chat.jsonl
injected chat "$TARE" chat "$MODEL" template=chat.jinja
INPUT=/dev/null
# It prints the facts of the machine, also unknown ones; free memory and free disk space differ each
# time.
LOOSE=any MANY=any
injected doctor "$TARE" doctor tiny.ini
LOOSE='' MANY=''
injected variance "$TARE" -q variance tiny.ini --prompts 2 --rollouts 4 --groups 2 --batch 2 --warm 0 --width 64 --bootstrap 100 --estimator grpo --group-sizes 2

# Verifiers in separate processes: the faults hit the command or its workers.
cat > judge.sh <<'SH'
while read -r line; do case $line in *[02468]\",*) echo '{"reward":1}' ;; *) echo '{"reward":0}' ;; esac; done
SH
INPUT=verify.jsonl
injected 'verify command' "$TARE" verify command command='sh judge.sh'
paths alloc injected 'verify command, memory' "$TARE" verify command command='sh judge.sh'
injected 'verify isolate' env TARE_INTERPOSE_PROCESS=first "$TARE" verify exact --isolate
COUNT='alloc 60 io 12 look 12 short 12 eintr 12 db 0 spawn 0'
injected 'verify isolate, in the worker' env TARE_INTERPOSE_PROCESS=later "$TARE" verify exact --isolate
COUNT=''
INPUT=/dev/null

# Commands that continue something: a copy of it is made before each try.
killed_at update 2 "$TARE" train tiny.ini $q train.steps=2 checkpoint.every=1 run.dir=resumed && mv resumed "$WORK/kept" || bad 'a killed training'
killed_at update 2 "$TARE" sft sft.ini $q sft.steps=2 checkpoint.every=1 sft.out=taught || bad 'a killed warm start'
mv taught.training "$WORK/kept"
FROM=(resumed)
injected 'train --resume' "$TARE" train tiny.ini $q train.steps=2 checkpoint.every=1 run.dir=resumed --resume
FROM=(taught.training) RESULT=(taught)
injected 'sft --resume' "$TARE" sft sft.ini $q sft.steps=2 checkpoint.every=1 sft.out=taught --resume
FROM=() RESULT=(swept) NEXT=(+ --retry)
cat tiny.ini - > sweep.ini <<'INI'
[sweep]
name = s
estimator.plugin = grpo, bv_blend
INI
POINTS=${FAULT_POINTS:-2}
# Only the database has the cells' progress; the same command continues.
LEFT='run.dir=[^ ]*swept' DB=1
injected sweep env TARE_INTERPOSE_PROCESS=first "$TARE" sweep sweep.ini $q train.steps=1 sweep.dir=swept sweep.metric=reward/mean
RESULT=() NEXT=() DB='' LEFT=''
# A server that is asked once: the answer, status 500, or an end with a message.
cat > ask.sh <<'SH'
: > ../port.txt
"$TARE" serve tiny="$1" --port 0 > ../port.txt & pid=$!
until port=$(sed -n 's/.*http:[^ ]*:\([0-9]*\)\/v1.*/\1/p' ../port.txt) && [ -n "$port" ]; do [ -e /proc/$pid/exe ] || { wait $pid; exit; }; sleep 0.02; done
body='{"model":"tiny","prompt":"1+1=","max_tokens":4,"temperature":0}'
if exec 3<> /dev/tcp/127.0.0.1/$port; then
    printf 'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' ${#body} "$body" >&3
    answer=$(cat <&3)
fi 2> /dev/null
kill -TERM $pid 2> /dev/null
wait $pid || exit
case $answer in
'HTTP/1.1 200 '*) echo "$answer" | sed -n 's/.*"text": *\("[^"]*"\).*/\1/p' ;;
*) echo "tare: answered: ${answer:-nothing}" | head -n 1 >&2; exit 1 ;;
esac
SH
injected serve env TARE_INTERPOSE_OWN=1 bash ask.sh base

# Two ranks, one of which has the fault: the job ends on both. MPI's own libraries leak memory,
# which the address sanitizer reports.
if [ -z "${WRAPPED:-}" ] && command -v mpirun > /dev/null && "$TARE" doctor 2> /dev/null | grep '^ok *mpi ' > /dev/null; then
    # When a rank ends before the ranks are connected, the launcher reports it as well.
    RESULT=(ranks) NEXT=(+ --resume) LEFT='run.dir=[r]anks' MANY=1
    POINTS=${FAULT_POINTS:-2}
    injected ranks env TARE_INTERPOSE_PROCESS=rank1 TARE_INTERPOSE_OWN=1 "$TARE" train tiny.ini $q train.steps=1 checkpoint.every=1 dist.ranks=2 run.threads=1 run.dir=ranks
    RESULT=() NEXT=() LEFT='' MANY=''
fi

# Planted faults: the program uses NULL, ends without a message or a result, waits for ever, ignores
# a failed write, or takes a damaged database for complete.
INPUT=groups.jsonl
planted crash alloc 9 'exit status 139\|sanitizer says' "$TARE" estimate bv_blend clusters=2
planted quiet alloc 9 'without a message' "$TARE" estimate bv_blend clusters=2
planted 'done' alloc 9 'another result' "$TARE" estimate bv_blend clusters=2
LIMIT=0.5 planted wait alloc 9 'exit status 137' "$TARE" estimate bv_blend clusters=2
INPUT=/dev/null RESULT=(new.ini)
planted hide io '1 2 3 4 5 6 7 8 9' 'another result' "$TARE" config init new.ini
RESULT=(run)
planted hide db '-32 -35' 'database lacks something' "$TARE" train tiny.ini $q train.steps=1
RESULT=()
# The order of the threads moves a point a little.
printf '%d points tried, %d of them not reached; %d ended with an error, %d of which left files from which the next command continued\n' "$tried" "$unmet" "$reported" "$again"
done_
