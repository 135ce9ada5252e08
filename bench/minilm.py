"""Compares sentences per second of `tare cluster embed minilm` and of PyTorch, on the same questions and cores, alternating.

    python3 bench/minilm.py --model FOLDER --questions gsm8k_test.jsonl [--rows 1319] [--threads 2] [--repeat 3] [--tare build/tare]

Both read at most 256 tokens of a text. tare sorts by length and packs texts without padding; PyTorch gets the batches of
sentence-transformers: texts sorted by length, batches of 32, each padded to its longest text, attention masked. Tokenizing counts for both,
loading does not: tare's rate is computed from the difference between a run over all rows and one over a single row.
Requires torch and transformers; sentence-transformers is measured too if it is installed.
"""
import argparse
import json
import os
import statistics
import subprocess
import time


def run_tare(args, texts):
    lines = "".join(json.dumps({"text": t}) + "\n" for t in texts)
    start = time.perf_counter()
    out = subprocess.run([args.tare, "cluster", "embed", "minilm", f"model={args.model}", "--threads", str(args.threads)], input=lines, check=True,
                         capture_output=True, text=True).stdout
    return time.perf_counter() - start, out


def torch_encoder(args):
    import torch
    from transformers import AutoModel, AutoTokenizer

    torch.set_num_threads(args.threads)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModel.from_pretrained(args.model, dtype=torch.float32).eval()

    def encode(texts):
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        out = [None] * len(texts)
        with torch.inference_mode():
            for first in range(0, len(order), 32):
                part = order[first:first + 32]
                batch = tokenizer([texts[i] for i in part], padding="longest", truncation=True, max_length=256, return_tensors="pt")
                h = model(**batch).last_hidden_state
                mask = batch["attention_mask"].unsqueeze(-1)
                e = torch.nn.functional.normalize((h * mask).sum(1) / mask.sum(1), dim=-1)
                for i, row in zip(part, e):
                    out[i] = row.numpy()
        return out

    return encode


def sentence_encoder(args):
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        return None
    import torch
    model = SentenceTransformer(args.model, device="cpu", model_kwargs={"dtype": torch.float32})
    model.max_seq_length = 256
    return lambda texts: model.encode(texts, batch_size=32, normalize_embeddings=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--model", required=True)
    p.add_argument("--questions", required=True)
    p.add_argument("--rows", type=int, default=1319)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--tare", default="build/tare")
    args = p.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    texts = [json.loads(line)["question"] for line in open(args.questions)][:args.rows]
    peers = {"PyTorch": torch_encoder(args), "sentence-transformers": sentence_encoder(args)}
    peers = {name: encode for name, encode in peers.items() if encode}
    for encode in peers.values():
        encode(texts[:64])
    rates, found = {name: [] for name in ["tare", *peers]}, {}
    for _ in range(args.repeat):
        start_up, _ = run_tare(args, texts[:1])
        seconds, found["tare"] = run_tare(args, texts)
        rates["tare"].append(len(texts) / (seconds - start_up))
        for name, encode in peers.items():
            start = time.perf_counter()
            found[name] = encode(texts)
            rates[name].append(len(texts) / (time.perf_counter() - start))
    ours = [json.loads(line)["embedding"] for line in found["tare"].splitlines()]
    print(f"{len(texts)} questions, {args.threads} threads, sentences a second: tare {max(rates['tare']):.1f} (median {statistics.median(rates['tare']):.1f})")
    for name in peers:
        worst = max(max(abs(a - b) for a, b in zip(x, y.tolist())) for x, y in zip(ours, found[name]))
        print(f"{name} {max(rates[name]):.1f} (median {statistics.median(rates[name]):.1f}): tare is {max(rates['tare']) / max(rates[name]):.2f} times as fast by the best, "
              f"by round {[round(a / b, 2) for a, b in zip(rates['tare'], rates[name])]}; largest difference {worst:.2g}")


main()
