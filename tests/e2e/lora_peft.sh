#!/usr/bin/env bash
# Compares the logprobs of adapters of [lora] with those of peft. PYTHON names the interpreter that
# has peft.
source "$(dirname "$0")/common.inc"
command -v python3 > /dev/null || skip "no python3"
python=${PYTHON:-python3}
"$python" -c 'import torch, transformers, peft' 2> err.txt || skip "peft is not installed for $python (pip install peft)"
tiny_config
printf '[lora]\nrank = 4\nalpha = 8\n' >> tiny.ini
"$TARE" -q sft sft.ini 2> err.txt || { bad "sft"; cat err.txt; }
last=checkpoints/step-000012
export TRANSFORMERS_OFFLINE=1 HF_HUB_OFFLINE=1
for base in dtype int8; do
    "$TARE" train tiny.ini log.progress=none run.dir=$base model.weights=$base > /dev/null 2> err.txt || { bad "train, model.weights=$base"; cat err.txt; }
    # The adapter on the base as its files have it: within 1e-4, whatever the precision of the base
    # in training.
    "$python" "$SOURCE/bench/peft_adapter.py" "$TARE" $base/$last > $base.txt 2>&1 && ok || { bad "$base: $(tail -n 5 $base.txt)"; }
done
# The cost of int8 for an adapter that was trained on it: not more than the rounding of the base.
"$python" "$SOURCE/bench/peft_adapter.py" "$TARE" int8/$last --weights int8 --within 0.2 > rounded.txt 2>&1 && ok || bad "int8: $(tail -n 5 rounded.txt)"
"$python" "$SOURCE/bench/peft_adapter.py" "$TARE" int8/$last --weights int8 > out.txt 2>&1 && bad "int8 changes nothing" || ok
cat dtype.txt int8.txt rounded.txt
done_
