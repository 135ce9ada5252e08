"""Training steps of plain PyTorch: torch_train.py MODEL f32|bf16 BATCH LENGTH STEPS THREADS
Forward, cross entropy, backward, fused AdamW, eager mode, attention by sdpa. Prints {"rate": tokens per second, median of the steps after the
first}."""
import json
import statistics
import sys
import time

import torch
from transformers import AutoModelForCausalLM

path, dtype, batch, length, steps, threads = sys.argv[1:3] + [int(x) for x in sys.argv[3:]]
torch.set_num_threads(threads)
torch.manual_seed(0)
model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.bfloat16 if dtype == "bf16" else torch.float32, attn_implementation="sdpa")
model.config.use_cache = False
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)
ids = torch.randint(0, model.config.vocab_size, (batch, length))
seconds = []
for _ in range(steps):
    began = time.perf_counter()
    logits = model(input_ids=ids).logits
    loss = torch.nn.functional.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]).float(), ids[:, 1:].reshape(-1))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    seconds.append(time.perf_counter() - began)
print(json.dumps({"rate": batch * length / statistics.median(seconds[1:])}))
