#!/usr/bin/env bash
# A run reads models that are not among its own files: the start of the policy with its tokenizer, a
# reference, the start of the process reward model. Checks that a changed model on disk is refused
# by its name, or reported when nothing of it is used; tare reproduce names it, too. The same for
# supervised training.
. "$(dirname "$0")/common.inc"
tiny_config
easy_judge
"$TARE" sft sft.ini 2> /dev/null || { bad "the model was not made"; done_; exit 1; }
KEYS="data.eval= eval.before=false eval.after=false train.steps=8 checkpoint.every=2 log.progress=none estimator.plugin=grpo codebook.plugin=none"
# shellcheck disable=SC2086
train() { "$TARE" train tiny.ini $KEYS "$@" > /dev/null 2> err.txt; }
says() { grep -q "$1" err.txt && ok || bad "missing in the output: $1: $(cat err.txt)"; }
quiet() { grep -q "$1" err.txt && bad "printed: $(cat err.txt)" || ok; }
verify() { # STATUS RUN [PATTERN]
    local got=0
    "$TARE" reproduce "$2" > out.txt 2> err.txt || got=$?
    [ $got = "$1" ] && grep -q "${3:-.}" out.txt && ok || bad "reproduce $2: status $got, expected $1 with '${3:-}': $(cat out.txt err.txt)"
}
refused() { # PATTERN RUN [key=value ...]
    local pattern=$1 run=$2 got=0
    shift 2
    find "$run" -type f -exec cksum {} + | sort > before.txt
    "$TARE" train "$run" --resume log.progress=none "$@" > /dev/null 2> err.txt || got=$?
    [ $got = 3 ] && grep -q "$pattern" err.txt && ok || bad "$run: status $got, expected 3 with '$pattern': $(cat err.txt)"
    find "$run" -type f -exec cksum {} + | sort | cmp -s - before.txt && ok || bad "$run: a refused --resume changed files"
}
half() { # RUN [key=value ...]: makes the first four steps
    local run=$1
    shift
    train run.dir="$run" --until 4 "$@" && ok || { bad "$run: $(cat err.txt)"; done_; exit 1; }
    verify 0 "$run"
}
kl="loss.kl_coef=0.05"
cp -r base judge
half named $kl model.reference=judge
half same $kl # the reference is the start
half plain
half prime process_reward.implicit=true estimator.plugin=prime process_reward.model=judge
cp -r plain whole
"$TARE" train whole --resume log.progress=none > /dev/null 2> err.txt && ok || bad "not resumed: $(cat err.txt)"
quiet 'model.path'
verify 0 whole
last=checkpoints/step-000008/model.safetensors

# The reference.
flip judge/model.safetensors
refused "model.reference = $WORK/judge: model.safetensors differs from the file that the run was trained with" named
verify 1 named "^model.reference = $WORK/judge: model.safetensors differs from the file that the run was trained with"
got=0; "$TARE" reproduce named --steps 1-2 > out.txt 2> err.txt || got=$?
[ $got != 0 ] && says 'model.reference = '
cp -r named taken
"$TARE" train taken --resume --allow-change log.progress=none > /dev/null 2> err.txt && ok || bad "--allow-change: $(cat err.txt)"
says 'warning: taken is resumed with another model: model.reference = '
verify 0 taken "^note: model.reference = $WORK/judge: model.safetensors was different or missing for an earlier process"
# A fork may have another reference.
"$TARE" fork named@4 --run-dir forked model.reference=base log.progress=none > /dev/null 2> err.txt && ok || bad "a fork with another reference: $(cat err.txt)"
verify 0 forked
# The process reward model's weights come from the checkpoint.
"$TARE" train prime --resume log.progress=none > /dev/null 2> err.txt && ok || bad "prime: $(cat err.txt)"
says 'process_reward.model = .*judge: model.safetensors differs from the file .* values are used instead'
flip judge/model.safetensors
"$TARE" train named --resume log.progress=none > /dev/null 2> err.txt && ok || bad "restored, not resumed: $(cat err.txt)"
verify 0 named

