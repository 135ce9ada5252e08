"""verl's own training loop, RayPPOTrainer.fit, on the CPU for test_trainers.py: the loop is verl's, from the data loader to the metrics; the results of its
GPU workers (sampling, logprobs, the update) are simulated with seeded random numbers. Records the inputs of the update."""

import os

PROMPTS, SAMPLES, ROOM = 6, 4, 5


def config_of(adv_estimator, steps):
    """Returns verl's default configuration with the keys that a user would set, and without the features that need a GPU."""
    import verl
    from hydra import compose, initialize_config_dir

    keys = ["algorithm.adv_estimator=" + adv_estimator, "algorithm.use_kl_in_reward=False", "actor_rollout_ref.rollout.n=%d" % SAMPLES,
            "actor_rollout_ref.rollout.name=vllm", "trainer.logger=[console]", "trainer.total_epochs=1", "trainer.total_training_steps=%d" % steps,
            "trainer.val_before_train=False", "trainer.test_freq=-1", "trainer.save_freq=-1", "trainer.resume_mode=disable",
            "trainer.balance_batch=False", "trainer.device=cpu"]
    folder = os.path.join(os.path.dirname(verl.__file__), "trainer", "config")
    with initialize_config_dir(config_dir=folder, version_base=None):
        return compose("ppo_trainer", overrides=keys)


def numbers_of(step):
    """Simulated results of sampling, the reward function and the models in a step: the rows of a
    prompt are contiguous, as fit repeats them.
    """
    import torch

    torch.manual_seed(step)
    n = PROMPTS * SAMPLES
    lengths = torch.randint(1, ROOM + 1, (n,))
    parts = torch.randint(0, 2, (n,)).double(), torch.zeros(n).double()
    rewards = torch.zeros(n, ROOM)
    rewards[torch.arange(n), lengths - 1] = (parts[0] + parts[1]).float()
    return {"lengths": lengths, "mask": (torch.arange(ROOM) < lengths[:, None]).long(), "rewards": rewards, "acc": parts[0], "format": parts[1],
            "prompts": torch.stack([torch.tensor([0, 7, 40 + i // SAMPLES, 3 * step % 2]) for i in range(n)]), "responses": torch.randint(0, 99, (n, ROOM)),
            "old": -torch.rand(n, ROOM), "ref": -torch.rand(n, ROOM)}


def make(adv_estimator, steps):
    import numpy
    import torch
    from verl import DataProto
    from verl.trainer.ppo import ray_trainer

    class Workers:
        """The parts of the rollout manager, the checkpoint manager and the worker group that fit
        calls.
        """

        def __init__(self, trainer):
            self.trainer = trainer

        def generate_sequences(self, batch):
            x = numbers_of(self.trainer.global_steps)
            attention = torch.cat([torch.tensor([[0, 1, 1, 1]] * len(x["mask"])), x["mask"]], dim=1)
            tensors = {"prompts": x["prompts"], "responses": x["responses"], "response_mask": x["mask"], "attention_mask": attention, "rm_scores": x["rewards"]}
            others = {name: numpy.array(x[name].tolist(), dtype=object) for name in ("acc", "format")}
            others["multi_modal_inputs"] = numpy.array([{} for _ in x["mask"]], dtype=object)
            return DataProto.from_dict(tensors=tensors, non_tensors=others, meta_info={"timing": {}, "reward_extra_keys": ["acc", "format"]})

        def update_weights(self, step):
            pass

        def sleep_replicas(self):
            pass

        def get_n_gpus(self):
            return 1

    class Trainer(ray_trainer.RayPPOTrainer):
        def __init__(self):
            workers = Workers(self)
            self.config, self.seen = config_of(adv_estimator, steps), []
            self.use_reference_policy, self.use_rm, self.use_critic = True, False, False
            self.async_rollout_manager = self.checkpoint_manager = self.actor_rollout_wg = self.resource_pool_manager = workers
            row = {"raw": torch.zeros(PROMPTS, 1), "data_source": numpy.array(["x"] * PROMPTS, dtype=object)}
            self.train_dataloader, self.train_dataset, self.total_training_steps = [row] * steps, [], steps
            self._init_dump_executor()

        def _compute_old_log_prob(self, batch):
            old = numbers_of(self.global_steps)["old"]
            return DataProto.from_dict(tensors={"old_log_probs": old, "entropys": torch.zeros_like(old)}), 0.0

        def _compute_ref_log_prob(self, batch):
            return DataProto.from_dict(tensors={"ref_log_prob": numbers_of(self.global_steps)["ref"]})

        def _update_actor(self, batch):
            self.seen.append({"uid": list(batch.non_tensor_batch["uid"]), "advantages": batch.batch["advantages"].clone(), "mask": batch.batch["response_mask"].clone()})
            return DataProto(meta_info={"metrics": {"actor/grad_norm": [1.0]}})

        def _start_profiling(self, *_):
            pass

        def _stop_profiling(self, *_, **__):
            pass

    return Trainer()
