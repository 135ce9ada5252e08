"""Makes models/families: a tiny random model of each family, and the results that transformers computes with it. Usage: make_families.py [NAME ...]

Needs torch, transformers, safetensors. A folder has the files of ../tiny with the same meaning: config.json as transformers writes it and model.safetensors
in bf16, both by save_pretrained; goldens.safetensors (inputs, log-probabilities and entropies; for most models the logits of the first sequence and the gradient
of loss A); goldens.json (losses A and B, their gradients' norms, three steps of AdamW); greedy.json. Without a second checkpoint there is no loss C.

Losses, with r = exp(logp - old) over completion tokens, n_i of sequence i:
  A = -mean_i 1/n_i sum_t min(r A_i, clip(r, 0.8, 1.2) A_i) - 0.01 mean_i 1/n_i sum_t H_t
  B = -sum_it min(r A_i, clip(r, 0.8, 1.28) A_i) / sum_i n_i + 0.04 sum_it k3 / sum_i n_i,   k3 = exp(d) - d - 1, d = ref - logp
Parameters and sums are in double; transformers' own norms, positions and softmax round to float."""
import json
import pathlib
import sys

import torch
import transformers as hf
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).resolve().parent / "models" / "families"
SIZES = {"vocab_size": 97, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "head_dim": 8, "max_position_embeddings": 256, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}
FAMILIES = {
    "llama3.2": (hf.LlamaConfig, {"tie_word_embeddings": True, "rope_parameters": LLAMA3, "rms_norm_eps": 1e-5}),
    "mistral": (hf.MistralConfig, {"sliding_window": None, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}),
    "mistral-window": (hf.MistralConfig, {"sliding_window": 8}),
    "phi3": (hf.Phi3Config, {"sliding_window": None, "rms_norm_eps": 1e-5, "rope_parameters": {"rope_type": "default", "rope_theta": 250000.0}}),
    "phi3-part": (hf.Phi3Config, {"sliding_window": 11, "tie_word_embeddings": True,
                                  "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.75}}),
    "granite": (hf.GraniteConfig, {"embedding_multiplier": 12.0, "residual_multiplier": 0.22, "attention_multiplier": 0.2, "logits_scaling": 4.0,
                                   "tie_word_embeddings": True}),
    "smollm3": (hf.SmolLM3Config, {"num_hidden_layers": 3, "no_rope_layers": [1, 0, 1], "tie_word_embeddings": True}),
    "olmo2": (hf.Olmo2Config, {}),
    "gemma3": (hf.Gemma3TextConfig, {"num_hidden_layers": 3, "sliding_window": 8, "query_pre_attn_scalar": 12,
                                     "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
                                     "rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
                                                         "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1000000.0}}}),
}
# These differ only in the data that they read: no logits, of the gradients only the norms.
SMALL = ("llama3.2", "mistral", "phi3")
WITH_STEPS = ("olmo2",)  # parameters after the three steps
PROMPTS, COMPLETIONS = (19, 11), ((18, 5, 11), (7, 14, 1))
ADVANTAGES = (1.3, -0.8, 0.4, -1.1, 0.9, 0.0)
BETAS, LR, DECAY = (0.9, 0.999), 1e-3, 0.01
GREEDY, STEPS, MARGIN = 4, 32, 0.004


def weights(model, generator):
    """Far from the usual start, so that every weight counts; exact in bf16."""
    for name, p in model.named_parameters():
        x = torch.randn(p.shape, generator=generator, dtype=torch.float64)
        if p.dim() == 1:
            x = 0.3 * x + (0 if model.config.model_type == "gemma3_text" else 1)
        elif "embed_tokens" in name:
            x = x * 0.7
        else:
            x = x * 1.2 / p.shape[1] ** 0.5
        p.data = x.to(torch.bfloat16).to(torch.float64)


def batch(vocab, generator):
    rows = []
    for n, lengths in zip(PROMPTS, COMPLETIONS):
        prompt = torch.randint(3, vocab, (n,), generator=generator).tolist()
        rows += [(prompt, torch.randint(3, vocab, (k,), generator=generator).tolist()) for k in lengths]
    width = max(len(p) + len(c) for p, c in rows)
    ids, mask, completion = (torch.zeros(len(rows), width, dtype=torch.int64) for _ in range(3))
    for i, (p, c) in enumerate(rows):
        ids[i, :len(p) + len(c)] = torch.tensor(p + c)
        mask[i, :len(p) + len(c)] = 1
        completion[i, len(p):len(p) + len(c)] = 1
    return ids, mask, completion


def forward(model, ids, mask):
    """Row by row, without padding: log-probabilities and entropies at each token's own index."""
    logps, entropies, logits = [], [], []
    for row, n in zip(ids, mask.sum(1).tolist()):
        z = model(row[None, :n], use_cache=False).logits[0].double()
        lp = torch.log_softmax(z, -1)
        pad = torch.zeros(len(row) - n, dtype=torch.float64)
        logps.append(torch.cat([pad[:0].new_zeros(1), lp[:-1].gather(-1, row[1:n, None])[:, 0], pad]))
        entropies.append(torch.cat([pad[:0].new_zeros(1), -(lp.exp() * lp).sum(-1)[:-1], pad]))
        logits.append(z)
    return torch.stack(logps), torch.stack(entropies), logits


def losses(logp, entropy, g):
    m, A = g["completion_mask"].double(), g["advantages"].double()[:, None]
    r = torch.exp(logp - g["old"])
    mean = lambda x: ((m * x).sum(1) / m.sum(1)).mean()
    a = -mean(torch.minimum(r * A, r.clamp(0.8, 1.2) * A)) - 0.01 * mean(entropy)
    d = g["ref"] - logp
    b = (m * (-torch.minimum(r * A, r.clamp(0.8, 1.28) * A) + 0.04 * (d.exp() - d - 1))).sum() / m.sum()
    return a, b


def old_logprobs(logp, completion, generator):
    """Ratios around 1, some beyond the bounds of the clip and none at them."""
    ratio = torch.exp(0.25 * torch.randn(logp.shape, generator=generator, dtype=torch.float64))
    for bound in (0.8, 1.2, 1.28):
        ratio = torch.where((ratio - bound).abs() < 0.01, ratio + 0.03, ratio)
    return torch.where(completion.bool(), (logp - ratio.log()).float().double(), torch.zeros_like(logp))


def gradients(model, g, which):
    model.zero_grad()
    logp, entropy, _ = forward(model, g["input_ids"], g["attention_mask"])
    loss = losses(logp, entropy, g)[which]
    loss.backward()
    return loss.item(), {n: p.grad.clone() for n, p in model.named_parameters()}


def adamw(model, g):
    start = {n: p.data.clone() for n, p in model.named_parameters()}
    first, second, before, norms = {}, {}, [], []
    for step in range(1, 4):
        loss, grad = gradients(model, g, 0)
        before.append(loss)
        norm = torch.sqrt(sum((x ** 2).sum() for x in grad.values()))
        norms.append(norm.item())
        scale = min(1.0, 1 / (norm.item() + 1e-6))
        for n, p in model.named_parameters():
            x = grad[n] * scale
            first[n] = BETAS[0] * first.get(n, 0) + (1 - BETAS[0]) * x
            second[n] = BETAS[1] * second.get(n, 0) + (1 - BETAS[1]) * x * x
            p.data -= LR * DECAY * p.data
            p.data -= LR * first[n] / (1 - BETAS[0] ** step) / (torch.sqrt(second[n] / (1 - BETAS[1] ** step)) + 1e-8)
    after = gradients(model, g, 0)[0]
    end = {n: p.data for n, p in model.named_parameters()}
    for n, p in model.named_parameters():
        p.data = start[n]
    return {"loss_before_each_step": before, "grad_norm_before_clip": norms, "loss_after_3": after}, end


@torch.no_grad()
def greedy(model, vocab, generator):
    out = []
    for _ in range(200):
        prompt = torch.randint(3, vocab, (int(torch.randint(2, 20, (1,), generator=generator)),), generator=generator).tolist()
        ids, margin = list(prompt), 1.0
        for _ in range(STEPS):
            top = model(torch.tensor([ids]), use_cache=False).logits[0, -1].double().topk(2)
            margin = min(margin, (top.values[0] - top.values[1]).item())
            if margin < MARGIN:
                break
            ids.append(int(top.indices[0]))
        if margin >= MARGIN:
            out.append({"prompt": prompt, "tokens": ids[len(prompt):], "min_margin": margin})
        if len(out) == GREEDY:
            return out
    raise SystemExit(f"{model.config.model_type}: too few greedy texts with a clear first token")


def make(name, seed):
    cls, settings = FAMILIES[name]
    generator = torch.Generator().manual_seed(seed)
    config = cls(**{**SIZES, **settings})
    config._attn_implementation = "eager"
    model = hf.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval().double()
    weights(model, generator)
    folder = HERE / name
    folder.mkdir(parents=True, exist_ok=True)
    model.to(torch.bfloat16).save_pretrained(folder)
    # The written model is the one that is computed with.
    model = hf.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval().double()
    ids, mask, completion = batch(config.vocab_size, generator)
    with torch.no_grad():
        logp, entropy, logits = forward(model, ids, mask)
        cool = torch.stack([torch.cat([row.new_zeros(1), torch.log_softmax(z / 0.6, -1)[:-1].gather(-1, row[1:len(z), None])[:, 0],
                                       row.new_zeros(len(row) - len(z))]) for row, z in zip(ids, logits)])
    g = {"input_ids": ids, "attention_mask": mask, "completion_mask": completion, "advantages": torch.tensor(ADVANTAGES),
         "old": old_logprobs(logp, completion, generator)}
    noise = 0.2 * torch.randn(logp.shape, generator=generator, dtype=torch.float64)
    g["ref"] = torch.where(completion.bool(), (logp + noise).float().double(), torch.zeros_like(logp))
    tensors = {"input_ids": ids.int(), "attention_mask": mask.int(), "completion_mask": completion.int(), "advantages": g["advantages"].float(),
               "old_logprobs": g["old"].float(), "ref_logprobs": g["ref"].float(), "logprobs": logp.float(), "logprobs_t0.6": cool.float(),
               "entropies": entropy.float()}
    if name not in SMALL:
        tensors["logits"] = torch.zeros(1, ids.shape[1], config.vocab_size)
        tensors["logits"][0, :len(logits[0])] = logits[0].float()
    info = {"made_with": f"transformers {hf.__version__}, torch {torch.__version__}", "loss": {}, "grad_norm_total": {}, "grad_l2": {}}
    for i, which in enumerate("AB"):
        info["loss"][which], grad = gradients(model, g, i)
        info["grad_norm_total"][which] = torch.sqrt(sum((x ** 2).sum() for x in grad.values())).item()
        info["grad_l2"][which] = {n: x.norm().item() for n, x in grad.items()}
        if which == "A" and name not in SMALL:
            tensors.update({f"grad_A.{n}": x.float().contiguous() for n, x in grad.items()})
    m, r, A = completion.double(), torch.exp(logp - g["old"]), g["advantages"].double()[:, None]
    info["clip_fraction_A"] = ((m * (r * A > r.clamp(0.8, 1.2) * A)).sum() / m.sum()).item()
    info["mean_entropy_completion"] = ((m * entropy).sum() / m.sum()).item()
    info["adamw"], end = adamw(model, g)
    if name in WITH_STEPS:
        tensors.update({f"param3.{n}": x.float().contiguous() for n, x in end.items()})
    save_file(tensors, folder / "goldens.safetensors")
    (folder / "goldens.json").write_text(json.dumps(info, indent=1) + "\n")
    (folder / "greedy.json").write_text(json.dumps(greedy(model, config.vocab_size, generator)) + "\n")


for i, name in enumerate(FAMILIES):
    if len(sys.argv) == 1 or name in sys.argv[1:]:
        make(name, 11 + i)
