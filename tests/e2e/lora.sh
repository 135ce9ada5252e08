#!/usr/bin/env bash
# Checks a run with [lora]: the probabilities of sampling and update agree exactly; killed and
# resumed it ends bit-identical; the reference policy is the base; it saves an adapter that
# generate, eval and merge accept; invalid combinations are refused with the name of the key.
. "$(dirname "$0")/common.inc"
tiny_config
cat >> tiny.ini << INI
[lora]
rank = 4
alpha = 8
INI
run() { "$TARE" train tiny.ini log.progress=none train.micro_tokens=60 loss.kl_coef=0.05 "$@" > /dev/null 2>> log.txt; }
"$TARE" sft sft.ini 2> /dev/null
run run.dir=whole || { bad "the run failed"; cat log.txt; done_; exit 1; }
last=whole/checkpoints/step-000012

# A checkpoint has peft's two files and nothing of the base.
[ -f $last/adapter_config.json ] && [ -f $last/adapter_model.safetensors ] && [ ! -e $last/model.safetensors ] && ok || bad "the checkpoint is not an adapter"
checked "the adapter's files" $last base <<'PY'
import json, os, struct, sys
c = json.load(open(sys.argv[1] + "/adapter_config.json"))
assert c["peft_type"] == "LORA" and c["r"] == 4 and c["lora_alpha"] == 8 and not c["use_rslora"], c
assert os.path.samefile(c["base_model_name_or_path"], sys.argv[2]), c
data = open(sys.argv[1] + "/adapter_model.safetensors", "rb").read()
head = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
names = {f"base_model.model.model.layers.{l}.{p}.lora_{x}.weight" for l in (0, 1) for x in "AB" for p in
         ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")}
assert names == set(head) - {"__metadata__"}, set(head) ^ names
assert head["base_model.model.model.layers.1.mlp.down_proj.lora_A.weight"]["shape"] == [4, 128]
PY

# Sampler and update have the same probabilities. The policy moves away from the base, which is its
# reference.
checked "metrics" <<'PY'
import json
rows = [json.loads(line) for line in open("whole/metrics.jsonl")]
assert len(rows) == 12
mismatch = [v for r in rows for k, v in r.items() if "mismatch" in k]
assert len(mismatch) == 12 and not any(mismatch), mismatch
kl = [v for r in rows for k, v in r.items() if "reference_kl" in k or k.endswith("/kl") or k.endswith("kl_reference")]
assert len(kl) == 12 and abs(kl[0]) < 1e-5 < kl[-1], kl
PY

# Killed and resumed.
for at in update:5 checkpoint.listed:9; do
    IFS=: read -r point step <<< "$at"
    [ -d broken ] && resume=--resume || resume=
    killed_at "$point" "$step" "$TARE" train tiny.ini log.progress=none train.micro_tokens=60 loss.kl_coef=0.05 run.dir=broken $resume && ok || bad "not killed at $at"
done
run run.dir=broken --resume || bad "the resumed run failed"
cmp -s $last/adapter_model.safetensors broken/checkpoints/step-000012/adapter_model.safetensors && ok || bad "the adapter differs after resuming"
diff -rq whole/rollouts broken/rollouts > /dev/null && ok || bad "rollouts differ after resuming"
"$TARE" train tiny.ini log.progress=none run.dir=broken train.steps=13 lora.rank=8 --resume > out.txt 2> err.txt && bad "resumed with another rank"
grep 'lora.rank' err.txt > /dev/null && ok || { bad "resuming with another rank: wrong message"; cat err.txt; }

for key in lora.rank=8 lora.rank=0 lora.alpha=16 lora.rslora=true lora.targets=q_proj; do
    "$TARE" train tiny.ini log.progress=none train.micro_tokens=60 loss.kl_coef=0.05 run.dir=broken $key --resume --allow-change > out.txt 2> err.txt && bad "resumed with $key"
    grep -F "cannot be resumed with ${key%%=*} (" err.txt > /dev/null && ok || { bad "resuming with $key: wrong message"; cat err.txt; }
    "$TARE" fork broken@9 --run-dir never $key > out.txt 2> err.txt && bad "forked with $key"
    grep -F "${key%%=*} (" err.txt > /dev/null && [ ! -e never ] && [ ! -e never.part ] && ok || { bad "a fork with $key: wrong message"; cat err.txt; }
done
"$TARE" reproduce broken --steps 8-12 > out.txt 2> err.txt && ok || { bad "reproduce of a run with adapters"; cat out.txt err.txt; }

# Recomputed activations change nothing; rsLoRA on q and v runs in bf16.
run run.dir=first train.steps=3
run run.dir=again train.recompute=layer train.steps=3
cmp -s {first,again}/checkpoints/step-000003/adapter_model.safetensors && ok || bad "train.recompute changes bits"
run run.dir=other train.steps=3 lora.rslora=true lora.targets=q_proj,v_proj model.dtype=bf16 || { bad "rsLoRA on q and v in bf16"; tail -1 log.txt; }
[ "$(wc -c < other/checkpoints/step-000003/adapter_model.safetensors)" -lt "$(wc -c < $last/adapter_model.safetensors)" ] && ok || bad "adapters of q and v alone are not smaller"

# A base in int8: sampler and update have the same probabilities, resuming is bit-identical, and the
# model differs from the base in f32. Then its uses and refusals.
int8="model.weights=int8 train.steps=4"
run run.dir=int8 $int8 || { bad "a run on an int8 base"; tail -1 log.txt; }
run run.dir=int8-again $int8 --until 2 && run run.dir=int8-again $int8 --resume || { bad "a resumed int8 run"; tail -1 log.txt; }
cmp -s int8{,-again}/checkpoints/step-000004/adapter_model.safetensors && ok || bad "the adapter on an int8 base differs after resuming"
"$TARE" train tiny.ini log.progress=none train.micro_tokens=60 loss.kl_coef=0.05 run.dir=int8-ranks $int8 dist.ranks=2 > /dev/null 2>> log.txt || { bad "an int8 base on two ranks"; tail -1 log.txt; }
cmp -s int8{,-ranks}/checkpoints/step-000004/adapter_model.safetensors && ok || bad "two ranks: not bit-identical on an int8 base"
cmp -s int8/checkpoints/step-000004/adapter_model.safetensors whole/checkpoints/step-000004/adapter_model.safetensors && bad "int8 changed nothing"
checked "the int8 run's mismatch" <<'PY'
import json
rows = [json.loads(line) for line in open("int8/metrics.jsonl")]
mismatch = [v for r in rows for k, v in r.items() if "mismatch" in k]
assert len(rows) == 4 and len(mismatch) == 4 and not any(mismatch), mismatch
PY
for m in base int8/checkpoints/step-000004; do
    for weights in dtype int8; do
        echo '{"ids":[5,6,7,8,9,10]}' | "$TARE" score $m weights=$weights > score-$weights.txt 2> err.txt || { bad "score $m weights=$weights"; cat err.txt; }
    done
    cmp -s score-dtype.txt score-int8.txt && bad "score $m: int8 changed nothing" || ok
    for weights in dtype int8; do
        echo '{"ids":[5,6,7]}' | "$TARE" generate $m model.weights=$weights temperature=0 max_new_tokens=4 group_size=1 > generate-$weights.txt 2> err.txt || { bad "generate $m weights=$weights"; cat err.txt; }
    done
    cmp -s generate-dtype.txt generate-int8.txt && bad "generate $m: int8 changed nothing" || ok
done
"$TARE" eval tiny.ini lora.rank=0 run.dir=evaluated8 model.path=base model.weights=int8 > out.txt 2> err.txt && ok || { bad "eval in int8"; cat err.txt; }
"$TARE" train tiny.ini log.progress=none lora.rank=0 run.dir=never model.weights=int8 > out.txt 2> err.txt && bad "all weights trained in int8"
grep -F 'set lora.rank' err.txt > /dev/null && ok || { bad "training all weights in int8: wrong message"; cat err.txt; }
"$TARE" plan tiny.ini model.weights=int8 > out.txt 2> err.txt && grep -F 'frozen in int8' out.txt > /dev/null && ok || { bad "plan of an int8 base"; cat out.txt err.txt; }

# Used by the run's folder, by the adapter's folder, and merged.
echo '{"id":"a","question":"7+8="}' > questions.jsonl
ask() { "$TARE" generate "$1" temperature=0 max_new_tokens=6 prompt=plain < questions.jsonl 2> err.txt; }
ask whole > by_run.txt && ask $last > by_folder.txt && cmp -s by_run.txt by_folder.txt && [ -s by_run.txt ] && ok || { bad "generate with an adapter"; cat err.txt; }
# As peft leaves it: the base's tokenizer is used.
mkdir bare && cp $last/adapter_config.json $last/adapter_model.safetensors bare
ask bare > by_bare.txt && cmp -s by_run.txt by_bare.txt && ok || { bad "generate with an adapter without a tokenizer"; cat err.txt; }
echo '{"text":"7+8="}' | "$TARE" tokenize bare > out.txt 2> err.txt && ok || { bad "tokenize with an adapter"; cat err.txt; }
"$TARE" diff whole broken > out.txt 2> err.txt && ok || { bad "diff of two runs with adapters"; cat out.txt err.txt; }
mkdir -p merged.tmp && echo kept > merged.tmp/file # not written by tare
"$TARE" merge whole merged dtype=f32 > out.txt 2> err.txt && [ -f merged/model.safetensors ] && [ -f merged/tokenizer.json ] && ok || { bad "merge"; cat err.txt; }
[ -s merged.tmp/file ] && [ -z "$(find . -maxdepth 1 -name "merged.tmp-*")" ] && ok || bad "merge changed other files or left files behind"
ask merged > by_merged.txt || { bad "generate with the merged model"; cat err.txt; }
"$TARE" merge whole merged > out.txt 2> err.txt && bad "merged into an existing folder" || ok
"$TARE" merge base elsewhere > out.txt 2> err.txt && bad "a whole model was merged"
grep 'adapter_config.json is missing' err.txt > /dev/null && ok || bad "merging a whole model: wrong message"
echo '{"ids":[5,6,7,8,9,10]}' > ids.jsonl
for m in $last merged; do "$TARE" score "$m" < ids.jsonl > "score-$(basename "$m").txt" 2> err.txt || { bad "score $m"; cat err.txt; }; done
checked "the merged model's logprobs" score-step-000012.txt score-merged.txt <<'PY'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:])
x, y = ([v for v in d["logprobs"] if v is not None] for d in (a, b))
assert len(x) == len(y) > 3 and max(abs(p - q) for p, q in zip(x, y)) < 1e-4, (x, y)
PY
"$TARE" eval tiny.ini lora.rank=0 run.dir=evaluated model.path=$last > out.txt 2> err.txt && ok || { bad "eval of an adapter"; cat err.txt; }

