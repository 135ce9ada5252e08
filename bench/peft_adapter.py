"""Compares an adapter written by tare with the same adapter loaded by peft: logprobs of both on random tokens.

usage: peft_adapter.py TARE ADAPTER [--sequences N] [--weights dtype|int8] [--within X]

Requires torch, transformers and peft. Exit status 1 if a logprob differs by more than X (1e-4). peft computes in f32 on the base as stored in
its files; tare uses --weights, so int8 shows the effect of rounding the base."""
import argparse
import json
import subprocess
import sys

import torch
from peft import PeftConfig, PeftModel
from transformers import AutoModelForCausalLM


def main(tare, folder, sequences, weights, within):
    base = AutoModelForCausalLM.from_pretrained(PeftConfig.from_pretrained(folder).base_model_name_or_path, dtype=torch.float32)
    model = PeftModel.from_pretrained(base, folder).eval()
    torch.manual_seed(1)
    length = min(64, base.config.max_position_embeddings)
    ids = torch.randint(0, base.config.vocab_size, (sequences, length))
    rows = "".join(json.dumps({"ids": row}) + "\n" for row in ids.tolist())
    out = subprocess.run([tare, "score", folder, "dtype=f32", "weights=" + weights], input=rows, text=True, capture_output=True, check=True).stdout
    with torch.no_grad():
        expected = torch.log_softmax(model(ids).logits[:, :-1], -1).gather(-1, ids[:, 1:, None])[..., 0]
        with model.disable_adapter():
            without = torch.log_softmax(model(ids).logits[:, :-1], -1).gather(-1, ids[:, 1:, None])[..., 0]
    got = torch.tensor([[x for x in json.loads(line)["logprobs"] if x is not None][-length + 1:] for line in out.splitlines()])
    off = (got - expected).abs()
    print(f"logprobs of {sequences} sequences of {length} tokens, the base in {weights}: worst difference {off.max().item():.2e}, mean {off.mean().item():.2e}; "
          f"the adapter itself changes them by up to {(expected - without).abs().max().item():.2e}")
    return off.max().item() <= within


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("tare")
    parser.add_argument("adapter")
    parser.add_argument("--sequences", type=int, default=8)
    parser.add_argument("--weights", choices=("dtype", "int8"), default="dtype")
    parser.add_argument("--within", type=float, default=1e-4)
    given = parser.parse_args()
    sys.exit(0 if main(given.tare, given.adapter, given.sequences, given.weights, given.within) else 1)
