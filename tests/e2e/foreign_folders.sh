#!/usr/bin/env bash
# Checks folders whose files disagree: a tokenizer with another EOS than config.json, a tied model
# with a head of its own, and an adapter of peft whose targets are a regular expression.
. "$(dirname "$0")/common.inc"
has_python || done_
tiny_config
"$TARE" sft sft.ini 2> log.txt || bad "sft: $(tail -1 log.txt)"

# ---- the tokenizer's EOS ends completions: the model ends every answer with 258
reset() { # EOS_OF_CONFIG EOS_OF_TOKENIZER
    rm -rf other && cp -r base other && rm -f other/sums.json other/generation_config.json
    python3 - "$@" <<'PY'
import json, sys
for file, key, value in ("config.json", "eos_token_id", json.loads(sys.argv[1])), ("tokenizer_config.json", "eos_token", sys.argv[2]):
    j = json.load(open("other/" + file))
    j[key] = value
    json.dump(j, open("other/" + file, "w"))
PY
}
ids() { "$TARE" generate other max_new_tokens=24 group_size=1 temperature=0 "$@" <<< '{"question":"12+30="}' 2> log.txt | grep -o '"ids":[^]]*]'; }
reset 258 '<|im_end|>'
want=$(ids)
grep -q 'EOS' log.txt && bad "a warning without a difference: $(cat log.txt)" || ok
case $want in *258]) ok ;; *) bad "the model does not end its answer: $want" ;; esac
for eos in 256 '[256, 100]' null; do
    reset "$eos" '<|im_end|>'
    [ "$(ids)" = "$want" ] && ok || bad "eos_token_id = $eos: $(ids)"
    grep -q 'other: the EOS of tokenizer_config.json, <|im_end|> (258), ends completions too' log.txt && ok || bad "no warning for $eos: $(cat log.txt)"
done
reset 256 '<|endoftext|>'
[ "$(ids)" != "$want" ] && ok || bad "258 ends a completion although no file names it"
# Rows of supervised training end with the tokenizer's EOS: the first update has the same loss.
loss() { "$TARE" sft sft.ini run.dir="$1" model.path=other sft.out="$1-out" sft.epochs=1 > /dev/null 2> log.txt || bad "sft: $(tail -1 log.txt)"; }
reset '[256, 258]' '<|im_end|>'
loss first
reset '[258, 256]' '<|im_end|>'
loss second
cmp -s first-out/model.safetensors second-out/model.safetensors && ok || bad "the order of eos_token_id decides how rows end"

# ---- a head next to the tied embedding
head_of() { # CHANGE
    rm -rf tied && cp -r "$SOURCE/tests/data/models/tiny/llama-tied-bf16" tied
    python3 - "$1" <<'PY'
import json, struct, sys
data = open("tied/model.safetensors", "rb").read()
n = struct.unpack("<Q", data[:8])[0]
head, body = json.loads(data[8:8 + n]), data[8 + n:]
embed = head["model.embed_tokens.weight"]
a, b = embed["data_offsets"]
copy = bytearray(body[a:b])
kind = embed["dtype"]
if sys.argv[1] == "other":
    copy[-2] ^= 1
if sys.argv[1] == "wide":  # the same weights in F32
    copy = b"".join(b"\0\0" + bytes(copy[i:i + 2]) for i in range(0, len(copy), 2))
    kind = "F32"
head["lm_head.weight"] = {"dtype": kind, "shape": embed["shape"], "data_offsets": [len(body), len(body) + len(copy)]}
text = json.dumps(head).encode()
text += b" " * (-len(text) % 8)
open("tied/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + body + copy)
PY
}
score() { "$TARE" score "$@" <<< '{"ids":[1,2,3,9]}' 2> log.txt; }
want=$(score "$SOURCE/tests/data/models/tiny/llama-tied-bf16")
for change in same wide; do
    head_of $change
    [ "$(score tied)" = "$want" ] && ok || bad "an equal head ($change): $(cat log.txt)"
done
head_of other
score tied > out.txt && bad "another head is ignored"
grep -q 'tied: lm_head.weight differs from model.embed_tokens.weight.*tie_word_embeddings' log.txt && ok || bad "another head: $(cat log.txt)"
score tied weights=int8 > out.txt && bad "another head is ignored in int8" || ok
sed -i 's/"tie_word_embeddings": true/"tie_word_embeddings": false/' tied/config.json
[ -n "$(score tied)" ] && ok || bad "the head cannot be used: $(cat log.txt)"
[ "$(score tied)" != "$want" ] && ok || bad "the head is not used"

# ---- target_modules as a regular expression
base=$SOURCE/tests/data/models/tiny/qwen2-untied-bf16
want=$(score "$SOURCE/tests/data/lora/qwen2-untied-bf16" model.base="$base")
for targets in '".*\\\\.(q_proj|v_proj|down_proj)"' '"model.layers.\\\\d+.(self_attn|mlp).*_proj"' '".*"' null; do
    rm -rf adapter && cp -r "$SOURCE/tests/data/lora/qwen2-untied-bf16" adapter
    sed -i '/"target_modules"/,/]/c\  "target_modules": '"$targets"',' adapter/adapter_config.json
    if [ "$targets" = null ]; then
        score adapter model.base="$base" > out.txt && bad "no targets"
        grep -q 'target_modules: must be a list of names' log.txt && ok || bad "no targets: $(cat log.txt)"
    else
        [ "$(score adapter model.base="$base")" = "$want" ] && ok || bad "target_modules = $targets: $(cat log.txt)"
    fi
done
done_
