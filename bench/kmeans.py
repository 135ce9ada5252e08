"""Compares K-means of `tare cluster train` with scikit-learn in the same run.

    python3 bench/kmeans.py --embeddings EMB.safetensors [--reference kmeans.json] [--clusters 16 32] [--seeds 5] [--tare build/tare]
    python3 bench/kmeans.py --million [--rows 1000000] [--clusters 1024] [--tare build/tare]

The first form compares inertia and seconds for 10 restarts (both on the same rows as fp32; scikit-learn: k-means++, Lloyd, n_init 10).
Seconds are those of training alone, on all cores, with the two programs alternating. The second form makes synthetic vectors of 384
dimensions and compares the rate of the assignment with that of numpy's matrix product (OpenBLAS) of the same shape, in the same order of
processes, and reports the memory used. Requires numpy, and scikit-learn for the first form.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

import numpy as np


def read(path):
    with open(path, "rb") as f:
        n = int.from_bytes(f.read(8), "little")
        header = json.loads(f.read(n))
        name = "embeddings" if "embeddings" in header else next(k for k in header if k != "__metadata__")
        t = header[name]
        f.seek(8 + n + t["data_offsets"][0])
        x = np.frombuffer(f.read(t["data_offsets"][1] - t["data_offsets"][0]), {"F16": np.float16, "F32": np.float32}[t["dtype"]])
    return x.reshape(t["shape"]).astype(np.float32)


def write_header(f, **tensors):
    header, at = {}, 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps({k: v for k, v in header.items()}).encode()
    f.write(len(text).to_bytes(8, "little") + text)


def tare(args, *words):
    out = subprocess.run([args.tare, "cluster", "train", *words], check=True, capture_output=True, text=True).stdout
    return json.loads(out.splitlines()[-1])


def compare(args):
    from sklearn.cluster import KMeans

    x = read(args.embeddings)
    reference = {r["K"]: r["best_inertia"] for r in json.load(open(args.reference))} if args.reference else {}
    for k in args.clusters:
        ours, theirs = [], []
        for seed in range(args.seeds):
            with tempfile.TemporaryDirectory() as folder:
                ours.append(tare(args, "--embeddings", args.embeddings, "--clusters", str(k), "--restarts", "10", "--seed", str(seed), "-o",
                                 os.path.join(folder, "codebook.safetensors"), "--json"))
            start = time.perf_counter()
            m = KMeans(k, n_init=10, random_state=seed).fit(x)
            theirs.append({"seconds": time.perf_counter() - start, "inertia": float(m.inertia_)})
        best = reference.get(k, min(r["inertia"] for r in ours + theirs))
        for name, rows in (("tare", ours), ("scikit-learn", theirs)):
            ratios = [r["inertia"] / best for r in rows]
            print(f"K {k:4d}  {name:12s}  inertia/best median {statistics.median(ratios):.5f} worst {max(ratios):.5f}   "
                  f"seconds median {statistics.median(r['seconds'] for r in rows):.3f} min {min(r['seconds'] for r in rows):.3f}")


def million(args):
    k, d = args.clusters[0], 384
    rng = np.random.default_rng(0)
    centroids = rng.standard_normal((k, d), dtype=np.float32)
    block = rng.standard_normal((65536, d), dtype=np.float32)
    start = time.perf_counter()
    for _ in range(3):
        block @ centroids.T
    peak = max(3 * 2 * block.shape[0] * k * d / (time.perf_counter() - start) / 1e9, 0)
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        vectors, codebook = os.path.join(folder, "x.safetensors"), os.path.join(folder, "codebook.safetensors")
        with open(vectors, "wb") as f:
            write_header(f, embeddings=("F32", [args.rows, d], args.rows * d * 4))
            for first in range(0, args.rows, 65536):
                n = min(65536, args.rows - first)
                f.write((centroids[rng.integers(0, k, n)] + rng.standard_normal((n, d), dtype=np.float32)).tobytes())
        with open(codebook, "wb") as f:
            header = json.dumps({"__metadata__": {"format": "tare.codebook/1"},
                                 "centroids": {"dtype": "F32", "shape": [k, d], "data_offsets": [0, k * d * 4]}}).encode()
            f.write(len(header).to_bytes(8, "little") + header + centroids.tobytes())
        out = subprocess.run([args.tare, "cluster", "assign", codebook, "--embeddings", vectors, "-o", os.path.join(folder, "out.safetensors")],
                             check=True, capture_output=True, text=True).stdout
    r = json.loads(out)
    start = time.perf_counter()
    for _ in range(3):
        block @ centroids.T
    peak = max(peak, 3 * 2 * block.shape[0] * k * d / (time.perf_counter() - start) / 1e9)
    print(f"{r['rows']} x {d}, K {k}: {r['seconds']:.2f} s, {r['gflops']:.1f} GFLOP/s = {100 * r['gflops'] / peak:.0f} % of numpy's product "
          f"({peak:.1f} GFLOP/s), {r['threads']} threads, peak memory {r['peak_memory_mb']:.0f} MB")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--embeddings")
    p.add_argument("--reference")
    p.add_argument("--clusters", type=int, nargs="+")
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--million", action="store_true")
    p.add_argument("--rows", type=int, default=1000000)
    p.add_argument("--folder", help="folder for the synthetic vectors (1.5 GB for a million)")
    p.add_argument("--tare", default="build/tare")
    args = p.parse_args()
    args.clusters = args.clusters or ([1024] if args.million else [16, 32])
    million(args) if args.million else compare(args)


main()
