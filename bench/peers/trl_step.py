"""GRPO steps of TRL's GRPOTrainer on the CPU with fixed work: trl_step.py MODEL f32|bf16 ROWS.jsonl M G NEW STEPS THREADS
Every rollout has exactly NEW tokens, with one optimizer step per step; beta 0, clip 0.2, temperature 1. bf16: weights, activations and
AdamW's state in bf16, its fastest setting. Prints {"seconds": median of the steps after the first}."""
import json
import statistics
import sys
import tempfile
import time

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

model_path, dtype, rows, m, g, new, steps, threads = sys.argv[1:4] + [int(x) for x in sys.argv[4:]]
torch.set_num_threads(threads)
tokenizer = AutoTokenizer.from_pretrained(model_path)
if tokenizer.pad_token is None:
    tokenizer.pad_token = tokenizer.eos_token
model = AutoModelForCausalLM.from_pretrained(model_path, dtype=torch.bfloat16 if dtype == "bf16" else torch.float32, attn_implementation="sdpa")
with open(rows) as f:
    data = Dataset.from_list([{"prompt": json.loads(line)["question"]} for line in f])
micro = min(32, m * g)
config = GRPOConfig(
    output_dir=tempfile.mkdtemp(), per_device_train_batch_size=micro, gradient_accumulation_steps=m * g // micro, num_generations=g, max_steps=steps,
    max_completion_length=new, temperature=1.0, top_p=1.0, top_k=0, beta=0.0, epsilon=0.2, learning_rate=1e-6, loss_type="grpo", bf16=False, fp16=False,
    use_cpu=True, gradient_checkpointing=False, generation_kwargs={"min_new_tokens": new}, save_strategy="no", report_to="none", disable_tqdm=True,
    dataloader_pin_memory=False)


class Clock(TrainerCallback):
    seconds = []

    def on_step_begin(self, *_, **__):
        self.began = time.perf_counter()

    def on_step_end(self, *_, **__):
        self.seconds.append(time.perf_counter() - self.began)


clock = Clock()
GRPOTrainer(model=model, reward_funcs=lambda completions, **_: [float("1" in c) for c in completions], args=config, train_dataset=data,
            processing_class=tokenizer, callbacks=[clock]).train()
print(json.dumps({"seconds": statistics.median(clock.seconds[1:])}))
