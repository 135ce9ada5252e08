#!/usr/bin/env bash
# Checks that supervised training, an evaluation, a run that goes back to a checkpoint, and a fork
# continue after a crash of the machine (crash.inc) with bit-identical results. The run from which a
# fork branches off is unchanged.
. "$(dirname "$0")/common.inc"
. "$(dirname "$0")/crash.inc"
tiny_config
"$TARE" -q sft sft.ini 2> /dev/null
most=$(((N + 1) / 2))
empty_folder() {
    rm -rf "$1"
    mkdir "$1"
}
sft=("$TARE" -q sft sft.ini log.progress=none sft.steps=6 checkpoint.every=2 sft.out=taught/model)
eval=("$TARE" -q eval tiny.ini log.progress=none data.eval='builtin:arithmetic/heldout?rows=24' eval.samples=2 eval.chunk=4 eval.name=it eval.out=judged/it)
# The third step overflows and is repeated with the next prompts.
for i in $(seq 0 63); do echo "{\"subject\":\"add\",\"question\":\"$((i % 10))+1=\",\"answer\":\"$([ "$i" = 19 ] && echo huge || echo $((i % 10 + 1)))\"}"; done > rows.jsonl
run="log.progress=none log.rollouts=true eval.before=false eval.after=false train.steps=4 checkpoint.every=2 checkpoint.keep=1"
back=("$TARE" -q train tiny.ini $run run.dir=back/run data.train=rows.jsonl data.shuffle=false data.eval= verifier.plugins="${FIXTURES:?}/overflows.so"
    estimator.plugin=dr_grpo train.on_nonfinite=rollback)
branch() { # a run in forks, from which to branch off
    empty_folder forks
    "$TARE" -q train tiny.ini $run run.dir=forks/run checkpoint.keep=2 2> /dev/null || bad "the run to branch off from was not made"
}
fork=("$TARE" -q fork forks/run@3 run.dir=forks/fork log.progress=none)
forks=(--root forks --run fork --continue "-q train forks/fork --resume log.progress=none" --untouched '^run/')
for rules in strict ext4; do
    empty_folder taught
    tried "sft, $rules" --rules $rules --most $most --root taught --result '^model/' --resumed model.training -- "${sft[@]}"
    empty_folder judged
    tried "eval, $rules" --rules $rules --most $most --root judged --result '^it/(samples|questions|results)' -- "${eval[@]}"
    empty_folder back
    tried "rollback, $rules" --rules $rules --most $most --root back --run run -- "${back[@]}"
    branch
    tried "fork, $rules" --rules $rules --most $most "${forks[@]}" -- "${fork[@]}"
done

# A program that forgets a sync. (An evaluation repeats whatever is missing, so it needs none.)
empty_folder taught
found "a supervised training's model is not synced" --plant '^model(/|$)|/model\.tmp(/|$)' --root taught --result '^model/' --resumed model.training -- "${sft[@]}"
empty_folder back
found "the checkpoint that a run goes back to is not synced" --plant 'step-0+2.*/model\.safetensors' --root back --run run -- "${back[@]}"
branch
found "a fork's checkpoint is not synced" --plant '^fork.*/model\.safetensors' "${forks[@]}" -- "${fork[@]}"
done_