# Supervised training of adapters.
"$TARE" sft sft.ini model.path=base model.init= lora.rank=4 sft.out=adapter run.dir=s sft.steps=3 > out.txt 2> err.txt && [ -f adapter/adapter_config.json ] && ok || { bad "sft with adapters"; cat err.txt; }

# Refused.
refused() { # TEXT command...
    local says=$1
    shift
    if "$@" > out.txt 2> err.txt; then bad "accepted: $*"; return; fi
    grep -F -- "$says" err.txt > /dev/null && ok || { bad "$* does not print: $says"; cat err.txt; }
}
refused "TRL's lora_dropout has no counterpart here" "$TARE" train tiny.ini lora_dropout=0.1
refused "TRL's use_dora has no counterpart here: the adapters are LoRA" "$TARE" train tiny.ini use_dora=true
refused 'command line: lora.targets: "w_proj"' "$TARE" config check tiny.ini lora.targets=w_proj
refused '"embed_tokens"' "$TARE" train tiny.ini run.dir=x lora.targets=q_proj,embed_tokens
refused 'tare merge' "$TARE" train tiny.ini run.dir=x model.path=$last
refused 'tare merge' "$TARE" plan tiny.ini model.path=$last
both="model.base = base, but model.path = base is a whole model"
refused "$both" "$TARE" train tiny.ini run.dir=x model.base=base
refused "$both" "$TARE" plan tiny.ini model.base=base
refused "$both" "$TARE" config check tiny.ini run.dir=x model.base=base
refused "$both" "$TARE" generate base model.base=base < /dev/null
refused "$both" "$TARE" score base model.base=base < /dev/null
refused 'needs a base model' "$TARE" sft sft.ini lora.rank=4 sft.out=none-such run.dir=y
# An estimator that needs a teacher warns when it has no teacher.
"$TARE" train tiny.ini run.dir=taught train.steps=1 estimator.plugin=opd > out.txt 2> err.txt && ok || { bad "opd"; cat err.txt; }
grep 'model.reference is empty' err.txt > out.txt && ok || { bad "opd without a teacher: no warning"; cat err.txt; }
"$TARE" train tiny.ini run.dir=taught2 train.steps=1 estimator.plugin=opd model.reference=base > out.txt 2> err.txt || { bad "opd with a teacher"; cat err.txt; }
grep 'model.reference is empty' err.txt > out.txt && bad "opd with a teacher: a warning" || ok
refused 'lora.targets: names no layer' "$TARE" train tiny.ini run.dir=x lora.targets=
refused 'lora.alpha = '\''1e300'\'' is above the largest value, 1e+30' "$TARE" train tiny.ini run.dir=x lora.alpha=1e300

