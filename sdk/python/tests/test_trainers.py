"""Tests the adapters inside the trainers' own code: TRL's GRPOTrainer trains a tiny model in one process and in two, verl's compute_advantage and its
training loop call every built-in estimator, and its checkpoints keep the state. A test is skipped, by name, if its trainer is not installed; README.md describes how to
install them. TARE_PLUGIN_PATH is set as for test_host.py."""

import contextlib
import glob
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

from tare_sdk import Estimator, TareError
from tare_sdk.prompts import prompt_uid

HERE = os.path.dirname(os.path.abspath(__file__))


def there(*names):
    return all(importlib.util.find_spec(name) for name in names)


def built_ins():
    return sorted(os.path.basename(f)[:-3] for f in glob.glob(os.path.join(os.environ["TARE_PLUGIN_PATH"].split(":")[0], "estimators", "*.so")))


@unittest.skipUnless(there("trl", "torch", "transformers", "datasets"), "TRL is not installed")
class Trl(unittest.TestCase):
    def replay(self, estimator, seen):
        """Checks that the trainer used the plugin's outputs for the same step, from equal states."""
        for step in seen:
            out = estimator.step_flat(step["reward"], step["sizes"], step["lengths"], **step["columns"])
            self.assertEqual([float(a) for a in out.advantage], step["advantage"])
            estimator.apply()
        return estimator

    def test_five_steps_and_resume(self):
        import torch
        from trl_run import make

        with tempfile.TemporaryDirectory() as folder:
            whole = Estimator("bv_blend", n_clusters=2, gamma=0.5)
            trainer = make(folder, 5, whole)
            before = [p.detach().clone() for p in trainer.model.parameters()]
            trainer.train()
            self.assertEqual(trainer.state.global_step, 5)
            self.assertEqual(whole.steps, 5)  # applied after every step, the last one included
            self.assertTrue(any(not torch.equal(a, b) for a, b in zip(before, trainer.model.parameters())))
            self.assertEqual(self.replay(Estimator("bv_blend", n_clusters=2, gamma=0.5), trainer.seen).save(), whole.save())
            for step in trainer.seen:
                self.assertEqual(step["used"], torch.tensor(step["advantage"]).tolist())
                self.assertEqual(step["lengths"], [sum(row) for row in step["mask"]])
            # from the checkpoint of step 3: the state is restored, and the end is the same
            again = Estimator("bv_blend", n_clusters=2, gamma=0.5)
            resumed = make(folder, 5, again)
            resumed.train(resume_from_checkpoint=os.path.join(folder, "checkpoint-3"))
            self.assertEqual(again.steps, 5)
            self.assertEqual(again.describe(), whole.describe())

    def test_prompts_components_and_tokens(self):
        from trl_run import make

        with tempfile.TemporaryDirectory() as folder:
            for name, parameters in (("spo", {}), ("gdpo", {}), ("reinforce_pp", {"gamma": 0.9}), ("opo", {})):
                with self.subTest(name):
                    estimator = Estimator(name, **parameters)
                    trainer = make(os.path.join(folder, name), 2, estimator, reward_weights=[0.5, 0.5])
                    trainer.train()
                    self.replay(Estimator(name, **parameters), trainer.seen)
                    step = trainer.seen[0]
                    self.assertEqual(len(set(step["columns"]["prompt_uid"])), 4)  # four prompts
                    self.assertEqual([len(row) for row in step["columns"]["component"]], [2] * 16)
                    if step["tokens"]:  # each where the plugin put it, in TRL's table of tokens
                        used = [a for row, mask in zip(step["used"], step["mask"]) for a, m in zip(row, mask) if m]
                        self.assertEqual(used, step["tokens"])
                        self.assertGreater(len(set(used)), len(set(step["advantage"])))

    def test_dropped_groups_leave_the_loss(self):
        from trl_run import make

        with tempfile.TemporaryDirectory() as folder:
            trainer = make(folder, 2, Estimator("dapo"), rewards=[lambda prompts, **_: [float(k % 2) if p[0] < "4" else 1.0 for k, p in enumerate(prompts)]])
            trainer.train()
            dropped = 0
            for step in trainer.seen:
                for weight, mask, used in zip(step["weight"], step["mask"], step["used"]):
                    self.assertEqual(weight == 0, not any(mask))
                    dropped += weight == 0 and used == 0
            self.assertGreater(dropped, 0)

    def test_completions_without_a_reward_are_in_no_mean(self):
        from trl_run import make, some

        with tempfile.TemporaryDirectory() as folder:
            trainer = make(folder, 2, Estimator("dr_grpo"), rewards=[some])
            trainer.train()
            self.assertTrue(all(sum(step["sizes"]) == len(step["reward"]) < 16 for step in trainer.seen), [step["sizes"] for step in trainer.seen])
            for step in trainer.seen:
                self.assertEqual(set(step["reward"]), {1.0})
                self.assertEqual(set(step["used"]), {0.0})  # all that count are equal

    def test_refusals(self):
        from trl_run import make

        for estimator, part in ((Estimator("rl_zvp"), "rl_zvp: wants the column entropy, which TRL does not have"), ("grpo", "Estimator")):
            with self.assertRaisesRegex((TareError, TypeError), part):
                make("/nowhere", 1, estimator) if not isinstance(estimator, str) else __import__("tare_sdk.trl").trl.AdvantageMixin(estimator=estimator)

    @unittest.skipUnless(there("accelerate"), "accelerate is not installed")
    def test_two_processes(self):
        """Every built-in estimator. Six rollouts a process, groups of four: the second group lies on both."""
        names = sorted(os.path.basename(path)[:-3] for path in glob.glob(os.path.join(os.environ["TARE_PLUGIN_PATH"], "estimators", "*.so")))
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out")
            done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", "0", "--standalone",
                                   os.path.join(HERE, "trl_run.py"), folder, out, *names], capture_output=True, text=True,
                                  env=dict(os.environ, OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES=""))
            self.assertEqual(done.returncode, 0, done.stderr[-3000:])
            first, second = (json.loads(pathlib.Path("%s.%d" % (out, rank)).read_text()) for rank in (0, 1))
        refused = {name: first[name]["refused"] for name in names if "refused" in first[name]}
        self.assertEqual(sorted(refused), ["entropy_top", "grpo_process", "opd", "prime", "rl_zvp"], refused)  # opd: TRL loads a reference by its name in the Hub
        self.assertGreater(len(names), 25)
        for name in set(names) - set(refused):
            with self.subTest(name):
                self.two_processes_agree(name, first[name], second[name])

    def two_processes_agree(self, name, one, two):
        from trl_run import CLUSTERED

        self.assertEqual(one["steps"], 3)
        self.assertEqual(one["state"], two["state"])
        for a, b in zip(one["seen"], two["seen"]):
            for what in ("reward", "sizes", "columns", "advantage", "weight", "tokens"):
                self.assertEqual(a[what], b[what], what)
            self.assertEqual(a["sizes"], [4, 4, 4])
            groups = [set(a["every_uid"][k: k + 4]) for k in (0, 4, 8)]
            self.assertEqual([len(g) for g in groups], [1, 1, 1])  # a group is of one prompt,
            self.assertEqual(len(set.union(*groups)), 3)  # and there are three
            if a["tokens"] is None:  # each process trains on its own part
                weighted = [x * w for x, w in zip(a["advantage"], a["weight"])]
                self.assertEqual(a["used"] + b["used"], __import__("torch").tensor(weighted).tolist())
        estimator = Estimator(name, **({"n_clusters": 2} if CLUSTERED(name) else {}))
        self.assertEqual(self.replay(estimator, one["seen"]).save().hex(), one["state"])


