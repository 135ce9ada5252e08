#!/usr/bin/env bash
# Checks variables of the chat template from the configuration and from rows, and prompts that end
# with the assistant's words or with the beginning of a thought, in data show, generate, sft, train, eval and chat.
. "$(dirname "$0")/common.inc"
tiny_config
cat > template.jinja <<'J'
{% for m in messages %}<{{ m.role }}>{{ m.content }}</>
{% endfor %}{% if tools %}T{{ tools|length }}{% endif %}{% if add_generation_prompt %}<assistant>{% endif %}{% if enable_thinking is defined and enable_thinking is false %}OFF{% endif %}
J
cat > rows.jsonl <<'J'
{"id":"plain","question":"hi","answer":"1","completion":"1"}
{"id":"kwargs","question":"hi","answer":"1","completion":"1","chat_template_kwargs":{"enable_thinking":false}}
{"id":"verl","question":"hi","answer":"1","completion":"1","apply_chat_template_kwargs":{"enable_thinking":false}}
{"id":"tools","question":"hi","answer":"1","completion":"1","tools":[{"name":"f"}]}
{"id":"text","question":"hi","answer":"1","completion":"1","tools":"[{\"name\":\"f\"},{\"name\":\"g\"}]"}
{"id":"none","question":"hi","answer":"1","completion":"1","tools":null,"chat_template_kwargs":null}
{"id":"ends","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"The answer is "}],"answer":"1","completion":"1"}
{"id":"trimmed","prompt":[{"role":"user","content":"hi"},{"role":"assistant","content":" x y"}],"answer":"1","completion":"1"}
J
"$TARE" sft sft.ini 2> log.txt || bad "sft: $(tail -1 log.txt)"
chat="data.prompt=chat data.chat_template=template.jinja"
show() { "$TARE" data show tiny.ini rows=8 model.path=base data.train=rows.jsonl $chat "$@" 2> log.txt | sed -n 's/.*"id":"\([a-z]*\)","prompt":"\([^"]*\)".*/\1 \2/p'; }
cat > want.txt <<'W'
plain <user>hi</>\n<assistant>
kwargs <user>hi</>\n<assistant>OFF
verl <user>hi</>\n<assistant>OFF
tools <user>hi</>\nT1<assistant>
text <user>hi</>\nT2<assistant>
none <user>hi</>\n<assistant>
ends <user>hi</>\n<assistant>The answer is 
trimmed <user>hi</>\n<assistant> x y
W
show > got.txt || true
cmp -s want.txt got.txt && ok || bad "data show: $(diff want.txt got.txt) $(cat log.txt)"
show 'data.chat_template_kwargs={"enable_thinking":false}' > got.txt
[ "$(grep -c 'OFF$' got.txt)" = 6 ] && ok || bad "data.chat_template_kwargs: $(cat got.txt log.txt)"
sed -i '1s/"id"/"chat_template_kwargs":{"enable_thinking":true},"id"/' rows.jsonl
show 'data.chat_template_kwargs={"enable_thinking":false}' | grep -q '^plain.*assistant>$' && ok || bad "the row does not take precedence: $(cat log.txt)"
refused() { # WHAT SAYS: the last command's log
    grep -q "$2" log.txt && ok || bad "$1: $(cat log.txt)"
}
for value in 3 '{' '{"messages":[]}' '{"add_generation_prompt":false}' '[]'; do
    show "data.chat_template_kwargs=$value" > /dev/null || true
    refused "chat_template_kwargs=$value" 'data.chat_template_kwargs'
done
cp rows.jsonl good.jsonl
for row in '"tools":3' '"tools":"x"' '"chat_template_kwargs":[1]' '"chat_template_kwargs":{"messages":[]}'; do
    echo "{\"id\":\"a\",\"question\":\"hi\",\"answer\":\"1\",$row}" > rows.jsonl
    show > /dev/null || true
    refused "$row" 'rows.jsonl:1.*\(tools\|chat_template_kwargs\)'
done
for last in '{"role":"assistant","content":""}' '{"role":"assistant","content":" \n"}'; do
    echo "{\"id\":\"a\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},$last],\"answer\":\"1\"}" > rows.jsonl
    show > /dev/null || true
    refused "$last" "rows.jsonl:1.*the last message is the assistant's"
done
cp good.jsonl rows.jsonl

# ---- the same prompts in the other commands: a template that fails without the variable
printf '{%% if not enable_thinking is defined %%}{{ raise_exception("no variable") }}{%% endif %%}{{ messages[-1].content }}' > need.jinja
need="data.prompt=chat data.chat_template=need.jinja"
kwargs='data.chat_template_kwargs={"enable_thinking":false}'
generate() { "$TARE" generate base $need max_new_tokens=3 group_size=1 "$@" > out.txt 2> log.txt; }
generate <<< '{"question":"1+1="}' && bad "generate without the variable" || ok
generate "$kwargs" <<< '{"question":"1+1="}' && ok || bad "generate: $(cat log.txt)"
generate <<< '{"question":"1+1=","chat_template_kwargs":{"enable_thinking":true}}' && ok || bad "generate, from the line: $(cat log.txt)"
"$TARE" sft sft.ini $need run.dir=sft2 sft.out=base2 sft.steps=1 > out.txt 2> log.txt && bad "sft without the variable" || ok
"$TARE" sft sft.ini $need "$kwargs" run.dir=sft2 sft.out=base2 sft.steps=1 > out.txt 2> log.txt && ok || bad "sft: $(tail -1 log.txt)"
"$TARE" train tiny.ini $need "$kwargs" run.dir=run2 train.steps=1 > out.txt 2> log.txt && ok || bad "train: $(tail -1 log.txt)"
grep -q '^chat_template_kwargs = ' run2/config.ini && ok || bad "the run does not record the variables"
echo '{"messages":[{"role":"user","content":"a"}]}' | "$TARE" chat run2 > out.txt 2> log.txt && ok || bad "chat does not read the run's variables: $(cat log.txt)"
"$TARE" eval tiny.ini $need "$kwargs" run.dir=run3 model.path=base > out.txt 2> log.txt && ok || bad "eval: $(tail -1 log.txt)"

# ---- data.system does not replace a row's own system message
printf '%s\n' '{"messages":[{"role":"system","content":"a"},{"role":"user","content":"hi"}],"answer":"1"}' '{"question":"hi","answer":"1"}' > own.jsonl
system() { "$TARE" train tiny.ini $chat data.train=own.jsonl estimator.plugin=grpo codebook.plugin=none rollout.prompts=2 train.minibatch=8 train.steps=1 eval.before=false eval.after=false "$@" > out.txt 2> log.txt || bad "$*: $(tail -1 log.txt)"; }
own='own.jsonl: 1 of 2 rows have a system message of their own, which data.system does not replace'
system run.dir=own1 data.system=b
grep -q "$own" log.txt && ok || bad "no warning: $(cat log.txt)"
system run.dir=own2
grep -q "$own" log.txt && bad "a warning without data.system" || ok

# ---- a template that opens the thought: a completion that does not close it has no answer
printf '%s' '{{ messages[-1].content }}{% if add_generation_prompt %}<think>{{ closed }}
{% endif %}' > think.jinja
think="data.prompt=chat data.chat_template=think.jinja"
opens() { # RUN WANT ARGUMENTS...
    local run=$1 want=$2
    shift 2
    "$TARE" train tiny.ini $think run.dir="$run" train.steps=1 "$@" > out.txt 2> log.txt || bad "$run: $(tail -1 log.txt)"
    grep -q "^opened = $want\$" "$run/config.ini" && ok || bad "$run: $(grep '^opened' "$run/config.ini")"
    grep -o '"verdict":"[a-z_]*"' "$run"/rollouts/*1.jsonl | sort | uniq -c | sort -rn > verdicts.txt
}
only_no_answer() { [ "$(wc -l < verdicts.txt)" = 1 ] && grep -q no_answer verdicts.txt; }
opens think1 true
only_no_answer && ok || bad "an open thought has an answer: $(cat verdicts.txt)"
grep -q 'verifier.opened = auto: the chat template opens a thought' log.txt && ok || bad "the log does not say so: $(cat log.txt)"
opens think2 false verifier.opened=false
only_no_answer && bad "verifier.opened=false: $(cat verdicts.txt)" || ok
opens think3 false 'data.chat_template_kwargs={"closed":"</think>"}'
opens think4 true verifier.exact.opened=false
only_no_answer && bad "the verifier's own key does not take precedence: $(cat verdicts.txt)" || ok
opens think5 true verifier.isolate=process
only_no_answer && ok || bad "in a worker process: $(cat verdicts.txt)"

# ---- tare chat renders as it is told to
chat() { "$TARE" chat base template=template.jinja 2> log.txt; }
end='"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"so"}]'
[ "$(chat <<< "{$end,\"continue_final_message\":true}")" = '{"text":"<user>hi</>\n<assistant>so"}' ] && ok || bad "continue_final_message: $(cat log.txt)"
[ "$(chat <<< "{$end,\"add_generation_prompt\":true}")" = '{"text":"<user>hi</>\n<assistant>so</>\n<assistant>"}' ] && ok || bad "add_generation_prompt: $(cat log.txt)"
chat <<< "{$end,\"add_generation_prompt\":true,\"continue_final_message\":true}" && bad "both" || refused both 'cannot both be true'
[ "$(chat <<< "{$end,\"chat_template_kwargs\":{\"enable_thinking\":false}}")" = '{"text":"<user>hi</>\n<assistant>so</>\nOFF"}' ] && ok || bad "chat_template_kwargs: $(cat log.txt)"
done_
