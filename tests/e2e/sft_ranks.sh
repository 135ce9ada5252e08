#!/usr/bin/env bash
# Checks tare sft and tare eval on several ranks: the files are bit-identical to those of one rank.
# A training that is killed or interrupted continues on other numbers of ranks, and so does an
# evaluation. Invalid combinations are refused.
. "$(dirname "$0")/ranks.inc"
tiny_config
sft() { # RANKS OUT [key=value ...]
    local n=$1 out=$2
    shift 2
    $MPIRUN -n "$n" "$TARE" -q sft sft.ini run.threads=1 sft.steps=12 train.micro_tokens=100 sft.out="$out" "$@" > out.txt 2> err.txt
}
alike() { # WANTED HAVE
    diff -r "$1" "$2" > difference.txt && ok || bad "$2 differs from $1: $(head -2 difference.txt)"
}
"$TARE" -q sft sft.ini run.threads=2 sft.steps=12 train.micro_tokens=100 sft.out=one > out.txt 2> err.txt || { bad "one rank: $(cat err.txt)"; done_; }
for case in 2:zero3 3:zero1 4:none; do
    n=${case%:*}
    sft "$n" "r$n" dist.shard="${case#*:}" || bad "$case: $(cat err.txt)"
    alike one "r$n"
done
"$TARE" -q sft sft.ini run.threads=1 sft.steps=12 train.micro_tokens=100 sft.out=self dist.ranks=2 > out.txt 2> err.txt || bad "dist.ranks = 2: $(cat err.txt)"
alike one self
[ ! -e self.training ] && [ ! -e self.tokenizer ] && ok || bad "dist.ranks = 2 leaves files"

# Refused, with one message.
sft 2 r2 && bad "an existing result was overwritten"
grep 'sft.out = r2 exists already' err.txt > found.txt && [ "$(messages err.txt)" = 1 ] && ok || bad "an existing result: $(cat err.txt)"

# Adapters, from an existing model.
for n in 1 3; do sft $n "lora$n" model.path=one lora.rank=4 || bad "adapters on $n ranks: $(cat err.txt)"; done
alike lora1 lora3

# Killed on three ranks, interrupted on two, finished on one.
export TARE_FAULT=rank=1,stage=update,step=7,kind=kill
sft 3 broken checkpoint.every=4 && bad "the killed training ended well"
grep 'rank 1 .* failed in update of step 7: its process has died' err.txt > found.txt && [ -e broken.training/checkpoints/step-000004/complete.json ] && ok || bad "killed: $(cat err.txt)"
export TARE_FAULT=rank=1,stage=update,step=10,kind=stop
sft 2 broken checkpoint.every=4 --resume && bad "the interrupted training ended well"
grep 'interrupted after step 10 of 12; continue with: tare sft .*--resume' err.txt > found.txt && [ "$(messages err.txt)" = 1 ] && ok || bad "interrupted: $(cat err.txt)"
export TARE_FAULT=
sft 1 broken checkpoint.every=4 --resume || bad "one rank does not continue: $(cat err.txt)"
alike one broken
[ ! -e broken.training ] && ok || bad "checkpoints remain after the result"

# Evaluations.
evaluate() { # RANKS OUT [key=value ...]
    local n=$1 out=$2
    shift 2
    $MPIRUN -n "$n" "$TARE" -q eval tiny.ini run.threads=1 model.path=one model.warm_start= eval.samples=2 eval.chunk=5 eval.out="$out" "$@" > "$out.txt" 2> err.txt
}
same_evaluation() { # OUT
    local f
    for f in samples.jsonl questions.jsonl results.json eval.json; do cmp -s "e1/$f" "$1/$f" && ok || bad "$1: $f differs from that of one rank"; done
    cmp -s e1.txt "$1.txt" && ok || bad "$1: the table differs: $(head -3 "$1.txt")"
}
evaluate 1 e1 || bad "an evaluation on one rank: $(cat err.txt)"
[ "$(wc -l < e1/samples.jsonl)" -gt 10 ] && ok || bad "the evaluation has nothing to compare"
for n in 2 3; do
    evaluate $n e$n || bad "an evaluation on $n ranks: $(cat err.txt)"
    same_evaluation e$n
done
export TARE_FAULT=rank=2,stage=evaluate,step=10,kind=kill
evaluate 3 cut && bad "the killed evaluation ended well"
export TARE_FAULT=
[ "$(wc -l < cut/samples.jsonl)" = 20 ] && ok || bad "the killed evaluation has $(wc -l < cut/samples.jsonl) samples, not 20"
evaluate 2 cut || bad "the evaluation does not continue: $(cat err.txt)"
same_evaluation cut
[ "$(left_behind)" = 0 ] && ok || bad "a process remains"

# Over a run's checkpoints.
"$TARE" -q train tiny.ini model.path=one model.warm_start= log.progress=none train.steps=2 checkpoint.every=1 > out.txt 2> err.txt || bad "the run: $(cat err.txt)"
for n in 1 2; do
    $MPIRUN -n $n "$TARE" -q eval tiny.ini run.threads=1 model.warm_start= model.path=one --checkpoints run --steps 0,2 --estimate-samples 2 eval.out=over$n > over$n.txt 2> err.txt ||
        bad "checkpoints on $n ranks: $(cat err.txt)"
done
cmp -s over1.txt over2.txt && cmp -s over1/run/step-000002/samples.jsonl over2/run/step-000002/samples.jsonl && [ -s over1.txt ] && ok || bad "checkpoints: two ranks differ from one"
done_