# The start: its weights come from the checkpoint, and it is the reference of `same`.
mv base kept
cp -r kept base
flip base/model.safetensors
refused "model.reference = $WORK/base: model.safetensors differs from the file" same
cp -r plain told
"$TARE" train told --resume log.progress=none > /dev/null 2> err.txt && ok || bad "reported: $(cat err.txt)"
says "model.path = $WORK/base: model.safetensors differs from the file that the run was trained with; the checkpoint's values are used instead"
cmp -s told/$last whole/$last && ok || bad "the start's weights were used"
verify 1 plain "^model.path = $WORK/base: model.safetensors differs from the file that the run was trained with"
verify 0 told "^note: model.path = .*model.safetensors was different or missing for an earlier process"
# A run without a checkpoint begins again from the start's weights.
killed_at update 1 "$TARE" train tiny.ini $KEYS run.dir=early model.path=kept && ok || bad "not killed"
refused "model.path = $WORK/base: model.safetensors differs from the file" early model.path=base
cp -r early changed
"$TARE" train changed --resume --allow-change model.path=base log.progress=none > /dev/null 2> err.txt && ok || bad "$(cat err.txt)"
# Its tokenizer and its template are used.
rm -r base
cp -r kept base
sed -i 's/}$/ }/' base/tokenizer.json
refused "model.path = $WORK/base: tokenizer.json differs from the file" plain
rm -r base
cp -r kept base
echo '{{ messages }}' > base/chat_template.jinja
refused "model.path = $WORK/base: chat_template.jinja did not exist when the run was trained" plain
verify 1 plain "^model.path = $WORK/base: chat_template.jinja did not exist"
rm -r base
verify 0 plain "^note: model.path = $WORK/base is missing, so it is not checked"
# The model was moved, or a checkpoint is in its place: the same.
for from in kept plain/checkpoints/step-000004; do
    rm -rf moved
    cp -r plain moved
    "$TARE" train moved --resume model.path=$from log.progress=none > /dev/null 2> err.txt && ok || bad "model.path=$from: $(cat err.txt)"
    cmp -s moved/$last whole/$last && ok || bad "model.path=$from: other weights"
done
refused 'model.reference = .*step-000004: model.safetensors differs from the file' same model.path=same/checkpoints/step-000004
mv kept base
# The run's own template.
echo '{% for m in messages %}{{ m.content }}{% endfor %}' > own.jinja
half written data.prompt=chat data.chat_template=own.jinja rollout.max_prompt_tokens=64
echo '{% for m in messages %}{{ m.content }} {% endfor %}' > own.jinja
refused "data.chat_template = $WORK/own.jinja: own.jinja differs from the file" written
verify 1 written '^data.chat_template = '

# Supervised training.
sed -e 's/^path = none/path = start/' -e '/^init/d' -e 's/^out = base/out = tuned/' -e 's/^steps = 30/steps = 8/' sft.ini > tune.ini
printf '[checkpoint]\nevery = 2\n' >> tune.ini
cp -r base start
tune() { "$TARE" sft tune.ini "$@" > /dev/null 2> err.txt; }
tune sft.out=straight && ok || bad "supervised: $(cat err.txt)"
stopped() { # NAME [key=value ...]: killed in step 6, after the checkpoint of step 4
    local name=$1
    shift
    killed_at update 6 "$TARE" sft tune.ini sft.out="$name" "$@" && [ -e "$name.training/manifest.json" ] && ok || bad "supervised: not killed"
}
stopped tuned
tune_refused() { # PATTERN NAME [argument ...]: checks that it is refused and that no file changes
    local pattern=$1 name=$2 got=0
    shift 2
    rm -rf before && cp -r "$name.training" before
    tune sft.out="$name" --resume "$@" || got=$?
    [ $got = 3 ] && grep -q "$pattern" err.txt && ok || bad "supervised, $name: status $got, expected 3 with '$pattern': $(cat err.txt)"
    diff -r -x lock before "$name.training" > /dev/null && [ ! -e "$name" ] && ok || bad "supervised, $name: a refused --resume changed files"
}
tune_goes_on() { # NAME [argument ...]: ends with the model of the training that was not stopped
    local name=$1
    shift
    tune sft.out="$name" --resume "$@" && ok || bad "supervised, $name: $(cat err.txt)"
    diff -r straight "$name" > /dev/null && ok || bad "supervised, $name: another model"
}
cp -r tuned.training again.training
tune_goes_on again
quiet 'model.path'
# The weights come from the checkpoint.
flip start/model.safetensors
cp -r tuned.training other.training
tune_goes_on other
says "model.path = $WORK/start: model.safetensors differs from the file that the run was trained with; the checkpoint's values are used instead"
cp base/model.safetensors start
# The tokenizer and the template do not.
sed -i 's/}$/ }/' start/tokenizer.json
tune_refused "model.path = $WORK/start: tokenizer.json differs from the file that the run was trained with.*put the files back, or add --allow-change" tuned
cp -r tuned.training taken.training
rm -rf taken
tune sft.out=taken --resume --allow-change && ok || bad "supervised, --allow-change: $(cat err.txt)"
says 'warning: taken.training is resumed with another model: model.path = .*tokenizer.json'
cp base/tokenizer.json start
echo '{{ messages }}' > start/chat_template.jinja
tune_refused "chat_template.jinja did not exist when the run was trained" tuned
rm start/chat_template.jinja
stopped templated data.prompt=chat data.chat_template=own.jinja
echo '{% for m in messages %}{{ m.content }}  {% endfor %}' > own.jinja
tune_refused "data.chat_template = $WORK/own.jinja: own.jinja differs from the file" templated data.prompt=chat data.chat_template=own.jinja
# Unreadable checksums: it is unknown whether the model is the same.
for manifest in '' '{"models":' '[]' '{}' '{"models":[]}'; do
    rm -rf unread.training && cp -r tuned.training unread.training && echo "$manifest" > unread.training/manifest.json
    tune sft.out=unread --resume && bad "supervised, manifest '$manifest': resumed" || ok
    says 'cannot check that the models are unchanged; put the file back, or add --allow-change.*unread.training/manifest.json'
