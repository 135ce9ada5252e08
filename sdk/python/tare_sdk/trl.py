"""TRL: a verifier as a reward function, and a GRPOTrainer whose advantages come from a plugin.

TRL samples and computes rewards. The plugin then gets each prompt's rewards, with the columns
that it declares it needs, and its advantages replace TRL's. With several processes, every
process gives the plugin the groups of all of them, gathered in TRL's order, so that a group on
two processes is one group and the state is bit-identical everywhere.

The state changes after training on the generated batch: when the next one is generated, or when
training ends or saves. A checkpoint in the middle of a generated batch (steps_per_generation or
num_iterations above one optimizer step) stores the state from before that batch, and TRL samples
the batch again when it resumes.
"""

import json
import logging
import os

from .abi import AXIS_GROUP, AXIS_TOKEN
from .columns import AXES
from .estimator import Estimator
from .errors import TareError
from .prompts import prompt_uid
from .verifier import Verifier

log = logging.getLogger("tare")
# columns that TRL does not have
LACKS = ("entropy", "component.verdict", "segment", "segment_reward")


def _last_text(value):
    return value[-1]["content"] if isinstance(value, list) else value


def _is_column(value, n):
    """True for a column of the data set that JSON can represent; TRL passes other values as well
    (trainer_state, functions).
    """
    try:
        return isinstance(value, list) and len(value) == n and json.dumps(value) is not None
    except (TypeError, ValueError):
        return False


def reward_function(plugin, answer="answer", timeout=10, **parameters):
    """Makes a function with TRL's signature that returns the verifier's rewards. answer: the column
    of the data set, which may be missing where the verifier uses no answer. The verifier gets
    the other columns as the row. A completion without a verdict (the verifier ran out of time or
    crashed) has no reward (None), and not the reward 0.
    """
    verifier = Verifier(plugin, **parameters)

    def reward(prompts, completions, **columns):
        if verifier.uses_answer and answer not in columns:
            raise TareError("the verifier %s compares with the answer, and the data set has no column \"%s\" (it has: %s); name it with answer="
                            % (verifier.name, answer, ", ".join(sorted(columns))), 10)
        fields = {k: v for k, v in columns.items() if k != "completion_ids" and _is_column(v, len(completions))}
        rows = [{k: v[i] for k, v in fields.items()} for i in range(len(completions))]
        verdicts = verifier.verify_all([_last_text(c) for c in completions], columns.get(answer), [_last_text(p) for p in prompts], rows, timeout)
        return [v.reward if v.judged else None for v in verdicts]

    reward.__name__ = "tare_" + verifier.name
    return reward


