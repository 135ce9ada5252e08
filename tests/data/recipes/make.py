#!/usr/bin/env python3
"""Makes cases.json: one step's loss and gradient of a tiny model, computed by the code of other trainers with their defaults for GRPO.

    python3 make.py MODEL verl=SITE_PACKAGES trl=SITE_PACKAGES nemo=FOLDER openrlhf=FOLDER slime=FOLDER oat=FOLDER luffy=FOLDER > cases.json

MODEL: tests/data/models/tiny/qwen3. SITE_PACKAGES: where verl 0.9.1 and TRL 1.16.0 are installed (PyPI). The folders are checkouts: NeMo-RL 7ea279ab,
OpenRLHF 3c3be623, slime 624b824a, Oat c1a074c, LUFFY 01f4ae0. Needs torch, transformers, yaml. Functions are cut out of their files by name and run unchanged, in double
precision where possible; defaults are read from the trainers' own tables of options. None of their code is kept here.

The rollouts are made up: four prompts, four completions each, rewards that are 0 or 1, in between, all equal, and of several sizes. The old and the
reference policy are the model's own log-probabilities with noise, so that ratios leave every clip range, dual clip included; multiples of 1/1024.

cases.json: rollouts (of every case), cases: as, keys (in addition), traces (1: the last rollout of each group comes from another policy), peer, loss, norm and
gradient, of which every STRIDE-th number of each tensor is
kept.
"""
import ast
import json
import os
import sys
from collections import defaultdict
from types import SimpleNamespace as Bag
from typing import Any

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "objectives"))
from make import Config, cut  # noqa: E402

import numpy as np  # noqa: E402
import torch  # noqa: E402
import yaml  # noqa: E402

STRIDE = 149
REWARDS = [[1, 0, 0, 1], [0.25, 1, 0.5, 0], [1, 1, 1, 1], [2, -1, 0.125, 5]]


def rollouts(model):
    g = torch.Generator().manual_seed(7)
    draw = lambda low, high, n: torch.randint(low, high, (n,), generator=g).tolist()
    grid = lambda x: ((x * 1024).round() / 1024).clamp(max=-1 / 1024)
    groups = []
    for rewards in REWARDS:
        prompt = draw(3, 256, draw(2, 8, 1)[0])
        group = {"prompt": prompt, "rewards": rewards, "completions": [], "old": [], "ref": []}
        for _ in rewards:
            ids = draw(3, 256, draw(2, 11, 1)[0])
            now = logprobs(model, prompt, ids).detach()
            group["completions"].append(ids)
            group["old"].append(grid(now + 0.6 * torch.randn(len(ids), generator=g)).tolist())
            group["ref"].append(grid(now + 0.4 * torch.randn(len(ids), generator=g)).tolist())
        groups.append(group)
    return groups


def logprobs(model, prompt, ids):
    logits = model(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1:-1]
    return torch.log_softmax(logits.double(), -1).gather(1, torch.tensor(ids)[:, None])[:, 0]


class Step:
    """The step as padded tensors [N, T], with the model's log-probabilities in the graph."""

    def __init__(self, model, groups):
        flat = [(g, i) for g in groups for i in range(len(g["rewards"]))]
        self.group = [k for k, g in enumerate(groups) for _ in g["rewards"]]
        self.rewards = torch.tensor([g["rewards"][i] for g, i in flat], dtype=torch.float64)
        self.now_each = [logprobs(model, g["prompt"], g["completions"][i]) for g, i in flat]
        self.lengths = [len(x) for x in self.now_each]
        pad = lambda rows: torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        self.now = pad(self.now_each)
        self.old = pad([torch.tensor(g["old"][i], dtype=torch.float64) for g, i in flat])
        self.ref = pad([torch.tensor(g["ref"][i], dtype=torch.float64) for g, i in flat])
        self.mask = pad([torch.ones(n, dtype=torch.float64) for n in self.lengths])


# ---------------------------------------------------------------- reading their code

def classes(path, *names, **space):
    """Classes of a file by name, in a namespace of what they use."""
    text = open(path).read()
    found = {n.name: n for n in ast.parse(text).body if isinstance(n, ast.ClassDef)}
    for name in names:
        exec(compile("from __future__ import annotations\n" + ast.get_source_segment(text, found[name]), path, "exec"), space)
    return Bag(**{name: space[name] for name in names})


