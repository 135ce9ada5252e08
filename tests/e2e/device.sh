#!/usr/bin/env bash
# Checks run.device = cuda without a GPU. First the errors: one line each with what is missing. Then
# the whole program on an emulated device (tests/device/fake.c), whose memory the host cannot access
# and whose operations are the CPU's. A run there, saved, resumed, evaluated and used for
# generation, is bit-identical to the run on the CPU. A lost device ends the run with its last
# checkpoint intact.
. "$(dirname "$0")/common.inc"
tiny_config
"$TARE" sft sft.ini 2> /dev/null

# ---- errors of one line
# one_line WORDS COMMAND...: checks that the command fails with one line on standard error that has
# the words
one_line() {
    local words=$1
    shift
    if "$@" > out.txt 2> error.txt; then
        bad "$* was accepted"
    elif [ "$(grep -vc '^$' error.txt)" != 1 ] || ! grep -q -- "$words" error.txt; then
        bad "$*: expected one line with '$words'"
        cat error.txt
    else
        ok
    fi
}
cuda="run.device=cuda log.progress=none train.steps=1"
one_line 'run.device = cuda: libtare_cuda.so: not found (/nowhere/libtare_cuda.so)' env TARE_CUDA=/nowhere/libtare_cuda.so "$TARE" train tiny.ini run.dir=e1 $cuda
one_line 'run.device = cuda: libtare_cuda.so: not found' env TARE_CUDA=/nowhere/libtare_cuda.so "$TARE" eval tiny.ini run.dir=e2 $cuda
echo "no object" > broken.so
one_line 'broken.so cannot be loaded' env TARE_CUDA="$PWD/broken.so" "$TARE" train tiny.ini run.dir=e3 $cuda
[ -n "${TARE_PLUGIN_PATH:-}" ] && plugin=$(ls "${TARE_PLUGIN_PATH%%:*}"/*.so 2> /dev/null | head -1) || plugin=
[ -z "$plugin" ] || one_line 'it is not the CUDA backend of tare' env TARE_CUDA="$plugin" "$TARE" train tiny.ini run.dir=e4 $cuda
one_line 'run.kernels = avx2: must be auto with run.device = cuda' "$TARE" train tiny.ini run.dir=e5 $cuda run.kernels=avx2
# The backend is built here, but there is no GPU
if [ -e "$(dirname "$TARE")/libtare_cuda.so" ] && [ ! -e /dev/nvidiactl ]; then
    one_line 'run.device = cuda: no NVIDIA driver on this machine' env -u TARE_CUDA "$TARE" train tiny.ini run.dir=e6 $cuda
fi

# ---- the emulated device
[ -e "${TARE_FAKE:-}" ] || { skip_part "the fake device is not built"; done_; exit; }
export TARE_CUDA=$TARE_FAKE
int8='model.weights = int8: supported on the CPU only'
one_line "$int8" "$TARE" train tiny.ini run.dir=e7 $cuda lora.rank=4 model.weights=int8
run() { "$TARE" train tiny.ini log.progress=none log.rollouts=true train.steps=6 checkpoint.every=2 "$@" > /dev/null 2> log.txt; }
same_run() { # DIR DIR: compares the last checkpoint's weights, the training state, and the rollouts
    local last
    last=$(ls "$1/checkpoints" | tail -1)
    for file in $(cd "$1/checkpoints/$last" && ls | grep -E 'safetensors$|state$'); do
        cmp -s "$1/checkpoints/$last/$file" "$2/checkpoints/$last/$file" && ok || bad "$2: $last/$file differs"
    done
    for step in "$1"/rollouts/*; do cmp -s "$step" "$2/rollouts/${step##*/}" && ok || bad "$2: rollouts of ${step##*/} differ"; done
}
more="loss.kl_coef=0.05 loss.kl=exact loss.entropy_coef=0.01 rollout.top_k=20 rollout.top_p=0.95 rollout.min_p=0.01 loss.old_logprobs=recompute"
run run.dir=cpu $more || { bad "the run on the CPU failed"; cat log.txt; }
run run.dir=fake run.device=cuda $more || { bad "the run on the fake device failed"; cat log.txt; }
same_run cpu fake
run run.dir=cpu16 model.dtype=bf16 train.recompute=none || { bad "the run in bf16 failed"; cat log.txt; }
run run.dir=fake16 run.device=cuda model.dtype=bf16 train.recompute=none || { bad "the run in bf16 on the fake device failed"; cat log.txt; }
same_run cpu16 fake16
run run.dir=norms16 run.device=cuda model.dtype=bf16 train.recompute=norms || { bad "the run that recomputes norms failed"; cat log.txt; }
same_run cpu16 norms16

