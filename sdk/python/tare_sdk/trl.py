"""TRL: a verifier as a reward function, and a GRPOTrainer whose advantages come from a plugin.

The trainer lets TRL sample and score; then the plugin gets each prompt's rewards and its advantages take the place of TRL's. The state
changes once the generated batch has been trained on, which is when the next one is generated, or when training ends or saves.
One process: the groups of other processes are not gathered. A checkpoint in the middle of a generated batch (steps_per_generation or
num_iterations above what one optimizer step takes) keeps the state from before that batch, and TRL samples the batch anew when it resumes.
"""

import json
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

    STATE, STEPS = "tare_estimator.state", "tare_estimator.json"

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
            with open(os.path.join(folder, self.STATE), "rb") as file, open(os.path.join(folder, self.STEPS)) as steps:
                self.tare_estimator.load(file.read(), steps=json.load(steps)["steps"])
        result = super().train(resume_from_checkpoint, *args, **kwargs)
        self._tare_settle()
        return result

    def _save_checkpoint(self, model, trial, *args, **kwargs):
        # a checkpoint lies after an optimizer step; the generated batch is done when all the steps are that TRL makes with it
        every = getattr(self.args, "steps_per_generation", None) or getattr(self.args, "gradient_accumulation_steps", 1)
        if self._step % (every * getattr(self.args, "num_iterations", 1)) == 0:
            self._tare_settle()
        super()._save_checkpoint(model, trial, *args, **kwargs)
        folder = os.path.join(self._get_output_dir(trial=trial), "checkpoint-%d" % self.state.global_step)
        with open(os.path.join(folder, self.STATE), "wb") as file, open(os.path.join(folder, self.STEPS), "w") as steps:
            file.write(self.tare_estimator.save())
            json.dump({"steps": self.tare_estimator.steps}, steps)


def __getattr__(name):
    """GRPOTrainer is made when it is asked for, so that reward_function works where the installed TRL has another trainer."""
    if name != "GRPOTrainer":
        raise AttributeError(name)
    import trl

    globals()[name] = type("GRPOTrainer", (AdvantageMixin, trl.GRPOTrainer), {})
    return globals()[name]