def options(path):
    """The defaults of an argparse table: {option: default}."""
    out = {}
    for n in ast.walk(ast.parse(open(path).read())):
        if isinstance(n, ast.Call) and getattr(n.func, "attr", "") == "add_argument" and n.args and isinstance(n.args[0], ast.Constant):
            k = {x.arg: x.value for x in n.keywords}
            action = getattr(k.get("action"), "value", "")
            try:
                out[n.args[0].value.lstrip("-")] = ast.literal_eval(k["default"]) if "default" in k else {"store_true": False, "store_false": True}.get(action)
            except ValueError:
                pass
            if action == "store_false" and "dest" in k:
                out[k["dest"].value] = True
    return out


def fields(path, name):
    """The defaults of a dataclass whose fields are field(default=...)."""
    (body,) = [n.body for n in ast.parse(open(path).read()).body if isinstance(n, ast.ClassDef) and n.name == name]
    out = {}
    for n in body:
        if isinstance(n, ast.AnnAssign) and isinstance(n.value, ast.Call):
            for k in n.value.keywords:
                if k.arg == "default":
                    out[n.target.id] = ast.literal_eval(k.value)
    return out


# ---------------------------------------------------------------- the trainers

def verl(at, s):
    core_file = f"{at}/verl/trainer/ppo/core_algos.py"
    F = cut(f"{at}/verl/utils/torch_functional.py", "masked_sum", "masked_mean", torch=torch)
    core = cut(core_file, "agg_loss", "compute_policy_loss_vanilla", "compute_grpo_outcome_advantage", torch=torch, verl_F=F, np=np, defaultdict=defaultdict,
               AlgoConfig=type("AlgoConfig", (), {}))
    actor = yaml.safe_load(open(f"{at}/verl/trainer/config/actor/actor.yaml"))
    algorithm = yaml.safe_load(open(f"{at}/verl/trainer/config/ppo_trainer.yaml"))["algorithm"]
    correction = yaml.safe_load(open(f"{at}/verl/trainer/config/algorithm/rollout_correction.yaml"))
    assert actor["policy_loss"]["loss_mode"] == "vanilla" and not actor["use_kl_loss"] and not actor["entropy_coeff"]
    assert not algorithm["use_kl_in_reward"] and not correction["rollout_is"] and not correction["rollout_rs"] and not correction["bypass_mode"]
    scores = s.rewards[:, None] * (s.mask.cumsum(1) == s.mask.sum(1, keepdim=True)) * s.mask
    a, _ = core.compute_grpo_outcome_advantage(scores, s.mask, np.array(s.group), norm_adv_by_std_in_grpo=algorithm["norm_adv_by_std_in_grpo"])
    return core.compute_policy_loss_vanilla(s.old, s.now, a, s.mask, actor["loss_agg_mode"], Config(**actor, global_batch_info={}))[0]


def trl(at, s, **changed):
    c = Bag(**{**fields(f"{at}/trl/trainer/grpo_config.py", "GRPOConfig"), **changed})
    path = f"{at}/trl/trainer/grpo_trainer.py"
    nanstd = cut(f"{at}/trl/trainer/utils.py", "nanstd", torch=torch).nanstd
    # The advantages are computed by an "if" inside of a long method.
    (found,) = [n for n in ast.walk(ast.parse(open(path).read())) if isinstance(n, ast.If) and "multi_objective_aggregation == 'sum_then" in ast.unparse(n.test)]
    n = len(s.rewards)
    me = Bag(multi_objective_aggregation=c.multi_objective_aggregation, reward_weights=torch.ones(1), scale_rewards=c.scale_rewards, reward_funcs=[None])
    space = {"self": me, "torch": torch, "nanstd": nanstd, "rewards_per_func": s.rewards[:, None], "device": "cpu", "num_generations": len(REWARDS[0]),
             "unscorable_mask": torch.zeros(n, dtype=torch.bool)}
    exec(compile(ast.Module([found], []), path, "exec"), space)
    accelerator = Bag(num_processes=1, reduce=lambda x, **k: x, gather=lambda x: x)
    me = Bag(args=c, top_entropy_quantile=c.top_entropy_quantile, off_policy_mask_threshold=c.off_policy_mask_threshold, beta=c.beta, loss_type=c.loss_type,
             importance_sampling_level=c.importance_sampling_level, epsilon_low=c.epsilon, epsilon_high=c.epsilon if c.epsilon_high is None else c.epsilon_high,
             use_vllm=c.use_vllm, model=Bag(training=True), current_gradient_accumulation_steps=1, accelerator=accelerator, aux_loss_enabled=False,
             _entropy_bonus_enabled=c.entropy_coef != 0 or c.use_adaptive_entropy, _metrics={"train": defaultdict(list)},
             _get_per_token_logps_and_entropies=lambda *a, **k: (s.now, torch.zeros_like(s.now), None))
    c.steps_per_generation = 1
    nan = cut(f"{at}/trl/trainer/utils.py", "nanmin", "nanmax", torch=torch)
    code = cut(path, "_compute_loss", torch=torch, nanmin=nan.nanmin, nanmax=nan.nanmax)
    ids = torch.zeros(n, s.now.shape[1], dtype=torch.long)
    return code._compute_loss(me, None, {"prompt_ids": ids, "prompt_mask": ids, "completion_ids": ids, "completion_mask": s.mask, "advantages": space["advantages"],
                                         "old_per_token_logps": s.old, "ref_per_token_logps": s.ref, "num_items_in_batch": s.mask.sum()})


