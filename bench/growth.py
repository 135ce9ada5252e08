#!/usr/bin/env python3
"""Measures how time and memory of a step (sampling and policy update) grow with G, M, prompt length and new tokens, one at a time.

    bench/growth.py [--tare build/tare] [--model tiny] [--small] [--rounds 1] [--json FILE]

--small: start from smaller values, for a model like SmolLM2. Prints one line per setting: seconds of the step, microseconds per row that
passes through the model (in sampling and in the update), attention's share of the time, peak memory, and the number of allocations in the
last round (0 is expected). A step is linear in G and M if the time per row is constant; in lengths it grows by attention's share."""
import argparse
import json
import subprocess
import sys

BASE = {"group_size": 8, "prompts": 8, "prompt": 64, "new": 64}
GRID = {"group_size": [2, 4, 8, 16, 32], "prompts": [4, 8, 16, 32, 64], "prompt": [64, 128, 256, 512, 1024], "new": [64, 128, 256, 512, 1024]}
SMALL_BASE = {"group_size": 4, "prompts": 2, "prompt": 64, "new": 16}
ATTENTION = ("attention", "attention_grad", "kv_write", "kv_copy")


def step(args, s):
    command = [args.tare, "bench", "step", args.model, "--json", f"rounds={args.rounds}", f"prompt={s['prompt']}", f"rollout.prompts={s['prompts']}",
               f"rollout.group_size={s['group_size']}", f"train.minibatch={s['prompts'] * s['group_size']}", f"rollout.max_new_tokens={s['new']}"]
    r = subprocess.run(command + args.set, capture_output=True, text=True)
    if r.returncode:
        sys.exit(f"{' '.join(command)}\n{r.stderr}")
    return json.loads(r.stdout)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tare", default="build/tare")
    p.add_argument("--model", default="tiny")
    p.add_argument("--small", action="store_true")
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--only", help="measure only one of group_size, prompts, prompt, new")
    p.add_argument("--json", dest="out")
    p.add_argument("set", nargs="*", help="additional keys, such as run.threads=1")
    args = p.parse_args()
    base, results = SMALL_BASE if args.small else BASE, []
    print(f"Base: G = {base['group_size']}, M = {base['prompts']}, {base['prompt']} prompt + {base['new']} new tokens.\n")
    print("| | step | rollout | update | us a row | attention | peak memory | taken |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for key, values in GRID.items():
        if args.only and key != args.only:
            continue
        for value in values:
            s = dict(base, **{key: value})
            r = step(args, s)
            rows = 2 * s["prompts"] * (s["prompt"] + s["group_size"] * (s["new"] - 1))
            attention = sum(r[phase]["kernels"].get(k, {"seconds": 0})["seconds"] for phase in ("rollout", "update") for k in ATTENTION)
            name = {"group_size": "G", "prompts": "M", "prompt": "prompt", "new": "new"}[key]
            print(f"| {name} = {value} | {r['seconds']:.3f} s | {r['rollout']['seconds']:.3f} | {r['update']['seconds']:.3f} | {1e6 * r['seconds'] / rows:.1f} | "
                  f"{100 * attention / r['seconds']:.0f} % | {r['rss_mib']:.0f} MiB | {r['grown']} |", flush=True)
            results.append(dict(s, varied=key, result=r))
    if args.out:
        with open(args.out, "w") as f:
            json.dump(results, f, indent=1)


if __name__ == "__main__":
    main()
