#!/usr/bin/env bash
# Under Slurm, where it is installed: srun starts the ranks, and dist.ranks in an allocation starts
# mpirun. Both are bit-identical to one rank; a kill ends the job step.
. "$(dirname "$0")/ranks.inc"
command -v srun > /dev/null || skip "Slurm is not installed"
timeout 10 sinfo -h 2> /dev/null | grep -qE 'idle|mix' || skip "Slurm has no free node here"
srun --mpi=list 2>&1 | grep -q pmix || skip "this Slurm has no PMIx"
tiny_config
"$TARE" sft sft.ini 2> /dev/null
T="$TARE -q train tiny.ini log.progress=none train.steps=3 checkpoint.every=3"
last=checkpoints/step-000003/model.safetensors
$T run.dir=one
timeout 120 srun --mpi=pmix -n 2 $T run.dir=two > out.txt 2> err.txt && ok || { bad "srun"; cat err.txt; }
cmp -s one/$last two/$last && ok || bad "srun: the weights differ from those of one rank"
timeout 120 salloc -Q -n 2 $T run.dir=in dist.ranks=2 > out.txt 2> err.txt && ok || { bad "dist.ranks = 2 in an allocation"; cat err.txt; }
cmp -s one/$last in/$last && ok || bad "dist.ranks = 2 in an allocation: the weights differ"
status=0
timeout 120 srun --mpi=none -n 2 $T run.dir=none > out.txt 2> err.txt || status=$?
[ $status = 3 ] && grep -q 'srun --mpi=pmix' err.txt && ok || { bad "srun without PMIx: not refused"; cat err.txt; }
status=0
TARE_FAULT=rank=1,stage=update,step=2,kind=kill timeout 120 srun --mpi=pmix -n 2 $T run.dir=killed > out.txt 2> err.txt || status=$?
[ $status != 0 ] && [ $status != 124 ] && ok || bad "a kill: exit status $status"
grep -q '^tare: rank 1 (host .*) failed in update of step 2: ' err.txt && ok || { bad "a kill: the message does not name it"; cat err.txt; }
[ "$(left_behind)" = 0 ] && ok || bad "a kill: a process remains"
done_