for where in cpu fake; do
    device=$([ $where = cpu ] && echo cpu || echo cuda)
    printf '{"id":"a","text":"12+34="}\n{"id":"b","text":"7*8="}\n' |
        "$TARE" generate base run.device=$device rollout.group_size=3 rollout.max_new_tokens=8 run.seed=4 > generated.$where 2> log.txt ||
        { bad "generate on $where failed"; cat log.txt; }
done
cmp -s generated.cpu generated.fake && ok || bad "generated texts differ"

# ---- run.deterministic reaches the operations of every command
# invariant VALUE COMMAND...: checks how many operations of a command were asked for
# batch_invariant: "some" or "none"
invariant() {
    rm -f report.txt
    TARE_FAKE_REPORT=$PWD/report.txt "${@:2}" run.device=cuda run.deterministic="$1" > out.txt 2> log.txt < /dev/null || { bad "${*:2}"; cat log.txt; }
    awk '/^region/ { print ($10 > 0 && $10 < $12) ? "some" : $10 ? "all" : "none" }' report.txt
}
for value in true batch_invariant; do
    want=$([ $value = batch_invariant ] && echo some || echo none)
    rm -rf evaluated taught warm warmed
    [ "$(invariant $value "$TARE" eval tiny.ini model.path=base eval.out=evaluated eval.max_new_tokens=4)" = "$want" ] && ok || bad "eval, run.deterministic=$value: $(cat report.txt)"
    [ "$(invariant $value "$TARE" sft sft.ini sft.out=taught sft.steps=2)" = "$want" ] && ok || bad "sft, run.deterministic=$value: $(cat report.txt)"
    sed 's/^out = base/out = warm/; s/^steps = .*/steps = 2/' sft.ini > warm.ini
    [ "$(invariant $value "$TARE" train tiny.ini model.path=warm model.warm_start=warm.ini run.dir=warmed train.steps=1 log.progress=none)" = "$want" ] && ok ||
        bad "train after a warm start, run.deterministic=$value: $(cat report.txt)"
done
cmp -s evaluated/samples.jsonl <(rm -rf again && "$TARE" eval tiny.ini model.path=base eval.out=again eval.max_new_tokens=4 > /dev/null 2>&1 && cat again/samples.jsonl) && ok || bad "the evaluation on the fake device has other samples than on the CPU"

# ---- memory: one region of the size that `tare plan` prints, reserved before the model is loaded
rm -f report.txt
TARE_FAKE_REPORT=$PWD/report.txt run run.dir=region run.device=cuda $more eval.every=3 || { bad "the run in a region failed"; cat log.txt; }
read -r _ region _ most _ taken _ beyond _ < report.txt
[ "$taken" = 1 ] && [ "$beyond" = 0 ] && [ "$most" -le "$region" ] && [ "$most" -gt 1000000 ] && ok ||
    { bad "the device was not asked for memory exactly once"; cat report.txt log.txt; }
planned=$("$TARE" plan tiny.ini run.device=cuda plan.memory=4GB log.rollouts=true train.steps=6 $more eval.every=3 --json |
    sed 's/.*"device": *\([0-9]*\).*/\1/')
# `tare plan` counts weights as a GPU packs them. This device packs like the CPU, in whole panels,
# which takes slightly more.
[ "$region" -ge "$planned" ] && [ $((region * 100)) -le $((planned * 101)) ] && ok || bad "the region has $region bytes, tare plan prints $planned"
if TARE_FAKE_MEMORY=$((region / 2)) TARE_FAKE_REPORT=$PWD/none.txt run run.dir=small run.device=cuda $more; then
    bad "a run that does not fit was accepted"
