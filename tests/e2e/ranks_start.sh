#!/usr/bin/env bash
# Checks the start of ranks: through mpirun, and by dist.ranks alone. Ranks that differ are refused
# with the difference. Only one rank prints.
. "$(dirname "$0")/ranks.inc"
tiny_config
"$TARE" sft sft.ini 2> /dev/null
train() { "$TARE" -q train tiny.ini train.steps=2 checkpoint.every=2 log.rollouts=true "$@"; }

train run.dir=r1 dist.ranks=1 > out.txt 2> err.txt || { bad "one rank"; cat err.txt; }
for n in 2 4 8; do
    $MPIRUN -n $n "$TARE" -q train tiny.ini train.steps=2 checkpoint.every=2 log.rollouts=true run.dir=r$n > out.txt 2> err.txt && ok || { bad "$n ranks"; cat err.txt; }
    cmp -s r1/rollouts/step-000001.jsonl r$n/rollouts/step-000001.jsonl && ok || bad "$n ranks: the first step's rollouts, rewards or advantages differ from those of one rank"
done
train run.dir=self dist.ranks=2 > out.txt 2> err.txt && ok || { bad "dist.ranks = 2 without mpirun"; cat err.txt; }
cmp -s r1/rollouts/step-000001.jsonl self/rollouts/step-000001.jsonl && ok || bad "dist.ranks = 2: the first step differs"

# One progress output, one summary.
"$TARE" train tiny.ini train.steps=2 eval.after=true log.progress=lines run.dir=print dist.ranks=3 > out.txt 2> err.txt && ok || { bad "three ranks that print"; cat err.txt; }
[ "$(grep -c 'effective-signal ratio' out.txt)" = 1 ] && ok || bad "the summary is printed $(grep -c 'effective-signal' out.txt) times"
[ "$(grep -cE '^groups with an advantage +[01]\.[0-9][0-9]$' out.txt)" = 1 ] && ok || bad "the summary has no share of groups with an advantage: $(cat out.txt)"
[ "$(grep -c 'step 2/2' err.txt)" = 1 ] && ok || { bad "progress is not printed exactly once"; cat err.txt; }

# The note that ranks use to record that they have reported is not a file on disk: a killed launcher
# leaves nothing.
mkdir fake temporary
printf '#!/bin/sh\nreadlink "$TARE_LAUNCH_NOTE" > note.txt\nls -A temporary > left.txt\nkill -KILL $PPID\n' > fake/mpirun
chmod +x fake/mpirun
{ TMPDIR=$PWD/temporary PATH=$PWD/fake:$PATH "$TARE" -q train tiny.ini run.dir=note dist.ranks=2 > out.txt 2> err.txt || :; } 2> /dev/null
grep -q '^/memfd:' note.txt && ok || bad "the launcher's note is not a file in memory: $(cat note.txt)"
[ ! -s left.txt ] && [ -z "$(ls -A temporary)" ] && ok || bad "the launcher leaves its note: $(ls -A temporary)"
# When the launcher has ended and its number belongs to another process, nothing is written there.
echo mine > mine.txt
exec 7<> mine.txt
TARE_LAUNCH_NOTE=/proc/$$/fd/7 $MPIRUN -n 2 "$TARE" -q train tiny.ini run.dir=note2 no.such=key > out.txt 2> err.txt && bad "an unknown key was accepted" || ok
exec 7>&-
[ "$(cat mine.txt)" = mine ] && ok || bad "another process's file was written: $(cat mine.txt)"

# An mpirun that does not end after its ranks (Open MPI 4.1 sometimes waits for itself) is not
# waited for; the ranks' exit status counts.
printf '#!/bin/sh\nsh -c "sleep 1; exit 5" &\nexec sleep 1000\n' > fake/mpirun
status=0
PATH=$PWD/fake:$PATH timeout 300 "$TARE" -q train tiny.ini run.dir=stuck dist.ranks=2 > out.txt 2> err.txt || status=$?
[ $status = 5 ] && grep -q '^tare: a rank ended while MPI was starting.*exit status 5' err.txt && ok || bad "an mpirun that does not end: exit status $status: $(cat err.txt)"