# The same weights with another config.json are another base.
edit() { # FOLDER KEY VALUE: makes a changed copy of base in FOLDER
    rm -rf "$1"
    cp -r base "$1" && rm "$1/sums.json"
    sed -i "s/\"$2\": [^,]*/\"$2\": $3/" "$1/config.json"
    grep "\"$2\": $3" "$1/config.json" > out.txt || bad "config.json has no $2"
}
edit turned rope_theta 100
for command in generate score "merge@never"; do
    IFS=@ read -r name out <<< "$command"
    refused 'rope_theta = 10000' "$TARE" "$name" $last ${out:+"$out"} model.base=turned < /dev/null
done
edit turned rms_norm_eps 0.001
refused 'rms_norm_eps = 1e-06' "$TARE" generate $last model.base=turned < /dev/null
edit turned num_key_value_heads 1
refused 'k_proj' "$TARE" generate $last model.base=turned < /dev/null
edit mine rope_theta 10000
run run.dir=moves model.path=mine model.warm_start= --until 3 || bad "a run on a copy of the base"
edit mine rope_theta 100
refused 'rope_theta = 10000' "$TARE" train moves --resume
# Also when the checkpoint's own state has the weights.
edit mine rope_theta 10000
run run.dir=moves16 model.path=mine model.warm_start= model.save_dtype=bf16 --until 3 || bad "a run that saves in bf16"
edit mine rope_theta 100
refused 'rope_theta = 10000' "$TARE" train moves16 --resume
# And a whole model.
for dtype in auto bf16; do
    edit mine rms_norm_eps 1e-06
    run run.dir=full-$dtype lora.rank=0 model.path=mine model.warm_start= model.save_dtype=$dtype --until 3 || bad "a run of all weights"
    edit mine rms_norm_eps 0.001
    refused 'the run has rms_norm_eps = 1e-06' "$TARE" train full-$dtype --resume
    edit mine rms_norm_eps 1e-06
    "$TARE" train full-$dtype --resume --until 4 > out.txt 2> err.txt && ok || { bad "resumed with the config.json of the start"; cat err.txt; }
