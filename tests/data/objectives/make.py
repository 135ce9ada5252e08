#!/usr/bin/env python3
"""Makes cases.jsonl: losses computed by the code of other trainers, to compare objectives with.

    python3 make.py LOSSES verl=FOLDER slime=FOLDER roll=FOLDER luffy=FOLDER archer=FOLDER > cases.jsonl

LOSSES: recorded outcomes of loss functions of verl 1dda039b9, TRL f2cd57710, SkyRL a9564572e, OpenRLHF 3c3be6234 and slime 624b824a8 (torch 2.15 on
the CPU, in double precision): inputs, value, gradient. The folders are checkouts: verl b178a3cd5, slime 624b824a8, ROLL 8eb27cc2, LUFFY 01f4ae0,
Archer2.0 b08d963. Needs torch. A function is cut out of its file by name and run unchanged; none of their code is kept here.

A case: objective, params (of its section), loss (keys of [loss]), sequences (logprob, old, sampler, advantage, weight of each token, all that a mask
leaves), value (the sum of weight * v) and grad (its derivative in each logprob). Recorded inputs have four decimals, ours are multiples of 1/1024,
which single precision holds exactly.

Choices that had to be made:
- verl's and SkyRL's clamp of log r to +-20 is not ours: rows that reach it are left out.
- dppo: clip_ratio_c is not in the record; it was 1.5 or 3, and the gradients show which.
- rejection masks (mis): verl bounds sampled/old, we bound old/sampled, so the bounds are inverted; verl removes rejected tokens from the mean,
  we do not, so the mask multiplies the weights here.
"""
import ast
import json
import math
import sys
import textwrap
from types import SimpleNamespace

MOST = 8  # cases of an objective and peer (and mode)


