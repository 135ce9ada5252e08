"""Trains with TRL's GRPOTrainer what configs/studies/as-trl trains with tare: trl_learn.py MODEL ROWS.jsonl ARM SEED STEPS OUT [groups]

ARM is grpo, dr_grpo, dapo or gspo. A step samples 16 prompts x 8 completions of at most 6 tokens and makes two optimizer
steps of 64 completions, on one thread. TRL deals single completions to the two; with the word groups they get
whole groups, as in tare. Writes to OUT the model after the last step, log.jsonl with TRL's metrics of every
optimizer step, and seconds.json with the time from the first step to the end of the last."""
import json
import sys
import time

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer
from trl.trainer import grpo_trainer

ARMS = {
    "grpo": {"loss_type": "grpo"},
    "dr_grpo": {"loss_type": "dr_grpo", "scale_rewards": "none"},
    "dapo": {"loss_type": "dapo", "epsilon_high": 0.28},
    "gspo": {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": 3e-4, "epsilon_high": 4e-4},
}
model_path, rows, arm, seed, steps, out = sys.argv[1:4] + [int(x) for x in sys.argv[4:6]] + sys.argv[6:7]
if sys.argv[7:] == ["groups"]:
    def deal_groups(batch):
        order = [8 * g + i for g in torch.randperm(16).tolist() for i in range(8)]
        return {k: v[order] if torch.is_tensor(v) and v.ndim else [v[i] for i in order] if isinstance(v, list) else v for k, v in batch.items()}

    grpo_trainer.shuffle_sequence_dict = deal_groups
torch.set_num_threads(1)
tokenizer = AutoTokenizer.from_pretrained(model_path)
model = AutoModelForCausalLM.from_pretrained(model_path, dtype=torch.float32, attn_implementation="sdpa")
with open(rows, encoding="utf-8") as f:
    data = Dataset.from_list([{"prompt": r["question"], "answer": r["answer"]} for r in map(json.loads, f)])


def exact(completions, answer, **_):
    return [float(c.strip() == a.strip()) for c, a in zip(completions, answer)]


config = GRPOConfig(**{
    "output_dir": out, "seed": seed, "per_device_train_batch_size": 64, "gradient_accumulation_steps": 1, "steps_per_generation": 2,
    "num_generations": 8, "max_steps": 2 * steps, "max_completion_length": 6, "temperature": 1.0, "top_p": 1.0, "top_k": 0, "beta": 0.0,
    "epsilon": 0.2, "learning_rate": 2e-4, "warmup_steps": 20, "lr_scheduler_type": "cosine_with_min_lr",
    "lr_scheduler_kwargs": {"min_lr_rate": 0.1}, "adam_beta2": 0.99, "weight_decay": 0.0, "max_grad_norm": 1.0, "bf16": False,
    "fp16": False, "use_cpu": True, "gradient_checkpointing": False, "save_strategy": "no", "report_to": "none", "disable_tqdm": True,
    "logging_steps": 1, "dataloader_pin_memory": False, **ARMS[arm]})
trainer = GRPOTrainer(model=model, reward_funcs=exact, args=config, train_dataset=data, processing_class=tokenizer)
began = time.perf_counter()
trainer.train()
seconds = time.perf_counter() - began
trainer.save_model(out)
with open(f"{out}/log.jsonl", "w", encoding="utf-8") as f:
    for entry in trainer.state.log_history:
        f.write(json.dumps(entry) + "\n")
with open(f"{out}/seconds.json", "w", encoding="utf-8") as f:
    json.dump({"seconds": seconds}, f)