# A TMPDIR that is not a folder gives one line and is not used.
touch plain
TMPDIR=$PWD/plain "$TARE" train tiny.ini train.steps=1 run.dir=plain-tmpdir dist.ranks=2 log.level=warn log.progress=none > out.txt 2> err.txt && [ "$(grep -c 'TMPDIR' err.txt)" = 1 ] && [ "$(wc -l < err.txt)" = 1 ] && ok ||
    { bad "TMPDIR is a file: $(wc -l < err.txt) lines"; cat err.txt; }
# Without /proc the message has the true cause.
if [ "$(id -u)" = 0 ] && unshare -m true 2> /dev/null; then
    status=0
    unshare -m --propagation private sh -c 'mount -t tmpfs none /proc && exec "$0" "$@"' "$TARE" -q train tiny.ini run.dir=no-proc dist.ranks=2 > out.txt 2> err.txt || status=$?
    [ $status = 3 ] || [ $status = 1 ] && grep -q '/proc/self/exe, which cannot be read; mount /proc' err.txt && ! grep -q 'build again' err.txt && ok || bad "without /proc: exit status $status: $(cat err.txt)"
else
    skip_part "a machine without /proc needs root"
fi

# A difference is reported once; the exit status is that of a configuration error.
refused() { # WHAT PATTERN command...
    local what=$1 pattern=$2 status=0
    shift 2
    rm -rf refused
    timeout 600 "$@" > out.txt 2> err.txt || status=$?
    [ $status = 3 ] && ok || bad "$what: exit status $status, expected 3"
    grep -q "$pattern" err.txt && ok || { bad "$what: no '$pattern'"; cat err.txt; }
    [ "$(messages err.txt)" = 1 ] && ok || { bad "$what: $(messages err.txt) messages"; cat err.txt; }
    [ "$(left_behind)" = 0 ] && ok || bad "$what: a process remains"
}
T="$TARE -q train tiny.ini run.dir=refused"
# RANK PROGRAM PLUGINS ARGUMENT ...: runs the job's command with one rank that has another program,
# other plugins or a further argument. mpirun has the form COMMAND : COMMAND for that, but the
# mpirun of Debian 13 (Open MPI 5.0.7) crashes on it.
cat > but_on <<'SH'
rank=$1 program=$2 plugins=$3
shift 3
[ "$OMPI_COMM_WORLD_RANK" = "$rank" ] || exec "$TARE" -q train tiny.ini run.dir=refused
TARE_PLUGIN_PATH=$plugins exec "$program" -q train tiny.ini run.dir=refused "$@"
SH
P=$TARE_PLUGIN_PATH
refused "another seed" "run.seed is '1' on rank 0 and '2' on rank 2" $MPIRUN -n 3 sh but_on 2 "$TARE" "$P" run.seed=2
cp "$TARE" "$(dirname "$TARE")/tare-other-$$"
printf '\n' >> "$(dirname "$TARE")/tare-other-$$"
refused "another program" "the program differs between ranks: .*hash.*rank 1" $MPIRUN -n 2 sh but_on 1 "$TARE-other-$$" "$P"
rm -f "$TARE-other-$$"
mkdir other
cp -r "${TARE_PLUGIN_PATH%%:*}/." other/
printf '\n' >> other/estimators/bv_blend.so
refused "another plugin" "estimator bv_blend is .*bv_blend.so with hash .* on rank 0 and .* on rank 1" $MPIRUN -n 2 sh but_on 1 "$TARE" "$PWD/other"
refused "another number" "dist.ranks = 3, but the launcher (mpirun, srun) started 2" $MPIRUN -n 2 $T dist.ranks=3
refused "a wrong key on one rank" "rank 1.*no key 'promts'" $MPIRUN -n 2 sh but_on 1 "$TARE" "$P" rollout.promts=3
refused "a wrong key everywhere" "no key 'promts'" $MPIRUN -n 2 $T rollout.promts=3
refused "nccl on the CPU" "dist.communicator = nccl: needs GPUs" $MPIRUN -n 2 $T dist.communicator=nccl

