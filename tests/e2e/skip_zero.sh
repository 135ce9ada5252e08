#!/usr/bin/env bash
# Checks train.skip_zero: rollouts without an advantage leave the update, and not a bit of the
# weights or moments changes. Where an objective, an entropy bonus or a KL gives every token a
# gradient, nothing is left out.
. "$(dirname "$0")/ranks.inc"
tiny_config
easy_judge
train() { "$TARE" -q train tiny.ini log.progress=none eval.before=false eval.after=false train.steps=6 checkpoint.every=6 estimator.plugin=grpo loss.entropy_coef=0 "$@" > out.txt 2> err.txt; }
ratio() { # the largest share of tokens that a step of the run left out
    sed -n 's/.*"update\/skipped_ratio":\([^,}]*\).*/\1/p' "$1/metrics.jsonl" | sort -g | tail -n 1
}
# same WHAT some|none KEY=VALUE...: trains with and without; some: tokens were left out
same() {
    local what=$1 expected=$2 file most
    shift 2
    rm -rf yes no
    train run.dir=yes "$@" && train run.dir=no train.skip_zero=false "$@" || { bad "$what: $(cat err.txt)"; return; }
    for file in $(cd yes/checkpoints/step-000006 && ls | grep -E '^(model|adapter_model|optimizer)'); do
        cmp -s "yes/checkpoints/step-000006/$file" "no/checkpoints/step-000006/$file" && ok || bad "$what: $file differs"
    done
    most=$(ratio yes)
    [ "$(awk "BEGIN { print ($most > 0.2 ? \"some\" : $most > 0 ? \"few\" : \"none\") }")" = "$expected" ] && ok || bad "$what: skipped_ratio $most"
    [ "$(ratio no)" = 0 ] && ok || bad "$what: skipped with skip_zero = false: $(ratio no)"
}
same 'default' some
same 'several passes and micro-batches' some train.epochs=2 train.minibatch=16 train.micro_tokens=60
same 'three threads' some run.threads=3
same 'bf16' some model.dtype=bf16
same 'adapters' some lora.rank=2
same 'prompts computed again' some train.prompt_sharing=false
for plugin in gspo cispo sapo clip_cov gmpo topr dppo aspo opsm; do same "$plugin" some objective.plugin=$plugin; done
for plugin in tis mis; do same "$plugin" some objective.plugin=$plugin loss.old_logprobs=recompute; done
same 'advantages of tokens' some estimator.plugin=entropy_top
same 'a penalty in every token' none objective.plugin=dro
same 'a penalty in some tokens' none objective.plugin=kl_cov
same 'an entropy bonus' none loss.entropy_coef=0.01
same 'a KL in the loss' none loss.kl_coef=0.05
same 'two ranks' some dist.ranks=2 run.threads=1

# A resumed run may change it.
train run.dir=whole
killed_at update 5 train run.dir=half checkpoint.every=2 train.skip_zero=false || bad "not killed: $(cat err.txt)"
train run.dir=half checkpoint.every=2 --resume && ok || bad "resumed: $(cat err.txt)"
cmp -s whole/checkpoints/step-000006/model.safetensors half/checkpoints/step-000006/model.safetensors && ok || bad "the resumed run's weights differ"
done_