def rows(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


def token_weights(r, mode):
    """[B][T] of an aggregation of verl"""
    mask = r["mask"]
    n, used = sum(map(sum, mask)), sum(any(m) for m in mask)
    if mode == "token-sum":
        return [[1.0] * len(m) for m in mask]
    if mode in ("token-mean", "token_mean"):
        return [[1.0 / n] * len(m) for m in mask]
    if mode == "seq-mean-token-mean":
        return [[1.0 / (used * max(sum(m), 1))] * len(m) for m in mask]
    if mode == "seq-mean-token-sum":
        return [[1.0 / used] * len(m) for m in mask]
    if mode == "rows":
        return [[1.0 / (len(mask) * max(sum(m), 1))] * len(m) for m in mask]
    return None


def case(name, objective, params, loss, r, weights, sampler=None, traces=None):
    out = {"id": name, "peer": r["peer"], "objective": objective, "params": {k: str(v) for k, v in params.items()}, "loss": loss, "sequences": [],
           "value": r["loss_value"], "grad": []}
    for b, mask in enumerate(r["mask"]):
        keep = [t for t in range(len(mask)) if mask[t]]
        if not keep:
            continue
        pick = lambda x: [x[b][t] for t in keep]
        s = {"logprob": pick(r["log_prob"]), "old": pick(r["old_log_prob"]), "advantage": pick(r["advantages"]), "weight": pick(weights)}
        if sampler:
            s["sampler"] = pick(sampler)
        if traces:
            s["trace"] = traces[b]
        out["sequences"].append(s)
        out["grad"].append(pick(r["grad_log_prob"]))
    return out


def moderate(r):
    return all(abs(a - b) < 15 for x, y, m in zip(r["log_prob"], r["old_log_prob"], r["mask"]) for a, b, k in zip(x, y, m) if k)


def probabilities(r):
    return all(a < 0 and b < 0 for x, y, m in zip(r["log_prob"], r["old_log_prob"], r["mask"]) for a, b, k in zip(x, y, m) if k)


def ratio_cap(r, weights):
    """The larger of 1.5 and 3 that no gradient exceeds."""
    top = 0
    for lp, old, a, g, m, w in zip(r["log_prob"], r["old_log_prob"], r["advantages"], r["grad_log_prob"], r["mask"], weights):
        top = max([top] + [-g[t] / a[t] / w[t] for t in range(len(m)) if m[t] and a[t]])
    return 1.5 if top <= 1.5 + 1e-9 else 3.0


def recorded(path):
    for r in rows(path):
        loss, p = r["loss"], r["params"]
        if loss in ("kl", "aggregate", "gpg") or not moderate(r):
            continue
        if "trl" in r["peer"]:
            r["advantages"] = [[a] * len(m) for a, m in zip(r["advantages"], r["mask"])]
        low, high = p.get("clip_ratio_low", p.get("eps_clip_low", p.get("clip_eps_low"))), p.get("clip_ratio_high", p.get("eps_clip_high", p.get("clip_eps_high")))
        clip = {"clip_low": low, "clip_high": high}
        mode = p.get("loss_agg_mode", p.get("loss_reduction"))
        if loss in ("gspo", "sapo"):
            mode = "seq-mean-token-mean"
        if loss == "geo_mean":
            mode = "rows"
        if r["peer"].startswith("openrlhf"):
            mode = "token-mean" if p["token_level_loss"] else "openrlhf"
        weights = token_weights(r, mode) if mode else None
        if weights is None or "dp_size" in p or "global_batch_size" in p or "batch_num_tokens" in p:
            continue
        bounds = {"clip": low, "clip_high": high}
        made = {
            "vanilla": lambda: ("ppo", {}, {**bounds, "dual_clip": p.get("clip_ratio_c", 3.0)}),
            "openrlhf_ppo": lambda: ("ppo", {}, bounds),
            "openrlhf_ppo_dual": lambda: ("ppo", {}, {**bounds, "dual_clip": p["dual_clip"]}),
            "skyrl_regular": lambda: ("ppo", {}, bounds),
            "skyrl_cispo": lambda: ("cispo", clip, {}),
            "gspo": lambda: ("gspo", clip, {}),
            "cispo": lambda: ("cispo", clip, {}),
            "sapo": lambda: ("sapo", {"tau_pos": p["tau_pos"], "tau_neg": p["tau_neg"]}, {}),
            "geo_mean": lambda: ("gmpo", clip, {}),
            "dro": lambda: ("dro", {"beta": p["dro_beta"]}, {}),
            "dppo_tv": lambda: ("dppo", {"divergence": "tv", "low": low, "high": high, "ratio_cap": ratio_cap(r, weights)}, {}),
            "dppo_kl": lambda: ("dppo", {"divergence": "kl", "low": low, "high": high, "ratio_cap": ratio_cap(r, weights)}, {}),
            "clip_cov": lambda: ("clip_cov", {"ratio": 1, "low": p["clip_cov_lb"], "high": p["clip_cov_ub"]}, bounds),
            "kl_cov": lambda: ("kl_cov", {"ratio": p["kl_cov_ratio"], "kl_coef": p["ppo_kl_coef"]}, bounds),
        }.get(loss)
        if made and (loss != "dppo_kl" or probabilities(r)):
            objective, params, keys = made()
            yield case(r["id"], objective, params, keys, r, weights)


# ---------------------------------------------------------------- run here

def cut(path, *names, **names_it_uses):
    """Functions (or methods) of a file by name, run in a namespace of what they use."""
    text = open(path).read()
    space = dict(names_it_uses)
    found = {n.name: n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)}
    for name in names:
        node = found[name]
        node.decorator_list = []
        lines = text.splitlines()[node.lineno - 1:node.end_lineno]
        exec(compile("from __future__ import annotations\n" + textwrap.dedent("\n".join(lines)), path, "exec"), space)
    return SimpleNamespace(**{name: space[name] for name in names})


class Config(SimpleNamespace):
    def get(self, key, fallback=None):
        return getattr(self, key, fallback)


def random_rows(torch, seed, shift):
    """Ratios and advantages of all sorts; multiples of 1/1024. mask: prefixes of different lengths"""
    g = torch.Generator().manual_seed(seed)
    grid = lambda x: (x * 1024).round() / 1024
    b, t = 6, 9
    old = grid(-3 * torch.rand(b, t, generator=g) - 0.0625)
    log_prob = torch.clamp(grid(old + shift * torch.randn(b, t, generator=g)), max=-1 / 1024)
    sampler = torch.clamp(grid(old + shift * torch.randn(b, t, generator=g)), max=-1 / 1024)
    advantages = grid(torch.randn(b, 1, generator=g)).expand(b, t).contiguous()
    lengths = torch.randint(1, t + 1, (b, 1), generator=g)
    return log_prob, old, sampler, advantages, (torch.arange(t) < lengths).double()