class Loader(list):
    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


@unittest.skipUnless(there("verl", "ray", "torch", "numpy"), "verl is not installed")
class Verl(unittest.TestCase):
    def test_grpo_is_its_own(self):
        import numpy
        import torch
        from verl.trainer.ppo import core_algos

        import tare_sdk.verl

        os.environ["TARE_VERL"] = "tare_grpo=grpo?convention=verl"
        tare_sdk.verl.register_from_environment()
        function = core_algos.get_adv_estimator_fn("tare_grpo")
        torch.manual_seed(1)
        rewards, mask = torch.zeros(24, 5), torch.ones(24, 5)
        mask[::3, 3:] = 0
        rewards[:, 2] = torch.randint(0, 3, (24,)).float() / 2
        index = numpy.array([["a", "b", "c"][i % 3] for i in range(23)] + ["alone"], dtype=object)
        mine, _ = function(token_level_rewards=rewards, response_mask=mask, index=index, config=None)
        theirs, _ = core_algos.compute_grpo_outcome_advantage(rewards, mask, index)
        self.assertLess((mine - theirs).abs().max().item(), 1e-6)
        self.assertGreater(theirs.abs().max().item(), 0.5)

    def batch(self, step):
        """Six prompts with four rollouts each, mixed up, as verl's trainer has them: DataProto, uids that are new in every step."""
        import numpy
        import torch
        from verl import DataProto

        torch.manual_seed(step)
        n, room = 24, 5
        lengths = torch.randint(1, room + 1, (n,))
        mask = (torch.arange(room) < lengths[:, None]).long()
        order = torch.randperm(n)
        prompt = order // 4
        parts = torch.randint(0, 2, (n,)).double(), torch.zeros(n).double()
        rewards = torch.zeros(n, room)
        rewards[torch.arange(n), lengths - 1] = (parts[0] + parts[1]).float()
        prompts = torch.stack([torch.tensor([0, 7, 40 + int(p), 3 * step % 2]) for p in prompt])
        attention = torch.cat([torch.tensor([[0, 1, 1, 1]] * n), mask], dim=1)
        logs = -torch.rand(n, room)
        tensors = {"token_level_rewards": rewards, "response_mask": mask, "prompts": prompts, "attention_mask": attention, "old_log_probs": logs, "ref_log_prob": -torch.rand(n, room),
                   "responses": torch.randint(0, 99, (n, room))}
        uid = numpy.array(["%d-%d" % (step, p) for p in prompt.tolist()], dtype=object)
        other = {"uid": uid, "acc": numpy.array(parts[0].tolist(), dtype=object), "format": numpy.array(parts[1].tolist(), dtype=object)}
        return DataProto.from_dict(tensors=tensors, non_tensors=other)

    def expected(self, other, cluster, data):
        """Computes a step with the plugin on the engine's side: {row: its tokens' advantages}, and
        the rows that it drops. data: uid, mask, prompts (tokens of each row without padding),
        rewards, parts, logprob, ref_logprob, all by row.
        """
        groups = {}
        for i, key in enumerate(data["uid"]):
            groups.setdefault(key, []).append(i)
        pick = lambda column: [[column[i] for i in rows] for rows in groups.values()]
        lengths = data["mask"].sum(dim=1).tolist()
        columns = {"lengths": pick(lengths), "prompt_uid": [prompt_uid(data["prompts"][rows[0]]) for rows in groups.values()], "component": pick(data["parts"])}
        columns["cluster"] = [cluster(key) for key in groups] if cluster else None
        for name in ("logprob", "ref_logprob"):
            columns[name] = pick([data[name][i][data["mask"][i].bool()].tolist() for i in range(len(lengths))])
        out = other.step(pick(data["rewards"].double().sum(dim=1).tolist()), **columns)
        other.apply()
        want, dropped = {}, []
        for g, rows in enumerate(groups.values()):
            for k, i in enumerate(rows):
                want[i] = [out.advantage[g][k] * out.rollout_weight[g][k]] * lengths[i]
                dropped += [i] * (out.rollout_weight[g][k] == 0)
        if out.token_advantage:
            want = dict(zip([i for rows in groups.values() for i in rows], out.token_advantage))
        return want, dropped

    def check(self, name, step, got, mask, want):
        import torch

        for i in range(len(got)):
            self.assertTrue(torch.equal(got[i][mask[i]], torch.tensor(want[i], dtype=torch.float32)), (name, step, i, got[i], want[i]))
            self.assertEqual(got[i][~mask[i]].abs().sum().item(), 0)

    def each_built_in(self, ask):
        """ask(name, registered name, the plugin again, its cluster function, verl's function) for each that verl's batch has enough for."""
        import tare_sdk.verl

        refused = []
        for name in built_ins():
            wants = Estimator(name, n_clusters=2).wants
            if any(wants.get(lacks) for lacks in tare_sdk.verl.LACKS):
                with self.assertRaisesRegex(TareError, "%s: wants the column .* which verl does not have" % name):
                    tare_sdk.verl.register(name)
                refused.append(name)
                continue
            with self.subTest(name):
                other = Estimator(name, n_clusters=2)
                cluster = (lambda key: int(key[-1], 16) % 2) if "cluster" in wants else None
                known = "%s_%s" % (self._testMethodName, name)
                function = tare_sdk.verl.register(name, name=known, n_clusters=2, cluster=cluster, components=["acc", "format"])
                ask(name, known, other, cluster)
                self.assertEqual(function.estimator.save(), other.save())
        self.assertEqual(refused, ["entropy_top", "grpo_process", "prime", "rl_zvp"])

    def test_every_built_in(self):
        """verl's own compute_advantage, three steps: the advantages are those of the plugin for the same groups, as float32."""
        from verl.trainer.ppo import ray_trainer

        def ask(name, known, other, cluster):
            for step in range(3):
                data = self.batch(step)
                mask = data.batch["response_mask"].bool().clone()
                got = ray_trainer.compute_advantage(data, adv_estimator=known).batch["advantages"]
                want, dropped = self.expected(other, cluster, {
                    "uid": list(data.non_tensor_batch["uid"]), "mask": mask, "prompts": [row[1:].tolist() for row in data.batch["prompts"]],
                    "rewards": data.batch["token_level_rewards"], "parts": list(zip(data.non_tensor_batch["acc"], data.non_tensor_batch["format"])),
                    "logprob": data.batch["old_log_probs"], "ref_logprob": data.batch["ref_log_prob"]})
                self.check(name, step, got, mask, want)
                self.assertEqual(data.batch["response_mask"][dropped].sum().item(), 0)

        self.each_built_in(ask)

    def test_every_built_in_in_the_loop(self):
        """verl's own loop, RayPPOTrainer.fit, three steps: what its update is given are the plugin's advantages."""
        import verl_loop

        def ask(name, known, other, cluster):
            trainer = verl_loop.make(known, 3)
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                trainer.fit()
            self.assertEqual(len(trainer.seen), 3)
            for step, seen in enumerate(trainer.seen, 1):
                x = verl_loop.numbers_of(step)
                want, dropped = self.expected(other, cluster, {
                    "uid": seen["uid"], "mask": x["mask"], "prompts": [row[1:].tolist() for row in x["prompts"]], "rewards": x["rewards"],
                    "parts": list(zip(x["acc"].tolist(), x["format"].tolist())), "logprob": x["old"], "ref_logprob": x["ref"]})
                self.check(name, step, seen["advantages"], x["mask"].bool(), want)
                self.assertEqual(seen["mask"][dropped].sum().item(), 0)
                self.assertEqual(seen["mask"].sum().item(), x["mask"].sum().item() - x["mask"][dropped].sum().item())

        self.each_built_in(ask)

    def test_what_verl_does_not_say(self):
        import torch

        import tare_sdk.verl

        with self.assertRaisesRegex(TareError, "gdpo: wants the reward's components; give components="):
            tare_sdk.verl.AdvantageFunction(Estimator("gdpo"))
        with self.assertRaisesRegex(TareError, "bv_blend: wants clusters; give cluster="):
            tare_sdk.verl.AdvantageFunction(Estimator("bv_blend", n_clusters=1))
        with self.assertRaisesRegex(TareError, "spo: keeps its state by prompt, and verl's batch does not say"):
            tare_sdk.verl.AdvantageFunction(Estimator("spo"))(torch.ones(2, 2), torch.ones(2, 2), index=["x", "x"])

    def test_what_is_not_judged_leaves_the_loss(self):
        import numpy
        import torch

        import tare_sdk.verl

        function = tare_sdk.verl.AdvantageFunction(Estimator("dr_grpo"))
        tare_sdk.verl._seen["data"] = types.SimpleNamespace(batch={}, non_tensor_batch={"verdict": numpy.array(["correct", "timeout", "wrong"], dtype=object)})
        try:
            mask = torch.ones(3, 2)
            got, _ = function(torch.tensor([[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]), mask, index=["x"] * 3)
        finally:
            tare_sdk.verl._seen["data"] = None
        self.assertEqual(got[:, 0].tolist(), [0.5, 0.0, -0.5])  # the mean is that of the two
        self.assertEqual(mask[:, 0].tolist(), [1, 0, 1])

    def test_checkpoints_keep_the_state(self):
        """verl's own _save_checkpoint and _load_checkpoint, on a trainer whose workers and data loader are stand-ins."""
        import torch
        from omegaconf import OmegaConf
        from verl.trainer.ppo import ray_trainer

        import tare_sdk.verl

        function = tare_sdk.verl.register("bv_blend", name="kept", n_clusters=1, cluster=lambda key: 0)
        rewards, mask = torch.tensor([[0.0, 1.0], [0.0, 0.0]]), torch.ones(2, 2)
        with tempfile.TemporaryDirectory() as folder:
            trainer = object.__new__(ray_trainer.RayPPOTrainer)
            trainer.config = OmegaConf.create({"trainer": {"default_local_dir": folder, "default_hdfs_dir": None, "resume_mode": "auto",
                                                           "del_local_ckpt_after_load": False}, "actor_rollout_ref": {"actor": {"checkpoint": {}}}})
            trainer.use_critic, trainer.global_steps = False, 3
            trainer.actor_rollout_wg = types.SimpleNamespace(save_checkpoint=lambda *a, **k: os.makedirs(a[0], exist_ok=True), load_checkpoint=lambda *a, **k: None)
            trainer.train_dataloader = Loader()
            for _ in range(3):
                function(rewards.clone(), mask.clone(), index=["x", "x"])
            trainer._save_checkpoint()
            kept = function.estimator.save()
            function(rewards.clone(), mask.clone(), index=["x", "x"])
            self.assertNotEqual(function.estimator.save(), kept)
            trainer.global_steps = 0
            trainer._load_checkpoint()
            self.assertEqual((trainer.global_steps, function.estimator.save(), function.estimator.steps), (3, kept, 3))

    def test_reward_function(self):
        from omegaconf import OmegaConf
        from verl.trainer.ppo.reward import get_custom_reward_fn

        function = get_custom_reward_fn(OmegaConf.create({"reward": {"custom_reward_function": {
            "path": "pkg://tare_sdk.verl", "name": "compute_score", "reward_kwargs": {"plugin": "number"}}}}))
        self.assertEqual(function("any", "it is 42", "42", extra_info={"question": "?"})["score"], 1)
        self.assertEqual(function("any", "it is 41", "42"), {"score": 0.0, "acc": 0.0, "verdict": "wrong"})


@unittest.skipUnless(there("torch"), "torch is not installed")
class Slime(unittest.TestCase):
    def test_advantages(self):
        import torch

        from tare_sdk.slime import advantages

        data = {"kl": [torch.zeros(3), torch.ones(1)], "rewards": [0.5, -2.0]}
        advantages(types.SimpleNamespace(custom_reward_post_process_path="tare_sdk.slime.reward_post_process"), data)
        self.assertEqual([x.tolist() for x in data["advantages"]], [[0.5] * 3, [-2.0]])
        self.assertEqual([x.tolist() for x in data["returns"]], [[0.5] * 3, [-2.0]])


if __name__ == "__main__":
    unittest.main()
