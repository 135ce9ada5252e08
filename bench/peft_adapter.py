"""An adapter that tare wrote, as peft loads it: the logprobs of both on random tokens.

usage: peft_adapter.py TARE ADAPTER [SEQUENCES]      needs torch, transformers and peft; ends with status 1 above 1e-4"""
import json
import subprocess
import sys

import torch
from peft import PeftConfig, PeftModel
from transformers import AutoModelForCausalLM


def main(tare, folder, sequences=8):
    base = AutoModelForCausalLM.from_pretrained(PeftConfig.from_pretrained(folder).base_model_name_or_path, dtype=torch.float32)
    model = PeftModel.from_pretrained(base, folder).eval()
    torch.manual_seed(1)
    length = min(64, base.config.max_position_embeddings)
    ids = torch.randint(0, base.config.vocab_size, (sequences, length))
    rows = "".join(json.dumps({"ids": row}) + "\n" for row in ids.tolist())
    out = subprocess.run([tare, "score", folder], input=rows, text=True, capture_output=True, check=True).stdout
    worst = 0.0
    with torch.no_grad():
        expected = torch.log_softmax(model(ids).logits[:, :-1], -1).gather(-1, ids[:, 1:, None])[..., 0]
        with model.disable_adapter():
            without = torch.log_softmax(model(ids).logits[:, :-1], -1).gather(-1, ids[:, 1:, None])[..., 0]
    for line, row in zip(out.splitlines(), expected):
        got = torch.tensor([x for x in json.loads(line)["logprobs"] if x is not None][-len(row):])
        worst = max(worst, (got - row).abs().max().item())
    print(f"logprobs of {sequences} sequences of {length} tokens: worst difference {worst:.2e}; the adapter itself changes them by up to "
          f"{(expected - without).abs().max().item():.2e}")
    return worst < 1e-4


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(0 if main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:4])) else 1)
