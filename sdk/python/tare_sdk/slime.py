"""slime: a plugin's advantages through two of its functions.

    --custom-reward-post-process-path tare_sdk.slime.reward_post_process
    --custom-advantage-function-path tare_sdk.slime.advantages
    TARE_SLIME="bv_blend?n_clusters=8&gamma=0.5"     in the environment of every process

Each rank calls slime's advantage function with that rank's samples, which may split a group; the
reward post-processing function is called once, in the rollout manager, with all samples. So the
plugin runs there: each sample's reward becomes its advantage, and `advantages` on the ranks only
copies it to the sample's tokens. The state is in the rollout manager; it is written to SAVE/tare
after every rollout, and a run that continues from rollout S reads the state from before it.
"""

import logging
import os
from collections import OrderedDict
from urllib.parse import parse_qsl

from .estimator import Estimator
from .errors import TareError
from .prompts import prompt_uid

log = logging.getLogger("tare")
LACKS = ("component", "entropy", "ref_logprob", "component.verdict", "policy_version", "off_policy", "segment", "segment_reward")


class RewardPostProcess:
    """Called as slime calls --custom-reward-post-process-path: (args, samples) -> (raw rewards,
    rewards). cluster: Sample -> cluster.
    """

    def __init__(self, estimator, cluster=None):
        self.estimator, self.cluster, self._started = estimator, cluster, False
        estimator.lacks(LACKS, "slime")
        if estimator.gives_tokens:
            raise TareError("%s: gives every token an advantage of its own, and slime hands one number a sample on" % estimator.name, 40)

    def __call__(self, args, samples):
        self._start(args)
        if getattr(args, "normalize_advantages", False):
            raise TareError("slime: --normalize-advantages would whiten the plugin's advantages again; leave it out", 12)
        raw = [float(sample.get_reward_value(args)) for sample in samples]
        groups = OrderedDict()
        for i, sample in enumerate(samples):
            groups.setdefault(i if sample.group_index is None else ("group", sample.group_index), []).append(i)
        order = [i for rows in groups.values() for i in rows]
        rollouts, heads = [samples[i] for i in order], [samples[rows[0]] for rows in groups.values()]
        out = self.estimator.step_flat([raw[i] for i in order], [len(rows) for rows in groups.values()],
                                       [sample.response_length for sample in rollouts], **self._columns(rollouts, heads))
        self.estimator.apply()
        rewards = list(raw)
        for k, i in enumerate(order):
            rewards[i] = float(out.advantage[k] * out.rollout_weight[k])
            if out.rollout_weight[k] == 0:
                samples[i].remove_sample = True  # slime gives it a loss mask of zeros
        if out.extra_groups:
            log.warning("%s: asks for %d more groups; slime samples none here (--dynamic-sampling-filter-path does)", self.estimator.name, out.extra_groups)
        self._save(args)
        return raw, rewards

    def _columns(self, rollouts, heads):
        """Reads the facts about the samples that the plugin needs."""
        wants = self.estimator.wants
        cluster = self.cluster or (lambda sample: (sample.metadata or {}).get("cluster", -1))
        last = lambda sample: list(sample.tokens)[len(sample.tokens) - sample.response_length:]
        columns = {"prompt_uid": [prompt_uid(sample.prompt) for sample in heads]}
        if wants.get("cluster") or ("cluster" in wants and self.estimator.n_clusters):
            columns["cluster"] = [cluster(sample) for sample in heads]
        if "finish" in wants or "turn.finish" in wants:
            columns["finish"] = ["length" if "TRUNCATED" in str(sample.status).upper() else "stop" for sample in rollouts]
        if self.estimator.reads_rows:
            columns["row_json"] = [dict(sample.metadata or {}, answer=sample.label) for sample in heads]
        if "completion" in wants:
            columns["completion"] = [sample.response for sample in rollouts]
        if "token" in wants:
            columns["token"] = [token for sample in rollouts for token in last(sample)]
        if "logprob" in wants and all(sample.rollout_log_probs is not None for sample in rollouts):
            columns["logprob"] = [x for sample in rollouts for x in sample.rollout_log_probs]
        return columns

    # ---------------------------------------------------------------- the state, one file a rollout

    def _file(self, args, rollout):
        return os.path.join(args.save, "tare", "%s-%d.state" % (self.estimator.name, rollout)) if getattr(args, "save", None) else None

    def _start(self, args):
        if self._started:
            return
        self._started, first = True, getattr(args, "start_rollout_id", None) or 0
        if not first:
            return
        path = self._file(args, first)
        if not path or not os.path.exists(path):
            raise TareError("slime continues from rollout %d, but the state of %s from before it is missing (%s)" % (first, self.estimator.name, path), 41)
        with open(path, "rb") as file:
            self.estimator.load(file.read(), steps=first)

    def _save(self, args):
        path = self._file(args, self.estimator.steps)
        if not path:
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".tmp", "wb") as file:
            file.write(self.estimator.save())
        os.replace(path + ".tmp", path)


_from_environment = []


def reward_post_process(args, samples):
    """Makes the estimator that TARE_SLIME describes: PLUGIN?key=value&key=value."""
    if not _from_environment:
        plugin, _, query = os.environ.get("TARE_SLIME", "").partition("?")
        if not plugin:
            raise TareError("TARE_SLIME is not set; it names the estimator: grpo, or bv_blend?n_clusters=8&gamma=0.5", 12)
        parameters = dict(parse_qsl(query, keep_blank_values=True))
        _from_environment.append(RewardPostProcess(Estimator(plugin, n_clusters=int(parameters.pop("n_clusters", 0)), **parameters)))
    return _from_environment[0](args, samples)


def advantages(args, rollout_data):
    """Returns each sample's reward, which is already its advantage, for each of its tokens. slime
    has computed "kl" with one entry for each token of this rank.
    """
    if not getattr(args, "custom_reward_post_process_path", None):
        raise TareError("slime: tare_sdk.slime.advantages needs the results of --custom-reward-post-process-path tare_sdk.slime.reward_post_process; set both", 12)
    values = [kl.new_full(kl.shape, float(reward)) for kl, reward in zip(rollout_data["kl"], rollout_data["rewards"])]
    rollout_data["advantages"], rollout_data["returns"] = values, list(values)
