#!/usr/bin/env bash
# Checks the same run on 1, 2, 3, 4 and 8 ranks with every value of dist.shard. Rollouts, metrics,
# the estimator's states and the weights are bit-identical. A rank's share of parameters, gradients
# and moments falls as 1/R. More ranks than shards are refused. A run in bf16 continues on another
# number of ranks and another dist.shard.
. "$(dirname "$0")/ranks.inc"
tiny_config
STEPS=${SHARD_STEPS:-6}
"$TARE" sft sft.ini 2> /dev/null
run() { # RANKS [key=value ...]
    local n=$1
    shift
    $MPIRUN -n "$n" "$TARE" -q train tiny.ini log.progress=none run.threads=1 train.steps=$STEPS checkpoint.every=3 eval.every=2 eval.before=true \
        train.micro_tokens=60 "$@" > out.txt 2> err.txt || { bad "ranks $n $*: failed"; head -3 err.txt; }
}
strip() { python3 - "$1" <<'PY'
import json, sys
for line in open(sys.argv[1] + "/metrics.jsonl"):
    print(json.dumps({k: v for k, v in json.loads(line).items() if not k.startswith(("time/", "memory/", "speculation/")) and k != "tokens_per_second"}))
PY
}
last=$(printf 'checkpoints/step-%06d' "$STEPS")
same() { # RUN: equals the run on one rank
    diff -rq one/rollouts "$1/rollouts" > /dev/null && ok || bad "$1: rollouts differ"
    diff -rq one/estimator "$1/estimator" > /dev/null && ok || bad "$1: the estimator's states differ"
    cmp -s "one/$last/model.safetensors" "$1/$last/model.safetensors" && ok || bad "$1: weights differ"
    has_python || return 0
    strip one > a
    strip "$1" > b
    cmp -s a b && ok || { bad "$1: metrics differ"; diff a b | head -4; }
}

"$TARE" -q train tiny.ini log.progress=none run.threads=2 train.steps=$STEPS checkpoint.every=3 eval.every=2 eval.before=true train.micro_tokens=60 \
    run.dir=one > out.txt 2> err.txt || { bad "the run on one rank failed"; cat err.txt; }
[ -n "$(ls one/estimator)" ] && [ "$(ls one/rollouts | wc -l)" = "$STEPS" ] && ok || bad "the run on one rank left nothing to compare"
for ranks in 2 4 8; do
    run $ranks run.dir=r$ranks
    same r$ranks
done
run 3 run.dir=zero1 dist.shard=zero1
same zero1
run 2 run.dir=unsharded dist.shard=none
same unsharded

# Memory: a wider model, whose padding is relatively small.
sed -e 's/hidden_size = 64/hidden_size = 128/; s/intermediate_size = 128/intermediate_size = 512/; s/out = base/out = wide/; s/steps = 30/steps = 1/' sft.ini > wide.ini
"$TARE" sft wide.ini run.dir=wide-sft 2> err.txt || { bad "a wider model"; cat err.txt; }
for ranks in 1 2 4 8; do run $ranks run.dir=m$ranks model.path=wide train.steps=1 eval.every=0 eval.before=false; done
checked "memory does not fall as 1/R" <<'PY'
import json
def held(r):
    row = json.loads(open(f"m{r}/metrics.jsonl").readline())
    return sum(row["memory/" + k] for k in ("parameters", "gradients", "moments"))
shares = {r: held(r) * r / held(1) for r in (1, 2, 4, 8)}
print("bytes per rank times R, against one rank:", {r: round(x, 3) for r, x in shares.items()})
assert all(abs(x - 1) < 0.05 for x in shares.values())
PY

# Refused.
if $MPIRUN -n 4 "$TARE" -q train tiny.ini run.dir=x dist.gradient_shards=2 > out.txt 2> err.txt; then
    bad "more ranks than gradient shards were accepted"
else
    grep -q 'gradient_shards = 2.*ranks (4)' err.txt && [ "$(messages err.txt)" = 1 ] && ok || { bad "too many ranks: wrong message"; cat err.txt; }
fi

# A run whose weights are saved in bf16, killed and resumed on other ranks.
run 1 run.dir=coarse model.save_dtype=bf16
TARE_FAULT=rank=1,stage=update,step=5,kind=kill $MPIRUN -n 2 "$TARE" -q train tiny.ini log.progress=none run.threads=1 train.steps=$STEPS checkpoint.every=3 \
    eval.every=2 eval.before=true train.micro_tokens=60 run.dir=moved model.save_dtype=bf16 > out.txt 2> err.txt && bad "the fault did not end the run"
[ -d moved/checkpoints/step-000003 ] && ok || bad "no checkpoint before the kill"
run 3 run.dir=moved model.save_dtype=bf16 dist.shard=none --resume
cmp -s "coarse/$last/model.safetensors" "moved/$last/model.safetensors" && ok || bad "bf16: weights differ after resuming on 3 ranks"
diff -rq coarse/rollouts moved/rollouts > /dev/null && ok || bad "bf16: rollouts differ after resuming on 3 ranks"

# Adapters instead of all weights.
adapters() { # RANKS RUN [key=value ...]
    local n=$1 dir=$2
    shift 2
    run "$n" run.dir="$dir" lora.rank=4 loss.kl_coef=0.02 "$@"
    cmp -s "lora/$last/adapter_model.safetensors" "$dir/$last/adapter_model.safetensors" && diff -rq lora/rollouts "$dir/rollouts" > /dev/null && ok ||
        bad "$dir: the adapters differ"
}
adapters 1 lora
adapters 2 lora2
adapters 4 lora4 dist.shard=zero1
adapters 3 lora3 dist.shard=none
done_
