"""verl: a plugin as an advantage estimator (verl's register_adv_est; algorithm.adv_estimator=NAME).

verl calls an advantage function with tensors: token_level_rewards [N, T], response_mask [N, T], index [N] (the prompt of each row). A row's
reward is the sum of its token rewards; every token of its response gets its advantage. verl gives no hook after the policy step, so the
change of state that a call collected is applied at the start of the next call, which is after that step.
"""

import os
from collections import OrderedDict
from urllib.parse import parse_qsl

from .estimator import Estimator


class AdvantageFunction:
    """cluster: index of a prompt -> cluster, or None. state() and estimator.save()/load() as in Estimator."""

    def __init__(self, estimator, cluster=None):
        self.estimator, self.cluster = estimator, cluster

    def __call__(self, token_level_rewards, response_mask, index=None, config=None, **_):
        import torch

        if self.estimator.pending:
            self.estimator.apply()
        with torch.no_grad():
            scores = token_level_rewards.sum(dim=-1).double().tolist()
            groups = OrderedDict()
            for i, key in enumerate(range(len(scores)) if index is None else index):
                groups.setdefault(key, []).append(i)
            lengths = response_mask.sum(dim=-1).long().tolist()
            out = self.estimator.step([[scores[i] for i in rows] for rows in groups.values()],
                                      cluster=[self.cluster(key) for key in groups] if self.cluster else None,
                                      lengths=[[lengths[i] for i in rows] for rows in groups.values()])
            flat = [0.0] * len(scores)
            for rows, values, weights in zip(groups.values(), out.advantage, out.row_weight):
                for i, a, w in zip(rows, values, weights):
                    flat[i] = a * w
            advantages = torch.tensor(flat, dtype=token_level_rewards.dtype, device=token_level_rewards.device).unsqueeze(-1) * response_mask
        return advantages, advantages


def register(plugin, name=None, n_clusters=0, cluster=None, **parameters):
    """Makes a plugin known to verl; returns its AdvantageFunction."""
    from verl.trainer.ppo.core_algos import register_adv_est

    function = AdvantageFunction(Estimator(plugin, n_clusters=n_clusters, **parameters), cluster)

    def call(*args, **kwargs):
        return function(*args, **kwargs)

    register_adv_est(name or "tare_" + function.estimator.name)(call)
    return function


def register_from_environment():
    """Entry point of verl.plugins. TARE_VERL: 'NAME=PLUGIN?key=value&key=value', several separated by blanks."""
    for item in os.environ.get("TARE_VERL", "").split():
        name, _, rest = item.partition("=")
        plugin, _, query = rest.partition("?")
        parameters = dict(parse_qsl(query, keep_blank_values=True))
        register(plugin, name=name, n_clusters=int(parameters.pop("n_clusters", 0)), **parameters)
