"""Makes the folders here: adapters as peft writes them, with the logits and gradients that transformers and peft compute with them.

usage: make.py [NAME ...]        needs torch, transformers, peft and safetensors; the bases are ../models/tiny and ../models/families

Each folder is an adapter (adapter_config.json, adapter_model.safetensors) and case.safetensors:
  ids [2, 13] int32      two sequences
  logits [2, 13, V]      in fp32, of the base with the adapter
  grad.NAME              of L = -mean over the 24 predicted tokens of log p, by the adapter's tensor NAME"""
import json
import pathlib
import sys

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

HERE = pathlib.Path(__file__).resolve().parent
CASES = {
    "qwen3": {"r": 4, "lora_alpha": 8, "target_modules": "all-linear"},
    "qwen2-untied-bf16": {"r": 3, "lora_alpha": 6, "use_rslora": True, "target_modules": ["v_proj", "q_proj", "down_proj"]},
    "llama-tied-bf16": {"r": 8, "lora_alpha": 4, "target_modules": ["k_proj", "o_proj", "up_proj"]},
    "phi3": {"r": 3, "lora_alpha": 6, "target_modules": "all-linear"},
    "gemma3": {"r": 2, "lora_alpha": 3, "target_modules": "all-linear"},
}
BASES = {"phi3": "families", "gemma3": "families"}


def make(name, settings):
    out = HERE / name
    torch.manual_seed(7)
    base = AutoModelForCausalLM.from_pretrained(HERE.parent / "models" / BASES.get(name, "tiny") / name, dtype=torch.float32)
    model = get_peft_model(base, LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, **settings))
    for key, value in model.named_parameters():
        if "lora_B" in key:
            torch.nn.init.normal_(value, std=0.1)  # it is zero at the start of training, when an adapter has no effect
    model.eval()
    ids = torch.randint(8, base.config.vocab_size, (2, 13))
    logits = model(ids).logits
    logp = torch.log_softmax(logits[:, :-1], -1).gather(-1, ids[:, 1:, None])
    (-logp.mean()).backward()
    model.save_pretrained(out)
    tensors = {"ids": ids.to(torch.int32), "logits": logits.detach()}
    for key, value in model.named_parameters():
        if value.requires_grad:
            tensors["grad." + key.replace(".default", "")] = value.grad
    save_file({k: v.contiguous() for k, v in tensors.items()}, out / "case.safetensors")
    config = json.loads((out / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = f"models/{BASES.get(name, 'tiny')}/{name}"
    if isinstance(config["target_modules"], list):
        config["target_modules"].sort()
    (out / "adapter_config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    (out / "README.md").unlink(missing_ok=True)


for name, settings in CASES.items():
    if len(sys.argv) == 1 or name in sys.argv[1:]:
        make(name, settings)
