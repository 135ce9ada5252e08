"""verl: a plugin as an advantage estimator (verl's register_adv_est; algorithm.adv_estimator=NAME),
and a verifier as its reward function.

verl calls an advantage function with tensors: token_level_rewards [N, T], response_mask [N, T],
index [N] (a new name for each prompt of the step). A row's reward is the sum of its token
rewards; every token of its response gets its advantage. Other columns that a plugin needs
(logprobs, components, the identity of the prompt) are in the batch of verl's compute_advantage,
which does not pass them on; register() wraps that function to read them.

The state changes at the end of a call: verl has no hook after the policy step, and an estimator
can observe that step only through an extension that this host does not offer. register() also
stores the state in verl's checkpoints, in their global_step_N folder.
"""

import functools
import importlib
import logging
import os
import sys
from collections import OrderedDict
from urllib.parse import parse_qsl

from .estimator import Estimator
from .errors import TareError
from .prompts import prompt_uid
from .verifier import Verifier

log = logging.getLogger("tare")
LACKS = ("entropy", "finish", "row.json", "completion", "component.verdict", "policy_version", "segment", "segment_reward", "turn.finish")
_seen = {"data": None}  # the batch of the compute_advantage that is running


def _rows_by_prompt(index, n):
    groups = OrderedDict()
    for i, key in enumerate(range(n) if index is None else index):
        groups.setdefault(key, []).append(i)
    return groups


class AdvantageFunction:
    """cluster: index of a prompt -> cluster, or None. uid: index -> a whole number that identifies
    its prompt in every step, or None: a hash of the prompt's tokens. components: the names that
    the reward function returns in addition to "score", for estimators that need them.
    """

    def __init__(self, estimator, cluster=None, uid=None, components=None):
        self.estimator, self.cluster, self.uid, self.components = estimator, cluster, uid, components
        estimator.lacks([*LACKS, *estimator.row_fields], "verl")
        if estimator.wants.get("cluster") and cluster is None:
            raise TareError("%s: wants clusters; give cluster=, a function from a prompt's index to its cluster" % estimator.name, 13)
        if estimator.wants.get("component") and not components:
            raise TareError("%s: wants the reward's components; give components=, their names in what the reward function returns" % estimator.name, 13)

    def __call__(self, token_level_rewards, response_mask, index=None, config=None, **_):
        import torch

        mask = response_mask.bool()
        with torch.no_grad():
            groups = _rows_by_prompt(index, len(mask))
            order = [i for rows in groups.values() for i in rows]  # the plugin's rollouts, as rows of verl's
            scores, lengths = token_level_rewards.double().sum(dim=-1)[order].tolist(), mask.sum(dim=-1)[order].tolist()
            out = self.estimator.step_flat(scores, [len(rows) for rows in groups.values()], lengths, **self._columns(groups, order, mask))
            advantages = self._spread(out, order, lengths, token_level_rewards, response_mask)
        self.estimator.apply()
        return advantages, advantages

    def _columns(self, groups, order, mask):
        wants, data, columns = self.estimator.wants, _seen["data"], {}
        if self.cluster and self.estimator.n_clusters:
            columns["cluster"] = [self.cluster(key) for key in groups]
        if self.uid:
            columns["prompt_uid"] = [self.uid(key) for key in groups]
        elif self.estimator.by_prompt:
            columns["prompt_uid"] = [prompt_uid(self._prompt(data, rows[0])) for rows in groups.values()]
        for name, keys in (("logprob", ("rollout_log_probs", "old_log_probs")), ("ref_logprob", ("ref_log_prob",)), ("token", ("responses",))):
            key = next((k for k in keys if name in wants and data is not None and k in data.batch.keys()), None)
            if key:
                columns[name] = [x for i in order for x in data.batch[key][i][mask[i]].tolist()]
        columns.update(self._unjudged(data, order))
        if "component" in wants and self.components:
            named = {} if data is None else data.non_tensor_batch
            lost = [name for name in self.components if name not in named]
            if lost:
                raise TareError("%s: the reward function returned no '%s'" % (self.estimator.name, lost[0]), 13)
            columns["component"] = [[float(named[name][i]) for name in self.components] for i in order]
        return columns

    def _unjudged(self, data, order):
        """Reads the verdicts of compute_score. A rollout without a verdict is left out, and its
        reward does not count as 0.
        """
        said = None if data is None else data.non_tensor_batch.get("verdict")
        if said is None or not any(said[i] in ("timeout", "crashed") for i in order):
            return {}
        return {"verdict": [str(said[i]) for i in order]}

    def _prompt(self, data, row):
        """Returns the tokens of a row's prompt, without padding."""
        if data is None or "prompts" not in data.batch.keys():
            raise TareError("%s: keeps its state by prompt, and verl's batch does not say which prompts it has; give uid=, a function from a prompt's index "
                            "to a number that is the same in every step" % self.estimator.name, 13)
        prompt = data.batch["prompts"][row]
        if "attention_mask" in data.batch.keys():
            prompt = prompt[data.batch["attention_mask"][row][: len(prompt)].bool()]
        return prompt.tolist()

    def _spread(self, out, order, lengths, rewards, response_mask):
        """Returns advantages of tokens, in verl's rows. A rollout of weight 0 leaves the loss: its
        response_mask becomes 0 in verl's own batch.
        """
        import torch

        advantages, at = torch.zeros_like(rewards), 0
        for k, (i, length) in enumerate(zip(order, lengths)):
            weight, tokens = float(out.rollout_weight[k]), response_mask[i].bool()
            if out.token_advantage is None:
                advantages[i, tokens] = float(out.advantage[k] * out.rollout_weight[k])
            else:
                advantages[i, tokens] = torch.tensor(list(out.token_advantage[at: at + length]), dtype=rewards.dtype, device=rewards.device) * weight
            at += length
            if weight == 0:
                response_mask[i] = 0
        if out.extra_groups:
            log.warning("%s: requests %d more groups, which verl cannot sample; the dropped groups are left out", self.estimator.name, out.extra_groups)
        return advantages

    # ---------------------------------------------------------------- the state in a checkpoint

    def _file(self, folder):
        return os.path.join(folder, "tare_%s.state" % self.estimator.name)

    def save(self, folder):
        os.makedirs(folder, exist_ok=True)
        with open(self._file(folder) + ".tmp", "wb") as file:
            file.write(self.estimator.steps.to_bytes(8, "little") + self.estimator.save())
        os.replace(self._file(folder) + ".tmp", self._file(folder))

    def load(self, folder):
        with open(self._file(folder), "rb") as file:
            data = file.read()
        self.estimator.load(data[8:], steps=int.from_bytes(data[:8], "little"))


