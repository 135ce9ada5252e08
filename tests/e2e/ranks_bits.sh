#!/usr/bin/env bash
# Checks that one flipped bit in a rank's weights (kind = flip, core/base/fault.h) is found: in its
# own memory when an update begins, with each dist.shard, and in another rank's slice after it
# arrived. Otherwise ranks would learn from other weights, or differ. It is found in that step, one
# message names the rank, nothing is saved, and --resume ends bit-identical to an undisturbed run.
# This holds for supervised training, too.
. "$(dirname "$0")/ranks.inc"
tiny_config
easy_judge
STEPS=4
"$TARE" sft sft.ini 2> /dev/null
job() { # VERB FILE [key=value ...]: on two ranks
    local verb=$1 file=$2
    shift 2
    timeout 600 $MPIRUN -x TARE_FAULT -n 2 "$TARE" -q "$verb" "$file" "$@"
}
export TARE_FAULT=
KEYS=(log.progress=none train.steps=$STEPS checkpoint.every=1 data.eval= eval.before=false eval.after=false run.threads=1)
train() { job train tiny.ini "${KEYS[@]}" "$@"; }
train run.dir=whole > out.txt 2> err.txt && ok || { bad "two ranks: $(cat err.txt)"; done_; exit 1; }
holds='the weights that rank R holds changed since the last optimizer step'
arrived='unit [0-9]* of the weights arrived with digest [0-9a-f]*, rank [01] trained\|the weights that rank 1 samples from .* are not those of rank 0'
for case in "weights 0 zero3" "weights 1 zero1" "weights 0 none" "gathered 1 zero3"; do
    read -r point rank shard <<< "$case"
    rm -rf run
    status=0
    TARE_FAULT=stage=$point,rank=$rank,step=3,kind=flip train run.dir=run dist.shard="$shard" > out.txt 2> err.txt || status=$?
    [ $status = 1 ] && [ "$(messages err.txt)" = 1 ] && ok || bad "$case: exit status $status: $(cat err.txt)"
    says=$arrived
    [ $point = gathered ] || says=${holds/R/$rank}
    grep -q 'step 3' err.txt && grep -q "$says" err.txt && ok || bad "$case: the message does not name it: $(cat err.txt)"
    [ "$(left_behind)" = 0 ] && [ -e run/checkpoints/step-000002 ] && [ ! -e run/checkpoints/step-000003 ] && ok || bad "$case: $(ls run/checkpoints)"
    train run.dir=run dist.shard="$shard" --resume > out.txt 2> err.txt && ok || bad "$case: does not continue: $(cat err.txt)"
    cmp -s whole/checkpoints/step-00000$STEPS/model.safetensors run/checkpoints/step-00000$STEPS/model.safetensors && ok || bad "$case: the weights differ"
done
tune() { job sft sft.ini model.path=base model.init= sft.steps=$STEPS checkpoint.every=1 run.threads=1 "$@"; }
tune sft.out=straight > out.txt 2> err.txt && ok || bad "supervised training: $(cat err.txt)"
TARE_FAULT=stage=weights,rank=1,step=3,kind=flip tune sft.out=turned > out.txt 2> err.txt && bad 'supervised: not found' || ok
[ "$(messages err.txt)" = 1 ] && grep -q "${holds/R/1}" err.txt && [ ! -e turned ] && ok || bad "supervised training: $(cat err.txt)"
tune sft.out=turned --resume > out.txt 2> err.txt && cmp -s straight/model.safetensors turned/model.safetensors && ok || bad "supervised training, resumed: $(cat err.txt)"
done_
