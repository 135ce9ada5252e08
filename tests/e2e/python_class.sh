#!/usr/bin/env bash
# Trains on the episodes of a Python class: one with tools, as TRL's environment_factory takes it, in a
# chat whose template shows the tools; and one with gymnasium's step. Schemas and prompts are compared
# with what the class says; its errors end the run with one message.
. "$(dirname "$0")/common.inc"
command -v python3 > /dev/null || skip "no python3"
same() { cmp -s "$1" "$2" && ok || bad "$1 and $2 differ"; }
cat > store.py <<'PY'
class Store:
    def __init__(self, value="7"):
        self.value = value

    def reset(self, key="k1", **row):
        self.key, self.seen = key, None
        return "Look up %s." % key

    def look(self, key: str) -> str:
        """Looks a key up.

        Args:
            key: the key's
                name
        """
        self.seen = key
        return "<|im_end|>" + {"k1": self.value}[key]

    def add(self, a: int, b: int | None = None) -> int:
        """Adds.

        Args:
            a (int): one
            b: another

        Returns:
            The sum.
        """
        return a + (b or 0)

    def state_key(self):
        return "%s %s" % (self.key, self.seen)

    def get_reward(self):
        return float(self.seen == self.key)


class Parity:
    def reset(self, seed, options=None):
        self.n = seed % 2
        return "even or odd: %d" % self.n, {}

    def step(self, act):
        assert act != "raise", "no such act"
        return "", float(act == "eo"[self.n]), True, False, {"was": self.n}


class Late(Parity):
    def step(self, act):
        import time
        time.sleep(60)
PY

# By hand: two calls in one act, an argument of 30 digits, errors of tools, an act without a call.
call() { printf '<tool_call>{"name": "%s", "arguments": %s}</tool_call>' "$@"; }
{ call look '{"key": "k1"}'; echo; call add '{"a": 123456789012345678901234567890}'; call look '{"key": "k9"}'; call hide '{}'; call look '{"no": 1}'; echo; echo done; } |
    "$TARE" env play python_class file=store.py class=Store > out.txt 2> err.txt || bad "play: $(cat err.txt)"
has out.txt '"name": "look", "description": "Looks a key up.", "parameters": {"type": "object", "properties": {"key": {"type": "string", "description": "the key.s name"}}, "required": \["key"\]}, "return": {"type": "string"}}'
has out.txt '"b": {"type": "integer", "nullable": true, "description": "another"}}, "required": \["a"\]}, "return": {"type": "integer", "description": "The sum."}}'
has out.txt '^environment  <.im_end.>7$'
for line in 123456789012345678901234567890 "{.error.: .'k9'.}" "{.error.: .Tool hide not found..}" "{.error.: .Store.look.. got an unexpected keyword"; do has out.txt "$line"; done
has out.txt '^end          done after 3 acts, reward 0$' # the last key was k9

# A model that has learnt one call by heart.
cat > chatml.jinja <<'J'
{% if tools %}<|im_start|>system
{{ tools | tojson }}<|im_end|>
{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}
J
python3 - "$(sed -n 's/^tools  *//p' out.txt)" <<'PY'
import json, sys
call = '<tool_call>{"name": "look", "arguments": {"key": "k1"}}</tool_call>'
with open("warm.jsonl", "w") as f:
    for i in range(64):
        f.write(json.dumps({"id": str(i), "question": "Look up k1.", "completion": call, "tools": json.loads(sys.argv[1])}) + "\n")
with open("rows.jsonl", "w") as f:
    for i in range(8):
        f.write(json.dumps({"id": str(i), "question": "#", "key": "k1"}) + "\n")
