#!/usr/bin/env python3
"""Makes the rollout dumps in this folder with the writers of TRL and of verl, for the tests of `tare audit`.

    python3 make.py MODEL FOLDER          MODEL: a small model that answers sums of two numbers now and then; FOLDER gets trl/, trl2/, verl/, rows.jsonl

TRL 1.16.0: two steps of GRPOTrainer on the CPU with log_completions=True; its Parquet files are turned into JSON lines by tools/to_jsonl.py --rows. trl
has one reward function, trl2 two with the weights 1 and 0.5. verl 0.9.1: its naive reward manager scores completions of the same model, and
RayPPOTrainer._log_rollout_data writes them (rollout_data_dir); two steps. MODEL was runs/quickstart-base-1 of configs/quickstart.ini, which adds
correctly and often writes the sum in another form. Needs torch, trl, verl, pandas, pyarrow, in one environment.

The groups passed to verl's writer are not consecutive, as with trainer.balance_batch, its default.
"""
import json
import os
import random
import subprocess
import sys
from types import SimpleNamespace as Bag

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

M, G, NEW, STEPS = 6, 4, 6, 2
HERE = os.path.dirname(os.path.abspath(__file__))
model_path, out = sys.argv[1:]


def rows():
    draw = random.Random(3)
    seen = {}
    while len(seen) < M * STEPS:
        a, b = draw.randint(0, 99), draw.randint(0, 9)
        seen[f"{a}+{b}="] = str(a + b)
    return [{"id": f"sum-{i}", "question": q, "answer": a} for i, (q, a) in enumerate(seen.items())]


def tokenizer_of(path):
    t = AutoTokenizer.from_pretrained(path)
    if t.pad_token is None:
        t.pad_token = t.eos_token
    t.padding_side = "left"
    return t


def exact(completions, answer, log_extra=None, **_):
    if log_extra:
        log_extra("answer", list(answer))
    return [float(c.strip() == a) for c, a in zip(completions, answer)]


def digits(completions, **_):
    return [float(c.isascii() and c.isdigit()) for c in completions]


def trl_dump(data, name, functions, weights):
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer
    folder = os.path.join(out, name)
    config = GRPOConfig(
        output_dir=folder, per_device_train_batch_size=M * G, num_generations=G, max_steps=STEPS, max_completion_length=NEW, temperature=1.0, top_p=1.0,
        top_k=0, learning_rate=1e-5, bf16=False, use_cpu=True, gradient_checkpointing=False, save_strategy="no", report_to="none", disable_tqdm=True,
        dataloader_pin_memory=False, log_completions=True, logging_steps=1, reward_weights=weights, seed=5)
    GRPOTrainer(model=AutoModelForCausalLM.from_pretrained(model_path, dtype=torch.float32), reward_funcs=functions, args=config,
                train_dataset=Dataset.from_list([{"prompt": r["question"], "answer": r["answer"]} for r in data]),
                processing_class=tokenizer_of(model_path)).train()
    for step in range(1, STEPS + 1):
        source = f"{folder}/completions/completions_{step:05d}.parquet"
        subprocess.run([sys.executable, f"{HERE}/../../../tools/to_jsonl.py", source, "--rows", "-o", f"{folder}/completions_{step:05d}.jsonl"], check=True)


def verl_dump(data):
    import numpy as np
    from verl import DataProto
    from verl.trainer.ppo.ray_trainer import RayPPOTrainer
    from verl.workers.reward_manager.naive import NaiveRewardManager
    tokenizer, model = tokenizer_of(model_path), AutoModelForCausalLM.from_pretrained(model_path, dtype=torch.float32)
    torch.manual_seed(11)
    score = lambda data_source, solution_str, ground_truth, extra_info=None, **_: float(solution_str.strip() == ground_truth)
    manager = NaiveRewardManager(tokenizer=tokenizer, num_examine=0, compute_score=score)
    trainer = Bag(tokenizer=tokenizer, _dump_futures=[], global_steps=0, _write_generations=RayPPOTrainer._write_generations)
    RayPPOTrainer._init_dump_executor(trainer)
    trainer._dump_generations = lambda **k: RayPPOTrainer._dump_generations(trainer, **k)
    for step in range(STEPS):
        group = [r for r in data[step * M:(step + 1) * M] for _ in range(G)]
        group = [group[i] for i in torch.randperm(M * G).tolist()]
        prompt = tokenizer([r["question"] for r in group], return_tensors="pt", padding=True)
        with torch.no_grad():
            whole = model.generate(**prompt, do_sample=True, temperature=1.0, top_k=0, top_p=1.0, max_new_tokens=NEW, pad_token_id=tokenizer.pad_token_id)
        width = prompt["input_ids"].shape[1]
        responses = whole[:, width:]
        ended = (responses == tokenizer.eos_token_id).cumsum(-1)
        alive = ((ended == 0) | ((ended == 1) & (responses == tokenizer.eos_token_id))).long()
        batch = DataProto.from_dict(
            tensors={"prompts": prompt["input_ids"], "responses": responses, "attention_mask": torch.cat([prompt["attention_mask"], alive], -1)},
            non_tensors={"reward_model": np.array([{"ground_truth": r["answer"]} for r in group], dtype=object),
                         "data_source": np.array(["sums"] * len(group), dtype=object)})
        reward = manager(batch, return_dict=True)
        batch.batch["token_level_scores"] = reward["reward_tensor"]
        trainer.global_steps = step + 1
        RayPPOTrainer._log_rollout_data(trainer, batch, reward["reward_extra_info"], {}, os.path.join(out, "verl"))
    RayPPOTrainer._shutdown_dump_executor(trainer)


data = rows()
os.makedirs(out, exist_ok=True)
with open(os.path.join(out, "rows.jsonl"), "w") as f:
    f.writelines(json.dumps(r) + "\n" for r in data)
trl_dump(data, "trl", [exact], None)
trl_dump(data, "trl2", [exact, digits], [1.0, 0.5])
verl_dump(data)