def nemo(at, s):
    from pydantic import BaseModel
    helpers = cut(f"{at}/nemo_rl/algorithms/utils.py", "calculate_kl", "masked_mean", "calculate_baseline_and_std_per_prompt", torch=torch)
    bags = defaultdict(lambda: Any)
    bags.update(BaseModel=BaseModel, Optional=__import__("typing").Optional, LossFunction=object, torch=torch, masked_mean=helpers.masked_mean,
                calculate_kl=helpers.calculate_kl, LossType=Bag(TOKEN_LEVEL="token", SEQUENCE_LEVEL="sequence"), LossInputType=Bag(LOGPROB="logprob"),
                MetricNormalizer=Bag(TOKENS=0, SEQUENCES=0, NONE=0))
    space = dict(bags)
    loss = classes(f"{at}/nemo_rl/algorithms/loss/loss_functions.py", "ClippedPGLossConfig", "ClippedPGLossFn", **space)
    est = classes(f"{at}/nemo_rl/algorithms/advantage_estimator.py", "AdvEstimatorConfig", "GRPOAdvantageEstimator", BaseModel=BaseModel, torch=torch,
                  calculate_baseline_and_std_per_prompt=helpers.calculate_baseline_and_std_per_prompt)
    loss.ClippedPGLossConfig.model_rebuild(_types_namespace=space)
    est.AdvEstimatorConfig.model_rebuild()
    c = loss.ClippedPGLossConfig()
    a = est.GRPOAdvantageEstimator(est.AdvEstimatorConfig(), c).compute_advantage(torch.tensor(s.group)[:, None], s.rewards, s.mask)
    shift = lambda x: torch.cat([torch.zeros(len(x), 1, dtype=x.dtype), x], 1)  # it drops the first position of every column
    data = {"token_mask": shift(s.mask), "sample_mask": torch.ones(len(s.rewards), dtype=torch.float64), "advantages": shift(a), "prev_logprobs": shift(s.old),
            "generation_logprobs": shift(s.old), "reference_policy_logprobs": shift(s.ref)}
    return loss.ClippedPGLossFn(c)(s.now, data, torch.tensor(float(len(s.rewards))), s.mask.sum())[0]


def openrlhf(at, s):
    o = options(f"{at}/openrlhf/cli/train_ppo_ray.py")
    tree = lambda prefix: Bag(**{k[len(prefix):]: v for k, v in o.items() if k.startswith(prefix) and "." not in k[len(prefix):]})
    args = Bag(algo=Bag(advantage=tree("algo.advantage."), kl=tree("algo.kl.")), reward=tree("reward."), actor=tree("actor."), rollout=tree("rollout."))
    args.algo.advantage.estimator = "group_norm"
    args.rollout.n_samples_per_prompt = len(REWARDS[0])
    assert not args.algo.kl.use_loss and args.algo.kl.target is None and not args.algo.advantage.is_correction_enable and args.actor.entropy_coef is None
    utils = cut(f"{at}/openrlhf/models/utils.py", "compute_approx_kl", "compute_reward", "masked_mean", torch=torch)
    maker = cut(f"{at}/openrlhf/trainer/ppo_utils/experience_maker.py", "compute_advantages_and_returns", "get_cumulative_returns", torch=torch,
                itertools=__import__("itertools"), compute_reward=utils.compute_reward, apply_length_penalties=lambda e, a: None)
    loss = classes(f"{at}/openrlhf/models/loss.py", "PolicyLoss", torch=torch, nn=torch.nn, masked_mean=utils.masked_mean,
                   aggregate_loss=cut(f"{at}/openrlhf/models/loss.py", "aggregate_loss", torch=torch, masked_mean=utils.masked_mean).aggregate_loss)
    kl = utils.compute_approx_kl(s.old, s.ref, kl_estimator=args.algo.kl.estimator)
    e = Bag(index=list(range(len(s.rewards))), rewards=s.rewards, kl=kl, action_mask=s.mask, info={})
    me = Bag(strategy=Bag(args=args), kl_ctl=Bag(value=args.algo.kl.init_coef), advantage_estimator=args.algo.advantage.estimator)
    me.get_cumulative_returns = lambda *a: maker.get_cumulative_returns(me, *a)
    maker.compute_advantages_and_returns(me, [e])
    low, high = args.actor.eps_clip_low_high or (args.actor.eps_clip, args.actor.eps_clip)
    return loss.PolicyLoss(low, high, args.actor.dual_clip, policy_loss_type=args.actor.policy_loss_type)(s.now, s.old, e.advantages, action_mask=s.mask)[0]