def ran(torch, peer, seed, shift, loss):
    """The record of a loss(log_prob, old, sampler, advantages, mask) -> value, with its gradient."""
    log_prob, old, sampler, advantages, mask = random_rows(torch, seed, shift)
    log_prob.requires_grad_(True)
    value = loss(log_prob, old, sampler, advantages, mask)
    value.backward()
    r = {"peer": peer, "log_prob": log_prob.tolist(), "old_log_prob": old.tolist(), "advantages": advantages.tolist(), "mask": mask.long().tolist(),
         "loss_value": value.item(), "grad_log_prob": log_prob.grad.tolist()}
    return r, sampler.tolist()


def sampler_cases(torch, verl):
    F = cut(f"{verl}/verl/utils/torch_functional.py", "masked_sum", "masked_mean", torch=torch)
    core = cut(f"{verl}/verl/trainer/ppo/core_algos.py", "agg_loss", "compute_policy_loss_vanilla", torch=torch, verl_F=F, AlgoConfig=type("A", (), {}))
    none = lambda *a, **k: {}
    helper = cut(f"{verl}/verl/trainer/ppo/rollout_corr_helper.py", "_parse_rollout_rs_thresholds", "compute_rollout_rejection_mask",
                 "compute_rollout_correction_weights", torch=torch, verl_F=F, math=math, SAFETY_BOUND=20.0, compute_is_metrics=none, compute_rs_metrics=none,
                 SUPPORTED_ROLLOUT_RS_OPTIONS={"token_k1", "seq_sum_k1", "seq_mean_k1"}, TOKEN_LEVEL_ROLLOUT_RS_OPTIONS={"token_k1"}, Optional=None)
    config = Config(clip_ratio=0.2, clip_ratio_low=0.2, clip_ratio_high=0.28, clip_ratio_c=3.0, global_batch_info={})
    bounds = {"clip": 0.2, "clip_high": 0.28, "dual_clip": 3.0}

    def loss(level, cap, mask_by, low, high):
        def f(log_prob, old, sampler, advantages, mask):
            weights, _ = helper.compute_rollout_correction_weights(old - sampler, mask, level, cap) if level else (torch.ones_like(old), None)
            if mask_by:
                kept, _ = helper.compute_rollout_rejection_mask(old - sampler, mask, mask_by, f"{1 / high}_{1 / low}")
                weights = weights * kept
            return core.compute_policy_loss_vanilla(old, log_prob, advantages, mask, "token-mean", config, weights)[0]
        return f
    kinds = [("tis", {"level": level, "cap": cap}, (level, cap, None, 1, 1)) for level, cap in (("token", 2), ("token", 1.25), ("sequence", 2))]
    masks = {"token": "token_k1", "geometric": "seq_mean_k1", "sequence": "seq_sum_k1"}
    for mask, low, high, weight in (("token", 0.5, 5, "token"), ("token", 0.75, 1.5, "token"), ("geometric", 0.875, 1.125, "none"),
                                    ("sequence", 0.5, 2, "sequence"), ("geometric", 0.875, 1.125, "token"), ("sequence", 0.25, 4, "none")):
        kinds.append(("mis", {"mask": mask, "low": low, "high": high, "weight": weight}, (None if weight == "none" else weight, 1e30, masks[mask], low, high)))
    for k, (objective, params, arguments) in enumerate(kinds):
        for seed in range(3):
            r, sampler = ran(torch, "verl@b178a3cd5", 100 + 10 * k + seed, 0.4, loss(*arguments))
            yield case(f"{objective}-verl-{k}-{seed}", objective, params, bounds, r, token_weights(r, "token-mean"), sampler)


