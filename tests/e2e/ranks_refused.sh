#!/usr/bin/env bash
# Checks refusals before the ranks can talk to each other: one message is printed and the job fails,
# also when rank 0 is slow. mpirun ends all ranks as soon as one of them ends with a status other
# than 0.
. "$(dirname "$0")/ranks.inc"
tiny_config
cat > late <<'SH' # rank 0 starts three seconds after the others
[ "$OMPI_COMM_WORLD_RANK" != 0 ] || sleep 3
exec "$@"
SH
refused() { # WHAT STATUS PATTERN command...
    local what=$1 expected=$2 pattern=$3 status=0
    shift 3
    timeout 600 $MPIRUN -n 3 "$@" > out.txt 2> err.txt || status=$?
    [ $status = "$expected" ] && ok || bad "$what: exit status $status, expected $expected"
    grep '^tare: ' err.txt | grep "$pattern" > found.txt && [ "$(messages err.txt)" = 1 ] && ok || { bad "$what: not one message with '$pattern'"; cat err.txt; }
    [ "$(left_behind)" = 0 ] && ok || bad "$what: a process remains"
    [ ! -e refused ] && ok || bad "$what: a folder remains"
}

refused "a verb of one process" 2 'tare: tare sweep runs in one process' sh late "$TARE" sweep tiny.ini

# srun without PMIx, as the ranks see it.
cat > by_srun <<'SH'
export SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=3 SLURM_PROCID=$OMPI_COMM_WORLD_RANK
exec env -u OMPI_COMM_WORLD_SIZE -u OMPI_COMM_WORLD_RANK -u PMI_SIZE -u PMI_RANK -u PMIX_RANK "$@"
SH
refused "srun without PMIx" 3 'tare: srun started 3 ranks without PMIx' sh late sh by_srun "$TARE" train tiny.ini run.dir=refused

# MPI cannot be opened, on all ranks or on one: a program without its libtare_mpi.so.
mkdir alone
cp "$TARE" alone/tare
cat > alone_on <<'SH'
rank=$1 program=$TARE
shift
[ "$OMPI_COMM_WORLD_RANK" != "$rank" ] || program=alone/tare
exec "$program" "$@"
SH
refused "no MPI on any rank" 1 'tare: there is no MPI for several ranks' sh late "$PWD/alone/tare" train tiny.ini run.dir=refused
refused "no MPI on rank 0" 1 'tare: there is no MPI for several ranks' sh alone_on 0 train tiny.ini run.dir=refused
refused "no MPI on rank 1" 1 'tare: rank 1 (host .*): there is no MPI for several ranks' sh alone_on 1 train tiny.ini run.dir=refused
done_