def slime(at, s, **changed):
    args = Bag(**{**{k.replace("-", "_"): v for k, v in options(f"{at}/slime/utils/arguments.py").items()}, **changed})
    args.eps_clip_high = args.eps_clip if args.eps_clip_high is None else args.eps_clip_high  # as its arguments.py does
    args.n_samples_per_prompt, args.rollout_batch_size, args.calculate_per_token_loss = len(REWARDS[0]), len(REWARDS), False
    assert args.advantage_estimator == "grpo" and not args.use_tis and not args.entropy_coef and not args.kl_coef
    ppo = cut(f"{at}/slime/utils/ppo_utils.py", "compute_approx_kl", "compute_policy_loss", "get_grpo_returns", torch=torch)
    reduce = cut(f"{at}/slime/backends/megatron_utils/cp_utils.py", "get_sum_of_sample_mean", torch=torch, mpu=Bag(get_context_parallel_world_size=lambda: 1))
    post = cut(f"{at}/slime/ray/rollout.py", "_post_process_rewards", torch=torch)
    masks = [torch.ones(n, dtype=torch.float64) for n in s.lengths]
    old = [s.old[i, :n] for i, n in enumerate(s.lengths)]
    _, rewards = post._post_process_rewards(Bag(custom_reward_post_process_func=None, args=args), [Bag(get_reward_value=lambda a, r=r: r) for r in s.rewards.tolist()])
    advantages = ppo.get_grpo_returns(torch.tensor(rewards), [torch.zeros_like(x) for x in old])
    total = reduce.get_sum_of_sample_mean(s.lengths, s.lengths, masks, [m.sum() for m in masks], args.calculate_per_token_loss)
    code = cut(f"{at}/slime/backends/megatron_utils/loss.py", "policy_loss_function", torch=torch, compute_policy_loss=ppo.compute_policy_loss,
               compute_approx_kl=ppo.compute_approx_kl, get_rollout_top_p_logprob_kwargs=lambda *a: {}, _maybe_capture_log_probs=lambda *a: None,
               get_log_probs_and_entropy=lambda *a, **k: (None, {"log_probs": s.now_each, "entropy": [torch.zeros_like(x) for x in s.now_each]}))
    batch = {"advantages": advantages, "log_probs": old, "response_lengths": s.lengths, "total_lengths": s.lengths, "unconcat_tokens": None, "loss_masks": masks,
             "rollout_mask_sums": [m.sum() for m in masks], "ref_log_probs": [s.ref[i, :n] for i, n in enumerate(s.lengths)]}
    return code.policy_loss_function(args, batch, torch.zeros(1), total)[0] / len(s.lengths)  # loss_function: / step_global_batch_size


def oat(at, s):
    """Oat-Zero (sail-sg/understand-r1-zero): critic_type drgrpo, beta 0; generate_max_length 12 instead of 3000, so that the numbers are not small."""
    ops = cut(f"{at}/oat/utils/ops.py", "masked_sum", torch=torch, Optional=__import__("typing").Optional)
    path = f"{at}/oat/algorithms/ppo.py"
    me = Bag(args=Bag(critic_type="drgrpo", num_samples=len(REWARDS[0]), beta=0, cliprange=0.2, reinforce_update=False, tis_c=None, generate_max_length=12))
    scores = s.rewards[:, None] * (s.mask.cumsum(1) == s.mask.sum(1, keepdim=True)) * s.mask
    advantages = cut(path, "compute_monte_carlo_advantages", torch=torch).compute_monte_carlo_advantages(me, scores, s.mask)[:, None]
    # The loss is in the middle of a long method: the "if" with the ratio, unchanged.
    (found,) = [n for n in ast.walk(ast.parse(open(path).read())) if isinstance(n, ast.If) and ast.unparse(n.test) == "args.reinforce_update" and "torch.clamp" in ast.unparse(n)]
    space = {"args": me.args, "self": me, "torch": torch, "mb_advantage": advantages, "new_logps": s.now, "mb_logps": s.old, "mb_actor_logps": s.old,
             "mb_response_masks": s.mask, "masked_sum": ops.masked_sum, "kl_v1_sum": 0, "kl_v2_sum": 0, "act_num_token": 0, "stats": defaultdict(list)}
    exec(compile(ast.Module([found], []), path, "exec"), space)
    return ops.masked_sum(space["pg_loss_max"], s.mask, axis=1, constant_normalizer=me.args.generate_max_length).mean()