# ---------------------------------------------------------------- verl's own functions, with a look at their batch


def _watch():
    """Makes compute_advantage of every module of verl, loaded now or later, leave its batch where
    AdvantageFunction finds it.
    """
    trainer = importlib.import_module("verl.trainer.ppo.ray_trainer")
    original = trainer.compute_advantage
    if hasattr(original, "tare"):
        return

    @functools.wraps(original)
    def watched(data, *args, **kwargs):
        _seen["data"] = data
        try:
            return original(data, *args, **kwargs)
        finally:
            _seen["data"] = None

    watched.tare = True
    for name, module in list(sys.modules.items()):
        if name.startswith("verl.") and getattr(module, "compute_advantage", None) is original:
            module.compute_advantage = watched


def keep_state(trainer_class, function):
    """Adds the state of function, an AdvantageFunction, to the checkpoints of this class of
    trainers; loading one restores it.
    """
    save, load = trainer_class._save_checkpoint, trainer_class._load_checkpoint

    @functools.wraps(save)
    def saved(self, *args, **kwargs):
        # before verl's own part, whose last action marks the checkpoint as complete
        function.save(os.path.join(self.config.trainer.default_local_dir, "global_step_%d" % self.global_steps))
        return save(self, *args, **kwargs)

    @functools.wraps(load)
    def loaded(self, *args, **kwargs):
        result = load(self, *args, **kwargs)
        if self.global_steps > 0:
            given = self.config.trainer.get("resume_from_path", None) if self.config.trainer.resume_mode == "resume_path" else None
            function.load(given or os.path.join(self.config.trainer.default_local_dir, "global_step_%d" % self.global_steps))
        return result

    trainer_class._save_checkpoint, trainer_class._load_checkpoint = saved, loaded


def register(plugin, name=None, n_clusters=0, cluster=None, uid=None, components=None, **parameters):
    """Registers a plugin with verl, and its state with verl's checkpoints; returns its
    AdvantageFunction.
    """
    from verl.trainer.ppo.core_algos import register_adv_est

    function = AdvantageFunction(Estimator(plugin, n_clusters=n_clusters, **parameters), cluster, uid, components)

    def call(*args, **kwargs):
        return function(*args, **kwargs)

    register_adv_est(name or "tare_" + function.estimator.name)(call)
    try:
        _watch()
    except ImportError as error:  # a part of verl without its trainers
        log.warning("verl's trainers cannot be imported (%s): the plugin sees rewards and masks only, and checkpoints do not contain its state", error)
        return function
    for module, trainer in (("verl.trainer.ppo.ray_trainer", "RayPPOTrainer"), ("verl.trainer.ppo.v1.trainer_base", "PPOTrainer")):
        try:
            found = getattr(importlib.import_module(module), trainer, None)
        except ImportError:
            continue
        if found is not None:
            keep_state(found, function)
    return function


def register_from_environment():
    """Entry point of verl.plugins. TARE_VERL: 'NAME=PLUGIN?key=value&key=value', several separated by blanks; components=a,b as in register."""
    for item in os.environ.get("TARE_VERL", "").split():
        name, _, rest = item.partition("=")
        plugin, _, query = rest.partition("?")
        parameters = dict(parse_qsl(query, keep_blank_values=True))
        components = parameters.pop("components", None)
        register(plugin, name=name, n_clusters=int(parameters.pop("n_clusters", 0)), components=components.split(",") if components else None, **parameters)


# ---------------------------------------------------------------- rewards


@functools.lru_cache(maxsize=None)
def _verifier(plugin, parameters):
    return Verifier(plugin, **dict(parameters))


def compute_score(data_source, solution_str, ground_truth, extra_info=None, plugin=None, timeout=10, **parameters):
    """verl's reward function: custom_reward_function.path=pkg://tare_sdk.verl, .name=compute_score,
    and .reward_kwargs.plugin=math with the verifier's parameters next to it. Also returns the
    verdict, which verl logs.
    """
    if not plugin:
        raise TareError("compute_score: name the verifier: custom_reward_function.reward_kwargs.plugin=math", 12)
    row = dict(extra_info) if isinstance(extra_info, dict) else None
    verdict = _verifier(plugin, tuple(sorted(parameters.items()))).verify(solution_str, str(ground_truth), row=row, timeout=timeout)
    return {"score": verdict.reward, "acc": float(verdict.verdict == "correct"), "verdict": verdict.verdict}
