#!/usr/bin/env bash
# Checks objectives set by one key: each one trains, and differs from ppo; a state resumes
# bit-identically; invalid combinations are refused before anything starts.
. "$(dirname "$0")/common.inc"
tiny_config
"$TARE" sft sft.ini 2> /dev/null || { bad "the model was not made"; done_; }
easy_judge # there are advantages
train() { "$TARE" train tiny.ini train.steps=4 train.epochs=2 train.lr=5e-3 log.progress=none log.rollouts=false "$@" > /dev/null 2>> log.txt; }
weights() { cksum < "$1/checkpoints/$(ls "$1/checkpoints" | tail -1)/model.safetensors"; }
train run.dir=default || { bad "the run failed: $(tail -n 2 log.txt)"; done_; }
train run.dir=ppo objective.plugin=ppo || bad "ppo: $(tail -n 2 log.txt)"
[ "$(weights ppo)" = "$(weights default)" ] && ok || bad "ppo is not the default"
for file in "$SOURCE"/plugins/objectives/*.c; do
    name=$(basename "$file" .c)
    case $name in ppo) continue ;; tis | mis) more=loss.old_logprobs=recompute ;; *) more=log.level=info ;; esac
    train run.dir="$name" objective.plugin="$name" $more || { bad "$name: $(tail -n 2 log.txt)"; continue; }
    # On a CPU sampler and update agree to the bit, so that these two equal ppo.
    case $name in tis | mis) want=same ;; *) want=other ;; esac
    got=$([ "$(weights "$name")" = "$(weights ppo)" ] && echo same || echo other)
    [ $got = $want ] && ok || bad "$name: $got weights as with ppo"
    grep -q '"kind": *"objective"' "$name/manifest.json" && grep -q "\"$name\"" "$name/manifest.json" && ok || bad "$name is not in the manifest"
done
# The objective's own penalty on the exact KL is bit-identical to the host's.
train run.dir=host_kl loss.kl_coef=0.05 loss.kl=exact || bad "kl_coef: $(tail -n 2 log.txt)"
train run.dir=own_kl objective.plugin="$FIXTURES/own_kl.so" || bad "own_kl: $(tail -n 2 log.txt)"
[ "$(weights own_kl)" = "$(weights host_kl)" ] && [ "$(weights own_kl)" != "$(weights ppo)" ] && ok || bad "an objective's own KL differs from the host's"
# loss.kl_floor: the coefficient falls from the second step; a resumed run continues there.
for floor in 1 0.25; do
    train run.dir=floor_$floor loss.kl_coef=0.05 loss.kl_floor=$floor || bad "kl_floor: $(tail -n 2 log.txt)"
done
[ "$(weights floor_1)" = "$(weights host_kl)" ] && ok || bad 'kl_floor = 1 is not a constant coefficient'
[ "$(weights floor_0.25)" != "$(weights host_kl)" ] && ok || bad 'kl_floor changes nothing'
killed_at update 4 "$TARE" train tiny.ini train.steps=4 checkpoint.every=2 train.epochs=2 train.lr=5e-3 log.progress=none log.rollouts=false run.dir=floor loss.kl_coef=0.05 loss.kl_floor=0.25 && ok || bad "not killed"
train run.dir=floor checkpoint.every=2 loss.kl_coef=0.05 loss.kl_floor=0.25 --resume || bad "not resumed: $(tail -n 2 log.txt)"
[ "$(weights floor)" = "$(weights floor_0.25)" ] && ok || bad "weights differ after resuming with kl_floor"
# A state (the bound follows the share of clipped tokens): killed and resumed, and on three ranks.
state="objective.plugin=$FIXTURES/good_objective.so train.steps=7"
train run.dir=whole $state || bad "the stateful objective: $(tail -n 2 log.txt)"
killed_at update 5 "$TARE" train tiny.ini train.epochs=2 train.lr=5e-3 log.progress=none log.rollouts=false run.dir=broken $state && ok || bad "not killed"
train run.dir=broken $state --resume || bad "not resumed: $(tail -n 2 log.txt)"
[ "$(weights whole)" = "$(weights broken)" ] && ok || bad "weights differ after resuming a stateful objective"
last=$(ls whole/checkpoints | tail -1)
cmp -s "whole/checkpoints/$last/training.state" "broken/checkpoints/$last/training.state" && ok || bad "the states differ after resuming"
train run.dir=whole objective.plugin=ppo train.steps=9 --resume && bad "another objective resumes the run" || ok
# Refused before anything starts.
refuses() { # TEXT argument ...
    local text=$1 status=0
    shift
    "$TARE" config check tiny.ini "$@" > out.txt 2> err.txt || status=$?
    [ $status = 3 ] && grep -q -- "$text" err.txt && ok || bad "$*: status $status: $(tail -n 1 err.txt)"
}
refuses "no objective named 'gsop'; did you mean gspo" objective.plugin=gsop
refuses "did you mean clip_high" objective.plugin=gspo objective.gspo.clip_hihg=1
refuses "set loss.old_logprobs = recompute" objective.plugin=tis
refuses "set loss.rollout_is = none" objective.plugin=mis loss.old_logprobs=recompute loss.rollout_is=tis
refuses "low = 9: must be below high = 5" objective.plugin=clip_cov objective.clip_cov.low=9
# A bound that the objective does not read.
# warns TEXT argument ...: checks that the text is among the warnings; TEXT empty: that there is no
# warning of a bound
warns() {
    local text=$1
    shift
    "$TARE" config check tiny.ini "$@" > out.txt 2> err.txt || bad "$*: $(tail -n 1 err.txt)"
    if [ -n "$text" ]; then grep -q -- "$text" err.txt; else ! grep -q "is not read" err.txt; fi && ok || bad "$*: '$text' in $(cat err.txt)"
}
warns "command line: loss.clip has no effect because objective cispo does not read it; its own bounds are in \[objective.cispo\]" objective.plugin=cispo loss.clip=0.1
warns "loss.dual_clip has no effect because objective aspo does not read it" objective.plugin=aspo loss.dual_clip=3
warns "" objective.plugin=aspo loss.clip=0.1 loss.clip_high=0.3
warns "" objective.plugin=clip_cov loss.clip=0.1 loss.dual_clip=3
warns "" objective.plugin=gspo loss.clip=0.2
# An objective that calls exit(0) does not turn the run into a finished one.
status=0
"$TARE" train tiny.ini run.dir=exits objective.plugin="$FIXTURES/exits_in_objective.so" log.progress=none > out.txt 2> err.txt || status=$?
[ $status = 1 ] && grep -q "a plugin called exit(), which is not allowed" err.txt && ok || bad "exit in an objective: status $status: $(tail -n 1 err.txt)"
# The plan has the forward pass before a minibatch.
more() { "$TARE" plan tiny.ini --json "$@" 2> /dev/null; }
more objective.plugin=ppo > ppo.json
more objective.plugin=gspo > gspo.json
checked "tare plan lacks the forward pass of gspo" << 'PY'
import json
flops = {n: json.load(open(n + ".json")) for n in ("ppo", "gspo")}
text = {n: json.dumps(x, sort_keys=True) for n, x in flops.items()}
assert text["ppo"] != text["gspo"]
PY
"$TARE" doctor > doctor.txt 2>&1 || true
grep -q 'objective.*gspo' doctor.txt && ok || bad "doctor lists no objectives"
done_
