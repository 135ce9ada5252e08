#!/usr/bin/env bash
# Checks the text that the model reads: `tare data show` prints it as the run's rollouts record it.
# A chat template that reads an undefined name makes all prompts equal: config check, train and eval
# warn once, with that name and the known ones.
. "$(dirname "$0")/common.inc"
tiny_config
"$TARE" -q sft sft.ini sft.steps=1 2> err.txt || { bad "sft: $(cat err.txt)"; done_; }
printf '{"question":"1+1=","answer":"2"}\n{"prompt":[{"role":"user","content":"1+2="}],"answer":3}\n{"question":"2+2=","answer":"4"}\n' > rows.jsonl
keys="model.warm_start= data.train=rows.jsonl data.eval= data.prompt=chat codebook.plugin=prompt rollout.max_prompt_tokens=100"
show() { "$TARE" data show tiny.ini $keys "$@" > out.txt 2> err.txt; }
show rows=2 data.system=Think. data.suffix=" now" && [ ! -s err.txt ] && ok || bad "data show: $(cat err.txt)"
checked "wrong prompts" <<'PY'
import json
rows = [json.loads(line) for line in open("out.txt")]
begin, end = "<|im_start|>system\nThink.<|im_end|>\n<|im_start|>user\n", " now<|im_end|>\n<|im_start|>assistant\n"
assert [r["prompt"] for r in rows] == [begin + "1+1=" + end, begin + "1+2=" + end], rows
assert [r["where"] for r in rows] == ["rows.jsonl:1", "rows.jsonl:2"] and [r["answer"] for r in rows] == ["2", "3"] and rows[0]["tokens"] > 10
PY
show data.prompt=plain && [ "$(wc -l < out.txt)" = 3 ] && grep -q '"prompt":"2+2="' out.txt && ok || bad "plain: $(cat err.txt)"
show set=eval && bad "data.eval is not set" || { grep -q 'data.eval is not set' err.txt && ok || bad "set=eval: $(cat err.txt)"; }
show set=eval data.eval=rows.jsonl rows=1 && [ "$(wc -l < out.txt)" = 1 ] && ok || bad "eval: $(cat err.txt)"
for wrong in rows=0 rows=x set=all; do
    show $wrong && bad "$wrong was accepted" || { grep -q "^tare: $wrong: " err.txt && ok || bad "$wrong: $(cat err.txt)"; }
done
show rows && bad "an unknown word was accepted" || { grep -q '^usage: tare data' err.txt && ok || bad "an unknown word: $(cat err.txt)"; }
show model.path=nowhere && bad "data show without a model was accepted" || { grep -q 'model.path = nowhere does not exist' err.txt && ok || bad "data show without a model: $(cat err.txt)"; }

# As a run records it, and with the run's folder instead of its configuration.
"$TARE" -q train tiny.ini $keys train.steps=1 rollout.prompts=3 train.minibatch=4 estimator.plugin=grpo data.shuffle=false verifier.plugins=number 2> err.txt || bad "train: $(cat err.txt)"
"$TARE" data show run > out.txt 2> err.txt && ok || bad "prompts of a run: $(cat err.txt)"
checked "differs from the run's record" <<'PY'
import json
shown = [json.loads(line)["prompt"] for line in open("out.txt")]
recorded = [r["prompt"] for r in map(json.loads, open("run/rollouts/step-000001.jsonl")) if "prompt" in r]
assert len(shown) == 3 and shown == recorded, (shown, recorded)
PY

# A template with an unknown name.
echo '{% for m in mesages %}{{ m.content }}{% endfor %}{{ question }}{% if tools is defined and thinking is defined %}{{ thinking }}{% endif %}{{ bos_token }}:' > unknown.jinja
echo '{% set x = "Answer:" %}{{ x }}' > fixed.jinja
echo '{% for m in messages %}{{ m["content"] }}{{ nothing }}{% endfor %}' > sound.jinja
warns() { # HOW-OFTEN PATTERN COMMAND...
    local times=$1 pattern=$2
    shift 2
    "$@" > out.txt 2> err.txt || bad "$*: $(cat err.txt)"
    [ "$(grep -c 'prompts are the same text' err.txt)" = "$times" ] && ok || bad "$*: expected the warning $times times: $(cat err.txt)"
    [ "$times" = 0 ] || { grep -qF -e "$pattern" err.txt && ok || bad "$*: expected $pattern in: $(cat err.txt)"; }
}
said='rows.jsonl: all 3 prompts are the same text, so the model does not see the question: the chat template unknown.jinja reads mesages, question (not defined); a template'"'"'s variables are messages, add_generation_prompt, bos_token, eos_token, pad_token, unk_token, tools, documents (show prompts with `tare data show`)'
warns 1 "$said" "$TARE" config check tiny.ini $keys data.chat_template=unknown.jinja
warns 1 'the chat template fixed.jinja does not write them' "$TARE" config check tiny.ini $keys data.chat_template=fixed.jinja
warns 0 '' "$TARE" config check tiny.ini $keys data.chat_template=sound.jinja
# For both data sets.
warns 2 "$said" "$TARE" config check tiny.ini $keys data.eval=rows.jsonl data.chat_template=unknown.jinja
warns 1 "$said" "$TARE" train tiny.ini $keys run.dir=again train.steps=1 rollout.prompts=3 train.minibatch=4 estimator.plugin=grpo data.chat_template=unknown.jinja verifier.plugins=number
warns 1 "$said" "$TARE" train tiny.ini $keys run.dir=ranks dist.ranks=2 train.steps=1 rollout.prompts=3 train.minibatch=4 estimator.plugin=grpo data.chat_template=unknown.jinja verifier.plugins=number
head -n 1 rows.jsonl > one.jsonl
warns 0 '' "$TARE" config check tiny.ini $keys data.train=one.jsonl data.chat_template=unknown.jinja
# A plain prompt has neither a system message nor a template.
"$TARE" config check tiny.ini $keys data.prompt=plain data.system=Think. > out.txt 2> err.txt && bad "an unused system message was accepted" || { grep -q 'a plain prompt has no system message' err.txt && ok || bad "$(cat err.txt)"; }
"$TARE" config check tiny.ini $keys data.prompt=plain data.chat_template=sound.jinja > out.txt 2> err.txt && grep -q 'data.chat_template has no effect with data.prompt = plain' err.txt && ok || bad "$(cat err.txt)"
done_