done
tune_goes_on unread --allow-change
says 'warning: .*unread.training/manifest.json: .*cannot check that the models are unchanged'
rm -rf unread && cp -r tuned.training unread.training && rm unread.training/manifest.json
tune sft.out=unread --resume && bad "supervised, no manifest: resumed" || ok
says 'cannot check that the models are unchanged; put the file back, or add --allow-change.*unread.training/manifest.json'
tune_goes_on unread --allow-change
# Files that do not belong to the training are not removed with it.
mkdir -p noted.training theirs theirs.training/sub
echo mine | tee noted.training/notes.txt > theirs.training/sub/notes.txt
tune sft.out=noted && bad "a training in a folder with foreign files was accepted" || ok
says 'noted.training: notes.txt does not belong to the training.*choose another sft.out'
tune sft.out=theirs --resume && bad "a folder counts as a model" || ok
says 'sft.out = theirs exists already; remove it or choose another'
[ -e noted.training/notes.txt ] && [ -e theirs.training/sub/notes.txt ] && [ ! -e noted ] && ok || bad "foreign files were removed"
killed_at result 0 "$TARE" sft tune.ini sft.out=between && mkdir between && ok || bad "not killed before the model has its name"
tune sft.out=between --resume && bad "an empty folder counts as a model" || ok
[ -e between.training/checkpoints ] && rmdir between && ok || bad "the training was removed"
tune_goes_on between
# Moved: the same model.
mv start elsewhere
cp -r tuned.training moved.training
rm -rf moved
tune_goes_on moved --allow-change model.path=elsewhere
mv elsewhere start
# A new model, and a folder in its place.
new="model.path=later model.init=qwen2 model.hidden_size=64 model.layers=2 model.heads=4 model.kv_heads=2 model.intermediate_size=128"
# shellcheck disable=SC2086
stopped made $new
cp -r base later
# shellcheck disable=SC2086
tune_refused 'model.path = later: was not there, and a new model was begun' made $new
# shellcheck disable=SC2086
stopped lost $new
mv later gone
# shellcheck disable=SC2086
tune_refused 'model.path = later: is missing, and a new model would replace it' lost $new
# A warm start names the remedy other than --allow-change.
cp -r tuned.training warm.training
sed 's/^out = tuned/out = warm/' tune.ini > warm.ini
echo ' ' >> start/tokenizer_config.json
"$TARE" train tiny.ini model.path=warm model.warm_start=warm.ini run.dir=warmed train.steps=1 log.progress=none > /dev/null 2> err.txt && bad "a warm start with another model" || ok
says 'tokenizer_config.json differs from the file .*put the files back, or remove the folder to start over'
cp base/tokenizer_config.json start
tune_goes_on tuned
done_
