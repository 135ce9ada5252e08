"""The adapters inside the trainers' own code: TRL's GRPOTrainer trains a tiny model, verl's registry calls a plugin. Skipped where a trainer is not
installed. TARE_PLUGIN_PATH as for test_host.py;"""

import importlib.util
import os
import tempfile
import unittest

from tare_sdk import Estimator


def there(*names):
    return all(importlib.util.find_spec(name) for name in names)


@unittest.skipUnless(there("trl", "torch", "transformers", "datasets"), "TRL is not installed")
class Trl(unittest.TestCase):
    def trainer(self, folder, steps, estimator):
        import datasets
        import transformers
        import trl
        from tokenizers import Tokenizer, models, pre_tokenizers

        from tare_sdk.trl import GRPOTrainer, reward_function

        alphabet = {chr(k): k - 30 for k in range(32, 127)}
        tokenizer = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1, **alphabet}, unk_token=" "))
        tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>")
        transformers.set_seed(1)
        model = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(
            vocab_size=128, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            pad_token_id=0, eos_token_id=1, bos_token_id=1))
        rows = datasets.Dataset.from_list([{"prompt": "%d+%d=" % (a, b), "answer": str(a + b), "kind": (a + b) % 2} for a in range(8) for b in range(8)])
        args = trl.GRPOConfig(output_dir=folder, max_steps=steps, per_device_train_batch_size=16, num_generations=4, max_completion_length=6,
                              save_steps=3, logging_steps=1, report_to=[], use_cpu=True, bf16=False, learning_rate=1e-3, seed=7,
                              disable_tqdm=True)

        def length(completions, **_):
            return [len(set(c)) / 6 for c in completions]

        return GRPOTrainer(model=model, reward_funcs=[reward_function("exact"), length], args=args, train_dataset=rows, processing_class=tokenizer,
                           estimator=estimator, cluster=lambda row: row["kind"])

    def test_five_steps_and_resume(self):
        import torch

        with tempfile.TemporaryDirectory() as folder:
            whole = Estimator("bv_blend", n_clusters=2, gamma=0.5)
            trainer = self.trainer(folder, 5, whole)
            seen, step = [], whole.step

            def record(rewards, cluster=None):
                out = step(rewards, cluster=cluster)
                seen.append((rewards, cluster, out))
                return out

            whole.step = record
            before = [p.detach().clone() for p in trainer.model.parameters()]
            trainer.train()
            self.assertEqual(trainer.state.global_step, 5)
            self.assertEqual(whole.steps, 5)  # applied after every step, the last one included
            self.assertTrue(any(not torch.equal(a, b) for a, b in zip(before, trainer.model.parameters())))
            # what the trainer used is what the plugin gives for the same rewards, from the same states
            other = Estimator("bv_blend", n_clusters=2, gamma=0.5)
            for rewards, cluster, out in seen:
                self.assertEqual(other.step(rewards, cluster=cluster), out)
                other.apply()
            self.assertEqual(other.save(), whole.save())
            # from the checkpoint of step 3: the state is restored, and the end is the same
            again = Estimator("bv_blend", n_clusters=2, gamma=0.5)
            resumed = self.trainer(folder, 5, again)
            resumed.train(resume_from_checkpoint=os.path.join(folder, "checkpoint-3"))
            self.assertEqual(again.steps, 5)
            self.assertEqual(again.state(), whole.state())


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

    def test_state_is_applied_before_the_next_call(self):
        import torch

        import tare_sdk.verl

        function = tare_sdk.verl.AdvantageFunction(Estimator("bv_blend", n_clusters=1), cluster=lambda key: 0)
        rewards, mask = torch.tensor([[0.0, 1.0], [0.0, 0.0]]), torch.ones(2, 2)
        other = Estimator("bv_blend", n_clusters=1)
        for _ in range(3):
            got, _ = function(rewards, mask, index=["x", "x"])
            self.assertTrue(torch.allclose(got[:, 0].double(), torch.tensor(other.step([[1, 0]], cluster=[0]).advantage[0], dtype=torch.double)))
            other.apply()
        self.assertEqual(function.estimator.steps, 2)


if __name__ == "__main__":
    unittest.main()