def other_cases(torch, at):
    opsm = cut(f"{at['slime']}/slime/utils/ppo_utils.py", "compute_opsm_mask", "compute_policy_loss", torch=torch)
    topr = cut(f"{at['roll']}/roll/pipeline/rlvr/actor_pg_worker.py", "_compute_topr_loss", torch=torch)
    mean = lambda x, mask, axis=None: (x * mask).sum() / mask.sum()
    F = SimpleNamespace(masked_mean=mean)
    archer = cut(f"{at['archer']}/verl/trainer/ppo/core_algos.py", "agg_loss", "compute_policy_loss_archer", torch=torch, verl_F=F)
    luffy = cut(f"{at['luffy']}/luffy/verl/verl/mix_src/mix_core_alg.py", "compute_token_on_off_policy_loss", torch=torch, verl_F=F)

    def opsm_loss(delta):
        def f(log_prob, old, sampler, a, mask):
            split = lambda x: [x[b] for b in range(len(x))]
            keep, _ = opsm.compute_opsm_mask(SimpleNamespace(opsm_delta=delta), split(log_prob.detach()), split(old), split(a), split(mask))
            losses, _ = opsm.compute_policy_loss((old - log_prob).flatten(), a.flatten(), 0.2, 0.28, None)
            return mean(losses * keep, mask.flatten())
        return f

    def topr_loss(log_prob, old, sampler, a, mask):
        me = SimpleNamespace(_get_or_cache_config=lambda key, fallback: fallback, _topr_sample_logged=True, _cached_metrics={})
        data = SimpleNamespace(batch={"scores": a[:, 0]})
        return mean(topr._compute_topr_loss(me, torch.exp(log_prob - old), log_prob, old, a, data), mask)

    def archer_loss(cap):
        def f(log_prob, old, sampler, a, mask):
            mask = mask.bool()
            return archer.compute_policy_loss_archer(old, log_prob, a, mask, torch.ones_like(mask), 0.2, 0.2, 0.28, 0.28, cap, cap)[0]
        return f

    def luffy_loss(clip):
        def f(log_prob, old, sampler, a, mask):
            traces = torch.zeros_like(mask).bool()
            traces[::3] = True
            return luffy.compute_token_on_off_policy_loss(old, log_prob, a, mask, 0.2, 1.0, traces, None, off_policy_reshape="p_div_p_0.1",
                                                          loss_remove_clip=not clip)["pg_loss"]
        return f
    kinds = [("opsm", {"delta": d}, {"clip": 0.2, "clip_high": 0.28}, "slime@624b824a8", opsm_loss(d)) for d in (1e-4, 0.1)]
    kinds += [("topr", {"level": "token"}, {}, "roll@8eb27cc2", topr_loss)]
    kinds += [("aspo", {"cap_positive": c, "cap_negative": c}, {"clip": 0.2, "clip_high": 0.28}, "archer@b08d963", archer_loss(c)) for c in (3.0, 1.25)]
    kinds += [("luffy", {"on_policy_clip": str(c).lower()}, {"clip": 0.2, "clip_high": 0.2}, "luffy@01f4ae0", luffy_loss(c)) for c in (False, True)]
    for k, (objective, params, keys, peer, loss) in enumerate(kinds):
        for seed in range(4):
            r, _ = ran(torch, peer, 500 + 10 * k + seed, 0.4, loss)
            traces = [int(b % 3 == 0) for b in range(len(r["mask"]))] if objective == "luffy" else None
            yield case(f"{objective}-{peer.split('@')[0]}-{k}-{seed}", objective, params, keys, r, token_weights(r, "token-mean"), None, traces)


def main():
    import torch
    torch.set_default_dtype(torch.float64)
    at = dict(a.split("=", 1) for a in sys.argv[2:])
    count, cases = {}, []
    for c in list(recorded(sys.argv[1])) + list(sampler_cases(torch, at["verl"])) + list(other_cases(torch, at)):
        key = c["objective"], c["peer"], str(c["params"]) if c["objective"] in ("tis", "mis") else ""
        count[key] = count.get(key, 0) + 1
        if count[key] <= MOST:
            cases.append(c)
    for c in cases:
        print(json.dumps(c, separators=(",", ":")))


if __name__ == "__main__":
    main()
