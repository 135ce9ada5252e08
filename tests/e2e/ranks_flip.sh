#!/usr/bin/env bash
# One bit of a message between ranks is turned on its way (tests/faults/proxy.py): MPI over TCP gives no sums of its own. Whichever long message it is (the packed batch, gradients on
# their way to their owners, weights that are gathered), it is found in that step, before it is learnt from, and named; --resume goes on to the bits of a run without it.
. "$(dirname "$0")/ranks.inc"
[ -n "${PROXY:-}" ] && [ -f "$PROXY" ] || skip "a sanitizer's build has an allocator of its own: nothing is preloaded into it"
command -v python3 > /dev/null || skip "what python3 checks: it is not installed"
export OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo
tiny_config
easy_judge
STEPS=4
"$TARE" sft sft.ini 2> /dev/null
command=("$TARE" -q train tiny.ini log.progress=none log.rollouts=true train.steps=$STEPS checkpoint.every=1 checkpoint.keep=0 data.eval= eval.before=false eval.after=false)
mkfifo open
python3 "$SOURCE/tests/faults/proxy.py" . < open &
exec 9> open
while [ ! -e port ]; do sleep 0.05; done
through="-x LD_PRELOAD=$PROXY -x TARE_PROXY=$(cat port)"
job() { # [key=value ...]: two ranks, through the proxy
    timeout 600 $MPIRUN $through -x TARE_FAULT -n 2 "${command[@]}" "$@"
}
frozen() { # waits until a process of this job has stopped itself; prints it
    local f
    for ((i = 0; i < 2400; i++)); do
        for f in $(grep -lzx "MARK=$MARK" /proc/[0-9]*/environ 2> /dev/null); do
            [ "$(sed -n 's/^State:\t\(.\).*/\1/p' "${f%environ}status" 2> /dev/null)" = T ] && echo "$(basename "$(dirname "$f")")" && return
        done
        sleep 0.05
    done
    return 1
}
same() { cmp -s "whole/checkpoints/step-00000$STEPS/model.safetensors" "$1/checkpoints/step-00000$STEPS/model.safetensors"; }
export TARE_FAULT=
job run.dir=whole > out.txt 2> err.txt && ok || { bad "two ranks through the proxy: $(tail -2 err.txt)"; done_; exit 1; }
found=0
for after in 0 3 8 13 20 24 28; do # long messages of the step before the one that is changed; how many there are is the machine's affair
    rm -rf flipped run
    status=0
    TARE_FAULT=rank=1,stage=rollout,step=2,kind=freeze job run.dir=run > out.txt 2> err.txt &
    pid=$!
    who=$(frozen) || { bad "does not come to step 2: $(tail -2 err.txt)"; kill $pid; wait $pid; continue; }
    echo $after > flip.new
    mv flip.new flip
    kill -CONT "$who"
    { wait $pid || status=$?; } 2> /dev/null
    echo "after $after long messages: exit status $status: $(cat err.txt)"
    rm -f flip
    [ -e flipped ] || continue # it ended before
    found=$((found + 1))
    [ "$(left_behind)" = 0 ] && ok || bad "after $after: a process is left"
    [ $status = 1 ] && [ "$(messages err.txt)" = 1 ] && ok || bad "after $after: exit status $status: $(cat err.txt)"
    grep -qE 'of step [23]: |^tare: step [23], ' err.txt && grep -qE '(gradients|weights) that rank [01] sent to rank [01] were changed on their way|unit [0-9]* of the weights arrived with digest|a packed batch was changed on its way|the weights that rank 1 samples from .* are not those of rank 0' err.txt && ok ||
        bad "after $after: not named: $(cat err.txt)"
    [ ! -e "run/checkpoints/step-00000$STEPS" ] && ok || bad "after $after: the run went on"
    job run.dir=run --resume > out.txt 2> err.txt && ok || bad "after $after: does not go on: $(tail -2 err.txt)"
    same run && ok || bad "after $after: the weights differ"
    "$TARE" -q verify-run run > out.txt 2>&1 && ok || bad "after $after: verify-run: $(tail -2 out.txt)"
done
[ $found -ge 4 ] && ok || bad "only $found messages were changed"
done_