# Rank 0's date counts for all ranks, also when another rank's clock differs (here: by a file in its
# own folder). A date that the command gives on one rank only is refused.
mkdir -p day-0 day-1/run day-2/run
ln -s ../../day-0/run/checkpoints day-1/run/checkpoints # written by every rank
ln -s ../../day-0/run/checkpoints day-2/run/checkpoints
printf '[data]\ndate = 2020-02-02\n' > day-1/run/config.ini
sed '/^warm_start/d' tiny.ini > own_day.ini
cat > own_day <<'SH'
cd "day-$OMPI_COMM_WORLD_RANK"
[ "$OMPI_COMM_WORLD_RANK" != "$1" ] || set -- "$1" data.date=2021-03-03
shift
exec "$TARE" -q train ../own_day.ini model.path=../base train.steps=1 eval.before=false run.dir=run "$@"
SH
$MPIRUN -n 3 sh own_day none > out.txt 2> err.txt && ok || { bad "ranks with different dates"; cat err.txt; }
grep "^date = 20" day-0/run/config.ini > found.txt && ! grep 2020-02-02 found.txt > stranger.txt && ok || bad "the date differs from rank 0's: $(grep date day-0/run/config.ini)"
rm -rf day-0/run
refused "a date on one rank" "data.date is '.*' on rank 0 and '2021-03-03' on rank 2" $MPIRUN -n 3 sh own_day 2
rm -rf day-0/run
refused "a date on rank 0" "data.date is '2021-03-03' on rank 0 and '.*' on rank" $MPIRUN -n 3 sh own_day 0

# A rank that ends while MPI starts cannot report, nor can the others: the process that started them
# does.
status=0
TARE_FAULT=rank=1,stage=start,kind=kill env -u OMPI_MCA_orte_execute_quiet timeout 600 "$TARE" -q train tiny.ini run.dir=early dist.ranks=3 > out.txt 2> err.txt || status=$?
[ $status = 137 ] && ok || bad "a rank that ends while MPI starts: exit status $status, expected 137"
grep 'a rank ended while MPI was starting, before the ranks had found each other' err.txt > found.txt && [ "$(messages err.txt)" = 1 ] && ok || { bad "a rank that ends while MPI starts"; cat err.txt; }
# In most cases mpirun knows the rank and names it, else the number of ranks; when mpirun ends
# without a report, the line explains how to see more.
grep -E 'process rank 1 with PID|but 1 process returned|exit status 137 .*with the same arguments shows more' err.txt > found.txt && ok || { bad "mpirun's report is not passed on"; cat err.txt; }
[ ! -e early ] && [ "$(left_behind)" = 0 ] && ok || bad "a rank that ends while MPI starts: a folder or a process remains"

# Interrupted: after a checkpoint, exit status 130; --resume continues it.
"$TARE" -q train tiny.ini train.steps=1000000 log.progress=none run.dir=stop dist.ranks=2 > out.txt 2> err.txt &
pid=$!
# It does not end without a signal.
while kill -0 $pid 2> /dev/null && [ ! -s stop/metrics.jsonl ]; do sleep 0.1; done
kill -INT $pid
status=0
wait $pid || status=$?
[ $status = 130 ] && ok || { bad "interrupted: exit status $status, expected 130"; cat err.txt; }
[ "$(messages err.txt)" = 1 ] && grep -q 'interrupted after step' err.txt && ok || { bad "interrupted: not one message"; cat err.txt; }
done_steps=$(wc -l < stop/metrics.jsonl)
train run.dir=stop --resume --allow-change train.steps=$((done_steps + 1)) dist.ranks=1 > out.txt 2> err.txt && ok || { bad "the interrupted run does not continue"; cat err.txt; }
done_
