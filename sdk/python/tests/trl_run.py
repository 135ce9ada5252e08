"""Tiny GRPO runs inside TRL, for test_trainers.py, in one process or in several under torch.distributed.run. Writes the inputs and outputs of each
estimator to FILE.RANK as JSON, and for an estimator that cannot run in TRL the reason."""

import json
import os
import sys

import datasets
import transformers
import trl
from tokenizers import Tokenizer, models, pre_tokenizers

from tare_sdk import Estimator, TareError
from tare_sdk.trl import GRPOTrainer, reward_function


CLUSTERED = lambda name: name in ("bv_blend", "bv_beta", "eb_blend", "naive", "n_eff", "sigma_hist", "rae", "krpo")


def tokens():
    alphabet = {chr(k): k - 30 for k in range(32, 127)}
    tokenizer = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1, **alphabet}, unk_token=" "))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>")


def length(completions, **_):
    return [len(set(c)) / 6 for c in completions]


def some(completions, **_):
    """Scores some completions only; where the other function scores none of them either, TRL leaves them out."""
    return [None if len(c) % 3 == 0 else 1.0 for c in completions]


def make(folder, steps, estimator, rewards=None, batch=16, **options):
    transformers.set_seed(1)
    model = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(
        vocab_size=128, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        pad_token_id=0, eos_token_id=1, bos_token_id=1))
    rows = datasets.Dataset.from_list([{"prompt": "%d+%d=" % (a, b), "answer": str(a + b), "kind": (a + b) % 2} for a in range(8) for b in range(8)])
    args = trl.GRPOConfig(output_dir=folder, max_steps=steps, per_device_train_batch_size=batch, num_generations=4, max_completion_length=6,
                          save_steps=3, logging_steps=1, report_to=[], use_cpu=True, bf16=False, learning_rate=1e-3, seed=7, disable_tqdm=True,
                          ddp_backend="gloo" if "RANK" in os.environ else None, **options)
    trainer = GRPOTrainer(model=model, reward_funcs=rewards or [reward_function("exact"), length], args=args, train_dataset=rows, processing_class=tokens(),
                          estimator=estimator, cluster=lambda row: row["kind"])
    trainer.seen = []
    step, gather, write = estimator.step_flat, trainer._tare_gather, trainer._tare_write

    def recorded(reward, sizes, lengths=None, **columns):
        out = step(reward, sizes, lengths, **columns)
        trainer.seen.append({"reward": list(reward), "sizes": list(sizes), "lengths": list(lengths), "columns": columns,
                             "advantage": [float(a) for a in out.advantage], "weight": [float(w) for w in out.rollout_weight],
                             "tokens": None if out.token_advantage is None else [float(a) for a in out.token_advantage]})
        return out

    def gathered(output):
        facts = gather(output)
        trainer.every = dict(facts)
        return facts

    def written(output, *rest):
        write(output, *rest)
        trainer.seen[-1].update(every_uid=trainer.every["prompt_uid"], used=output["advantages"].tolist(), mask=output["completion_mask"].tolist())

    estimator.step_flat, trainer._tare_gather, trainer._tare_write = recorded, gathered, written
    return trainer


def uneven(completions, **_):
    """0 or 1: some estimators take nothing else."""
    return [float(len(set(c)) % 2) for c in completions]


def run(folder, name):
    estimator = Estimator(name, **({"n_clusters": 2} if CLUSTERED(name) else {}))
    trainer = make(folder, 3, estimator, batch=6, rewards=[uneven])
    trainer.train()
    return {"seen": trainer.seen, "state": estimator.save().hex(), "steps": estimator.steps}


def main():
    folder, out, *names = sys.argv[1:]
    results = {}
    for name in names:
        try:
            results[name] = run(os.path.join(folder, name), name)
        except TareError as error:
            results[name] = {"refused": str(error)}
    with open("%s.%s" % (out, os.environ.get("RANK", "0")), "w") as file:
        json.dump(results, file)


if __name__ == "__main__":
    main()
