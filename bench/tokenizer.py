#!/usr/bin/env python3
"""Compares tare's tokenizer with Hugging Face `tokenizers` on the same text in the same run, one thread each.

usage: bench/tokenizer.py BENCH_PROGRAM TOKENIZER_FOLDER TEXT_FILE
BENCH_PROGRAM is the compiled bench/tokenizer.c (its first comment has the command). The text is split at blank lines; both encode the same
parts. Prints the MB/s of each (the best of five passes after a warm-up) and whether all ids are equal.
Requires: pip install tokenizers
"""
import os
import struct
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
from tokenizers import Tokenizer  # noqa: E402


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    program, folder, path = sys.argv[1:]
    with open(path, encoding="utf-8", newline="") as f:
        texts = f.read().split("\n\n")
    size = sum(len(t.encode()) for t in texts)
    theirs = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    best = float("inf")
    for _ in range(6):
        begin = time.perf_counter()
        encoded = [theirs.encode(t, add_special_tokens=False) for t in texts]
        best = min(best, time.perf_counter() - begin)
    want = [i for e in encoded for i in e.ids]
    with tempfile.TemporaryDirectory() as tmp:
        ids = os.path.join(tmp, "ids")
        seconds = float(subprocess.run([program, folder, path, ids], check=True, capture_output=True, text=True).stdout)
        with open(ids, "rb") as f:
            data = f.read()
    got = list(struct.unpack(f"<{len(data) // 4}i", data))
    print(f"{len(texts)} texts, {size / 1e6:.1f} MB, {len(want)} ids")
    print(f"tare          {size / seconds / 1e6:8.1f} MB/s")
    print(f"HF tokenizers {size / best / 1e6:8.1f} MB/s")
    print("ids equal" if got == want else "IDS DIFFER")
    sys.exit(got != want)


if __name__ == "__main__":
    main()