PY
cat > sft.ini <<'INI'
[run]
dir = sft
[model]
path = none
init = qwen2
hidden_size = 64
layers = 2
heads = 4
kv_heads = 2
intermediate_size = 128
context = 2048
[data]
train = warm.jsonl
prompt = chat
chat_template = chatml.jinja
[sft]
steps = 120
batch = 16
out = base
[train]
lr = 4e-3
INI
cat > agent.ini <<'INI'
[run]
dir = run
[model]
path = base
[data]
train = rows.jsonl
prompt = chat
chat_template = chatml.jinja
[rollout]
prompts = 2
group_size = 2
max_new_tokens = 300
temperature = 0.1
[environment]
plugin = python_class
question = false
max_turns = 2
[environment.python_class]
file = store.py
class = Store
[codebook]
plugin = none
[estimator]
plugin = grpo
[loss]
entropy_coef = 0.01
[train]
steps = 2
minibatch = 4
lr = 1e-6
[log]
progress = none
INI
"$TARE" -q sft sft.ini 2> err.txt || bad "sft: $(cat err.txt)"
train() { "$TARE" -q train agent.ini "$@" > out.txt 2> err.txt; }
train && has run/metrics.jsonl '"reward/mean":1[,}]' && has run/metrics.jsonl '"rollout/calls":1[,}]' && has run/metrics.jsonl '"rollout/unparsed_calls":0[,}]' ||
    bad "tools: $(cat err.txt; grep -o '"re[^,]*' run/metrics.jsonl)"
hasnt run/metrics.jsonl '"policy/sampler_mismatch":[^0n]'
has run/rollouts/step-000001.jsonl '"prompt":"<.im_start.>system.n\[{.*name.*look.*Look up k1.<.im_end.>.n<.im_start.>assistant.n"'
has run/rollouts/step-000001.jsonl '</tool_call>.ntool.n<.im_end.>7.nassistant' # the text of a special token stays text
train run.dir=again run.threads=3 && same run/rollouts/step-000002.jsonl again/rollouts/step-000002.jsonl || bad "three threads: $(cat err.txt)"
train run.dir=hidden environment.calls=xml && has hidden/metrics.jsonl '"rollout/unparsed_calls":1[,}]' || bad "another syntax: $(cat err.txt)"
sed 's/{% if tools %}.*/{% if false %}/' chatml.jinja > shows.jinja
train run.dir=blind data.chat_template=shows.jinja environment.calls=hermes && has err.txt 'warning: environment python_class offers tools, but the chat template does not show them' || bad "hidden tools: $(cat err.txt)"
train run.dir=parity environment.python_class.class=Parity && has parity/metrics.jsonl '"rollout/turns":1[,}]' || bad "gymnasium: $(cat err.txt)"

# refused PATTERN ARGUMENTS...
refused() {
    local pattern=$1
    shift
    rm -rf refused
    train run.dir=refused "$@" && bad "accepted: $*"
    grep -E -- "$pattern" err.txt > found.txt && [ "$(grep -c '^tare: ' err.txt)" = 1 ] && ok || bad "$*: $(cat err.txt)"
}
printf 'class Bad:\n    def reset(self, **row):\n        raise KeyError("nothing")\n' > bad.py
printf 'class Bad:\n    def reset(self, **row):\n        pass\n    def tool(self, a):\n        pass\n' > undocumented.py
refused 'no class named Shop; there are Store, Parity, Late' environment.python_class.class=Shop
refused 'reset of Bad: KeyError: .nothing. \(.*bad.py:3\)' environment.python_class.class=Bad environment.python_class.file=bad.py
refused 'tool has no docstring' environment.python_class.class=Bad environment.python_class.file=undocumented.py
refused 'arguments = \[\]: must be a JSON object' 'environment.python_class.arguments=[]'
refused "unexpected keyword argument 'weight'" 'environment.python_class.arguments={"weight": 1}'
refused 'Late took more than 1 s for a turn' environment.python_class.class=Late environment.python_class.timeout=1
train run.dir=eight 'environment.python_class.arguments={"value": "8"}' && has eight/rollouts/step-000001.jsonl '<.im_end.>8' || bad "arguments: $(cat err.txt)"
"$TARE" plugin check python_class > out.txt 2>&1 && ok || bad "plugin check: $(cat out.txt)"
done_
