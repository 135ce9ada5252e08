#!/usr/bin/env python3
"""Makes cases.json: the results of the released code of ReLIFT and PRIME for the rollouts of ../recipes.

    python3 make.py MODEL relift=FOLDER prime=FOLDER > cases.json

MODEL: tests/data/models/tiny/qwen3. The folders are checkouts: TheRoadQaQ/ReLIFT eb95454, PRIME-RL/PRIME 18ad596. Needs what ../recipes/make.py needs. Functions are
cut out of their files by name and run unchanged, in double precision; none of their code is kept here.

relift: the supervised loss of their actor (compute_sft_loss, minus 0.001 times the mean entropy, in one micro-batch) on the first completion of each group.
prime: the model is the process reward model, the rollouts' "ref" the reference's log-probabilities, a reward above 0.5 a correct answer (accuracy 1).
    Their token rewards divided by the batch's largest return (batch_norm), the advantages (compute_rloo_returns), the loss of the process reward model
    (compute_ce_dpo_loss_rm, beta 0.05), its gradient, and how often it ranks two rollouts correctly (compute_dpo_accuracy).
Every STRIDE-th number of each tensor of the gradients is kept.
"""
import importlib.util
import json
import os
import sys
from types import SimpleNamespace as Bag

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location("recipes", os.path.join(HERE, "..", "recipes", "make.py"))
recipes = importlib.util.module_from_spec(spec)
spec.loader.exec_module(recipes)
STRIDE, Step, cut, rollouts = recipes.STRIDE, recipes.Step, recipes.cut, recipes.rollouts

BETA, ENTROPY = 0.05, 0.001


def backward(model, loss):
    loss.backward()
    grads = {k: p.grad.flatten() for k, p in model.named_parameters()}
    norm = sum(float((g ** 2).sum()) for g in grads.values()) ** 0.5
    kept = {k: [float(f"{x:.9g}") for x in g[::STRIDE].tolist()] for k, g in grads.items()}
    model.zero_grad()
    return {"loss": loss.item(), "norm": norm, "gradient": kept}


def relift(at, model, groups):
    F = cut(f"{at}/relift/verl/verl/utils/torch_functional.py", "masked_mean", "entropy_from_logits", torch=torch)
    core = cut(f"{at}/relift/verl/verl/relift/core_algos.py", "compute_sft_loss", verl_F=F)
    rows = []
    for g in groups:
        prompt, ids = g["prompt"], g["completions"][0]
        logits = model(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1:-1]
        rows.append((torch.log_softmax(logits, -1).gather(1, torch.tensor(ids)[:, None])[:, 0], F.entropy_from_logits(logits)))
    pad = lambda x: torch.nn.utils.rnn.pad_sequence(x, batch_first=True)
    now, entropy, mask = pad([x for x, _ in rows]), pad([x for _, x in rows]), pad([torch.ones_like(x) for x, _ in rows])
    sft = core.compute_sft_loss(now, mask)["sft_loss"]
    mean = F.masked_mean(entropy, mask)
    return {"sft_loss": sft.item(), "entropy": mean.item(), "entropy_coef": ENTROPY, **backward(model, sft - mean * ENTROPY)}


def prime(at, model, groups):
    F = cut(f"{at}/training/verl/utils/torch_functional.py", "masked_mean", "masked_var", "masked_whiten", torch=torch)
    core = cut(f"{at}/training/verl/trainer/ppo/core_algos.py", "compute_rloo_returns", "compute_ce_dpo_loss_rm", "compute_dpo_accuracy", torch=torch, verl_F=F,
               verl=Bag(DataProto=None))
    samples = len(groups[0]["rewards"])
    s = Step(model, groups)
    acc = (s.rewards > 0.5).double()
    q = (s.now - s.ref) * s.mask
    out = backward(model, core.compute_ce_dpo_loss_rm(q, acc, s.mask, BETA))
    scores = q.detach()
    accuracy = core.compute_dpo_accuracy(scores, acc, s.mask, samples).item()
    returns = torch.cumsum(scores.flip(dims=[1]), dim=-1).flip(dims=[1])  # dp_prime.py, prime_norm = batch_norm
    normed = scores / (returns.abs().max() + 1e-6)
    last = (s.mask.cumsum(1) == s.mask.sum(1, keepdim=True)) * s.mask
    data = Bag(batch={"responses": s.mask, "rm_scores": normed, "gt_scores": last * acc[:, None], "prompts": s.mask[:, :0], "attention_mask": s.mask.long()})
    config = Bag(algorithm=Bag(adv_params=Bag(reward_model_gamma=1.0, verifier_gamma=1.0)))
    advantages, _ = core.compute_rloo_returns(data, s.mask, samples, config)
    cut_rows = lambda x: [x[i, :n].tolist() for i, n in enumerate(s.lengths)]
    return {"beta": BETA, "outcome": acc.tolist(), "accuracy": accuracy, "scores": cut_rows(scores), "advantages": cut_rows(advantages), **out}


def main():
    from transformers import AutoModelForCausalLM
    at = dict(a.split("=", 1) for a in sys.argv[2:])
    model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float64, attn_implementation="eager")
    torch.set_default_dtype(torch.float64)
    groups = rollouts(model)
    cases = {name: run(at[name], model, groups) for name, run in (("relift", relift), ("prime", prime))}
    for name, c in cases.items():
        print(f"{name}: loss {c['loss']:.9g}, norm {c['norm']:.9g}", file=sys.stderr)
    json.dump({"stride": STRIDE, "rollouts": groups, **cases}, sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