def luffy(at, s):
    """Its train.sh: grpo without a deviation, over sampled rollouts and traces equally; no clip; the sum divided by the width of the responses, here 1024."""
    F = cut(f"{at}/luffy/verl/verl/utils/torch_functional.py", "masked_mean", torch=torch)
    core = cut(f"{at}/luffy/verl/verl/trainer/ppo/core_algos.py", "compute_grpo_outcome_advantage", torch=torch, np=np, defaultdict=defaultdict)
    mixed = cut(f"{at}/luffy/verl/verl/mix_src/mix_core_alg.py", "compute_token_on_off_policy_loss", torch=torch, verl_F=F)
    wide = lambda x: torch.nn.functional.pad(x, (0, 1024 - x.shape[1]))
    traces = torch.tensor([i % len(REWARDS[0]) == len(REWARDS[0]) - 1 for i in range(len(s.rewards))])[:, None] * (wide(s.mask) > 0)
    scores = s.rewards[:, None] * (s.mask.cumsum(1) == s.mask.sum(1, keepdim=True)) * s.mask
    a, _ = core.compute_grpo_outcome_advantage(wide(scores), wide(s.mask), np.array(s.group), use_std=False)
    return mixed.compute_token_on_off_policy_loss(wide(s.old), wide(s.now), a, wide(s.mask), 0.2, 1.0, traces, None, off_policy_reshape="p_div_p_0.1",
                                                  loss_remove_token_mean=True, loss_remove_clip=True)["pg_loss"]


PEERS = {"oat": (oat, "Oat c1a074c"), "luffy": (luffy, "LUFFY 01f4ae0"), "verl": (verl, "verl 0.9.1"), "trl": (trl, "TRL 1.16.0"), "nemo": (nemo, "NeMo-RL 7ea279ab"), "openrlhf": (openrlhf, "OpenRLHF 3c3be623"),
         "slime": (slime, "slime 624b824a")}


# In addition to the defaults: the KL is enabled where it is disabled by default. recipe, options there, the same keys here
VARIANTS = [(name, {}, []) for name in PEERS if name not in ("oat", "luffy")] + [("trl", {"beta": 0.04}, ["loss.kl_coef=0.04"]),
                                                 ("slime", {"use_kl_loss": True, "kl_loss_coef": 0.02}, ["loss.kl_coef=0.02"])]
# Trainers without a name under run.as: their keys are those of configs/oat-zero.ini and configs/luffy.ini
KEYS = {"oat": ["estimator.plugin=dr_grpo", "loss.aggregation=constant", "loss.aggregation_length=12", "loss.clip=0.2"],
        "luffy": ["estimator.plugin=dr_grpo", "objective.plugin=luffy", "loss.aggregation=constant", "loss.aggregation_length=64"]}  # 1024 / 16 rollouts


def main():
    from transformers import AutoModelForCausalLM
    at = dict(a.split("=", 1) for a in sys.argv[2:])
    model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float64, attn_implementation="eager")
    torch.set_default_dtype(torch.float64)
    groups = rollouts(model)
    cases = []
    for name, changed, keys in VARIANTS + [(name, {}, keys) for name, keys in KEYS.items()]:
        run, peer = PEERS[name]
        model.zero_grad()
        loss = run(at[name], Step(model, groups), **changed)
        loss.backward()
        grads = {k: p.grad.flatten() for k, p in model.named_parameters()}
        norm = sum(float((g ** 2).sum()) for g in grads.values()) ** 0.5
        cases.append({"as": "" if name in KEYS else name, "keys": keys, "traces": int(name == "luffy"), "peer": peer, "loss": loss.item(), "norm": norm,
                      "gradient": {k: [float(f"{x:.9g}") for x in g[::STRIDE].tolist()] for k, g in grads.items()}})
        print(f"{peer}: loss {loss.item():.9g}, norm {norm:.9g}", file=sys.stderr)
    json.dump({"stride": STRIDE, "rollouts": groups, "cases": cases}, sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
