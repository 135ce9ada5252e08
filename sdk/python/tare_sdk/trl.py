"""TRL: a verifier as a reward function, and a GRPOTrainer whose advantages come from a plugin.

The trainer lets TRL sample and score; then the plugin gets each prompt's rewards and its advantages take the place of TRL's. The state
changes once the generated batch has been trained on, which is when the next one is generated, or when training ends or saves.
One process: the groups of other processes are not gathered.
"""

import os

from .estimator import Estimator
from .verifier import Verifier


def _last_text(value):
    return value[-1]["content"] if isinstance(value, list) else value


def reward_function(plugin, answer="answer", timeout=10, **parameters):
    """A function with TRL's signature that gives the verifier's rewards; answer: the column of the data set."""
    verifier = Verifier(plugin, **parameters)

    def reward(prompts, completions, **columns):
        golds = columns[answer]
        return [verifier.verify(_last_text(c), g, prompt=_last_text(p), timeout=timeout).reward for p, c, g in zip(prompts, completions, golds)]

    reward.__name__ = "tare_" + verifier.name
    return reward


class AdvantageMixin:
    """In front of GRPOTrainer. estimator: an Estimator; cluster: a row of the data set -> cluster, or None."""

    STATE = "tare_estimator.bin"

    def __init__(self, *args, estimator=None, cluster=None, **kwargs):
        if not isinstance(estimator, Estimator):
            raise TypeError("estimator has to be a tare_sdk.Estimator")
        self.tare_estimator, self.tare_cluster = estimator, cluster
        super().__init__(*args, **kwargs)
        if self.accelerator.num_processes != 1:
            raise NotImplementedError("tare_sdk.trl works in one process; here are %d" % self.accelerator.num_processes)

    def _calculate_rewards(self, inputs, *args, **kwargs):
        rewards = super()._calculate_rewards(inputs, *args, **kwargs)  # [N, reward functions]
        self._tare_rewards, self._tare_inputs = rewards, inputs
        return rewards

    def _generate_and_score_completions(self, inputs):
        import torch

        output = super()._generate_and_score_completions(inputs)
        if not self.model.training:
            return output
        estimator = self.tare_estimator
        self._tare_settle()
        weights = self.reward_weights.to(self._tare_rewards.device)
        totals = (self._tare_rewards * weights).nansum(dim=1).double().tolist()
        size = self.num_generations
        groups = [totals[at: at + size] for at in range(0, len(totals), size)]
        rows = self._tare_inputs[::size]
        out = estimator.step(groups, cluster=[self.tare_cluster(row) for row in rows] if self.tare_cluster else None)
        flat = [a * w for values, ws in zip(out.advantage, out.row_weight) for a, w in zip(values, ws)]
        output["advantages"] = torch.tensor(flat, dtype=output["advantages"].dtype, device=output["advantages"].device)
        return output

    def _tare_settle(self):
        if self.tare_estimator.pending:
            self.tare_estimator.apply()

    def train(self, resume_from_checkpoint=None, *args, **kwargs):
        folder = resume_from_checkpoint
        if folder is True:
            from transformers.trainer_utils import get_last_checkpoint

            folder = get_last_checkpoint(self.args.output_dir)
        if isinstance(folder, str):
            with open(os.path.join(folder, self.STATE), "rb") as file:
                self.tare_estimator.load(file.read())
        result = super().train(resume_from_checkpoint, *args, **kwargs)
        self._tare_settle()
        return result

    def _save_checkpoint(self, model, trial, *args, **kwargs):
        # a checkpoint lies behind the optimizer step; the batch counts as done when all its steps are
        if self.state.global_step % getattr(self.args, "num_iterations", 1) == 0:
            self._tare_settle()
        super()._save_checkpoint(model, trial, *args, **kwargs)
        with open(os.path.join(self._get_output_dir(trial=trial), "checkpoint-%d" % self.state.global_step, self.STATE), "wb") as file:
            file.write(self.tare_estimator.save())


def __getattr__(name):
    """GRPOTrainer is made when it is asked for, so that reward_function works where the installed TRL has another trainer."""
    if name != "GRPOTrainer":
        raise AttributeError(name)
    import trl

    globals()[name] = type("GRPOTrainer", (AdvantageMixin, trl.GRPOTrainer), {})
    return globals()[name]