class AdvantageMixin:
    """Wraps GRPOTrainer. estimator: an Estimator; cluster: a function from a row of the data set to
    a cluster, or None; uid: a function from a row to a whole number that identifies its prompt
    in every step; without it, a hash of the prompt.
    """

    STATE, STEPS = "tare_estimator.state", "tare_estimator.json"

    def __init__(self, *args, estimator=None, cluster=None, uid=None, **kwargs):
        if not isinstance(estimator, Estimator):
            raise TypeError("estimator has to be a tare_sdk.Estimator")
        estimator.lacks(LACKS, "TRL")
        if estimator.wants.get("cluster") and cluster is None:
            raise TareError("%s: wants clusters; give the trainer cluster=, a function from a row of the data set to its cluster" % estimator.name, 13)
        self.tare_estimator, self.tare_cluster, self.tare_uid = estimator, cluster, uid
        super().__init__(*args, **kwargs)
        if estimator.wants.get("ref_logprob") and not self.beta:
            raise TareError("%s: wants the reference policy's logprobs, which TRL computes where beta is above 0" % estimator.name, 40)

    def _calculate_rewards(self, inputs, *args, **kwargs):
        rewards = super()._calculate_rewards(inputs, *args, **kwargs)  # [N of all processes, reward functions]
        self._tare_rewards, self._tare_inputs = rewards, inputs
        return rewards

    def _generate_and_score_completions(self, inputs):
        output = super()._generate_and_score_completions(inputs)
        if self.model.training:
            self._tare_settle()
            self._tare_advantages(output)
        return output

    # ---------------------------------------------------------------- a step

    def _tare_advantages(self, output):
        """Puts the plugin's advantages into TRL's batch."""
        import torch

        facts = self._tare_gather(output)
        weighted = self._tare_rewards.double() * self.reward_weights.to(self._tare_rewards.device).double()
        # as in TRL: a completion without a reward enters no mean and has no effect
        scored = [i for i, none in enumerate(torch.isnan(self._tare_rewards).all(dim=1).tolist()) if not none]
        components = torch.nan_to_num(weighted, nan=0.0)
        totals, components = components.sum(dim=1).tolist(), components.tolist()
        sizes, first = [], []
        for at in range(0, len(totals), self.num_generations):
            n = sum(at <= i < at + self.num_generations for i in scored)
            if n:
                sizes.append(n)
                first.append(at)
        columns = {name: [values[i] for i in (first if AXES[name] == AXIS_GROUP else scored)] for name, values in facts.items() if name != "lengths"}
        for name in columns:
            if AXES[name] == AXIS_TOKEN:
                columns[name] = [x for row in columns[name] for x in row]
        lengths = [facts["lengths"][i] for i in scored]
        out = self.tare_estimator.step_flat([totals[i] for i in scored], sizes, lengths, component=[components[i] for i in scored], **columns)
        if out.extra_groups:
            log.warning("%s: asks for %d more groups; TRL samples none, the dropped ones are left out", self.tare_estimator.name, out.extra_groups)
        self._tare_write(output, out, scored, lengths, len(totals))

    def _tare_gather(self, output):
        """Gathers columns of all processes, in TRL's order."""
        from accelerate.utils import gather_object

        rows, mask, wants = self._tare_inputs, output["completion_mask"].bool(), self.tare_estimator.wants
        ids = output["completion_ids"]
        tokens = lambda name: [output[name][i][mask[i]].tolist() for i in range(len(rows))]
        ends = set(getattr(self, "eos_token_ids", None) or [self.processing_class.eos_token_id])
        made = {
            "lengths": lambda: mask.sum(dim=1).tolist(),
            "prompt_uid": lambda: [self.tare_uid(row) if self.tare_uid else prompt_uid(row["prompt"]) for row in rows],
            "cluster": lambda: [self.tare_cluster(row) if self.tare_cluster and self.tare_estimator.n_clusters else -1 for row in rows],
            "finish": lambda: ["stop" if n and int(ids[i][mask[i]][-1]) in ends else "length" for i, n in enumerate(mask.sum(dim=1).tolist())],
            "row_json": lambda: [json.dumps(row, default=str) for row in rows],
            "completion": lambda: self.processing_class.batch_decode([ids[i][mask[i]] for i in range(len(rows))], skip_special_tokens=True),
            "token": lambda: tokens("completion_ids"),
            "policy_version": lambda: [self.state.global_step] * len(rows),
        }
        for name, of_trl in (("logprob", "sampling_per_token_logps"), ("logprob", "old_per_token_logps"), ("ref_logprob", "ref_per_token_logps")):
            if output.get(of_trl) is not None and name not in made:
                made[name] = lambda of_trl=of_trl: tokens(of_trl)
        wanted = [name for name in made if name in wants or name in ("lengths", "prompt_uid") or (name == "row_json" and self.tare_estimator.reads_rows)
                  or (name == "finish" and "turn.finish" in wants)]
        mine = {name: made[name]() for name in wanted}
        entries = [{name: mine[name][i] for name in wanted} for i in range(len(rows))]
        every = gather_object(entries)
        return {name: [entry[name] for entry in every] for name in wanted}

    def _tare_write(self, output, out, scored, lengths, n):
        """Sets the advantages of this process's rollouts; a weight of 0 removes a rollout's tokens
        from the loss, as TRL's mask_truncated_completions does.
        """
        import torch

        was, mask = output["advantages"], output["completion_mask"]
        mine = len(self._tare_inputs)
        first = self.accelerator.process_index * mine
        advantage, weight = [0.0] * n, [1.0] * n
        for i, a, w in zip(scored, out.advantage, out.rollout_weight):
            advantage[i], weight[i] = float(a * w), float(w)
        local = slice(first, first + mine)
        if out.token_advantage is None:
            output["advantages"] = torch.tensor(advantage[local], dtype=was.dtype, device=was.device)
        else:
            table, at = torch.zeros(mask.shape, dtype=was.dtype, device=was.device), 0
            for i, length, w in zip(scored, lengths, out.rollout_weight):
                if local.start <= i < local.stop:
                    values = torch.tensor(list(out.token_advantage[at: at + length]), dtype=was.dtype, device=was.device)
                    table[i - first, mask[i - first].bool()] = values * float(w)
                at += length
            output["advantages"] = table
        if any(w == 0 for w in weight):
            keep = torch.tensor([w != 0 for w in weight[local]], device=mask.device)
            output["completion_mask"] = mask * keep.unsqueeze(1).to(mask.dtype)
            used = output["completion_mask"] * output["tool_mask"] if "tool_mask" in output else output["completion_mask"]
            output["num_items_in_batch"] = self.accelerator.gather(used.sum()).sum()
        logged = getattr(self, "_logs", {}).get("advantages")
        if logged is not None:  # TRL wrote its own there
            for _ in range(min(n, len(logged))):
                logged.pop()
            logged.extend(advantage)

    # ---------------------------------------------------------------- the state

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
        # a checkpoint comes after an optimizer step; the generated batch is done when TRL has made
        # all its steps with it
        every = getattr(self.args, "steps_per_generation", None) or getattr(self.args, "gradient_accumulation_steps", 1)
        if self._step % (every * getattr(self.args, "num_iterations", 1)) == 0:
            self._tare_settle()
        super()._save_checkpoint(model, trial, *args, **kwargs)
        if not self.args.should_save:  # the state is the same on every process; one writes it
            return
        folder = os.path.join(self._get_output_dir(trial=trial), "checkpoint-%d" % self.state.global_step)
        with open(os.path.join(folder, self.STATE), "wb") as file, open(os.path.join(folder, self.STEPS), "w") as steps:
            file.write(self.tare_estimator.save())
            json.dump({"steps": self.tare_estimator.steps}, steps)


def __getattr__(name):
    """Imports GRPOTrainer on first use, so that reward_function works where the installed TRL has
    another trainer.
    """
    if name != "GRPOTrainer":
        raise AttributeError(name)
    import trl

    globals()[name] = type("GRPOTrainer", (AdvantageMixin, trl.GRPOTrainer), {})
    return globals()[name]