elif grep -q '^does not fit: a device needs' log.txt && grep -q '^  activations ' log.txt && grep -q '^  margin ' log.txt &&
    grep -q '(see the table above)' log.txt && [ ! -e small/checkpoints ] && grep -q 'region 0 most 0 taken 0' none.txt; then
    ok
else
    bad "a run that does not fit must end before step 0 with the plan's table"
    cat log.txt none.txt
fi
grep -q 'rollout.kv_tokens=[0-9]* saves\|train.micro_tokens=[0-9]* saves\|on [0-9]* ranks it does' log.txt && ok || bad "the table has no advice"
if TARE_FAKE_MEMORY=100000 "$TARE" generate base run.device=cuda < /dev/null > out.txt 2> log.txt; then
    bad "a model that does not fit was accepted"
else
    grep -q 'no memory for .*: [0-9.]* MiB requested, the device has [0-9.]* MiB free' log.txt && ok || { bad "out of memory: the message must say for what and how much"; cat log.txt; }
fi

# ---- no step waits for the device more often than it must. The difference between runs of four and
# of three steps: STAGE -> waits, bytes copied to the host
for steps in 3 4; do
    rm -f waits.$steps
    TARE_FAKE_REPORT=$PWD/waits.$steps run run.dir=waits$steps run.device=cuda train.steps=$steps train.minibatch=8 checkpoint.every=0 $more ||
        { bad "the run of $steps steps failed"; cat log.txt; }
done
added() { # STAGE
    awk -v stage="in $1" 'index($0, stage) { w = $2 - w; b = $4 - b } END { print w, b }' waits.3 waits.4
}
at_most() { # STAGE WAITS BYTES
    read -r waits bytes <<< "$(added "$1")"
    [ "$waits" -gt 0 ] && [ "$waits" -le "$2" ] && [ "$bytes" -le "$3" ] && ok || bad "$1: $waits waits and $bytes bytes per step; at most $2 and $3 are needed"
}
at_most "the compute copy of the weights" 4 0 # 4 optimizer steps
at_most "the gradient's norm" 8 40000         # whatever the number of layers
at_most "the head" 20 3000 # a chunk of some tokens: the logprobs, and the wait for them
at_most "backward pass" 10 0 # one micro-batch
# Twice one token of all completions, twice a prefill pass, of which the first ends six prompts
at_most "drawing tokens" 20 2400

# ---- two ranks, each with its own device: the weights of one rank on the CPU, one region per rank
# (leaks in MPI belong to MPI)
"$TARE" doctor > doctor.txt 2> /dev/null || true
if command -v mpirun > /dev/null && grep -q '^ok *mpi ' doctor.txt; then
    rm -f report.txt
    run run.dir=one dist.gradient_shards=2 || { bad "the run on one rank failed"; cat log.txt; }
    ASAN_OPTIONS=detect_leaks=0 TARE_FAKE_REPORT=$PWD/report.txt run run.dir=two dist.gradient_shards=2 dist.ranks=2 dist.communicator=mpi run.device=cuda || { bad "the run on two ranks failed"; cat log.txt; }
    cmp -s one/checkpoints/step-000006/model.safetensors two/checkpoints/step-000006/model.safetensors && ok || bad "two ranks: the weights differ from those of one rank"
    [ "$(grep -c 'taken 1 beyond 0' report.txt)" = 2 ] && ok || { bad "not one region per rank"; cat report.txt; }
else
    skip_part "two ranks: no MPI"
fi

# ---- a lost device: the run ends with an error of one line, its last checkpoint is intact, and the
# run can be resumed from there
for operation in 900 2500 4000; do
    rm -rf lost
    TARE_FAKE_FAIL=$operation run run.dir=lost run.device=cuda $more && { bad "operation $operation is not reached"; continue; }
    grep -q 'the device was lost' log.txt && ok || { bad "the error does not report the lost device"; cat log.txt; }
    ls lost/checkpoints 2> /dev/null | grep -q tmp && bad "an incomplete checkpoint remains"
    resume=$(ls lost/checkpoints 2> /dev/null | grep -q 'step-[0-9]*$' && echo --resume || rm -rf lost)
    run run.dir=lost run.device=cuda $more $resume || { bad "the run cannot be resumed after a lost device"; cat log.txt; }
    same_run cpu lost
done
done_