done
# Trained with model.rope_theta: every command accepts the same value.
run run.dir=theta train.steps=3 model.rope_theta=500 || bad "a run with model.rope_theta"
refused 'rope_theta = 500' "$TARE" score theta < ids.jsonl
"$TARE" score theta model.rope_theta=500 < ids.jsonl > score-theta.txt 2> err.txt && ok || { bad "score with model.rope_theta"; cat err.txt; }
"$TARE" merge theta merged-theta model.rope_theta=500 > out.txt 2> err.txt && ok || { bad "merge with model.rope_theta"; cat err.txt; }
checked "the merged model's rope_theta" <<'PY'
import json
assert json.load(open("merged-theta/config.json"))["rope_theta"] == 500
PY

# The base has moved: model.base sets its folder in every command.
mv base away
refused 'model.base=FOLDER' "$TARE" generate $last
ask_base() { "$TARE" generate $last model.base=away temperature=0 max_new_tokens=6 prompt=plain < questions.jsonl 2> err.txt; }
ask_base > moved.txt && cmp -s moved.txt by_run.txt && ok || { bad "model.base"; cat err.txt; }
refused 'model.base=FOLDER' "$TARE" score $last < ids.jsonl
"$TARE" score $last model.base=away < ids.jsonl > score-moved.txt 2> err.txt && cmp -s score-moved.txt score-step-000012.txt && ok || { bad "score with model.base"; cat err.txt; }
refused 'model.base=FOLDER' "$TARE" merge $last never
"$TARE" merge $last merged-moved dtype=f32 model.base=away > out.txt 2> err.txt && cmp -s merged{,-moved}/model.safetensors && ok || { bad "merge with model.base"; cat err.txt; }
done_
