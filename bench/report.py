#!/usr/bin/env python3
"""Measures and writes the tables of docs/dev/performance.md: replaces the text between <!-- bench NAME --> and <!-- end -->, keeps all else.

    bench/report.py --model SMOLLM2 [--peers PYTHON] [--tiny MODEL] [--gguf FILE.gguf] [--vllm PYTHON]
                    [--tables products,stages,attention,threads,peers] [--rounds 3] [--tare build/tare] [--doc docs/dev/performance.md]

Same as make bench-report MODEL=... PEERS=... . Every table begins with the date, the machine and the commit. A table whose peers or model are
missing is kept, and its name is printed. Requires an idle machine: about forty minutes for three rounds, most of it for the peers. --work
selects the peers' work (fewshot, which runs only if it is named, takes another hour with TRL).
"""
import argparse
import datetime
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def lines_of(*command, **more):
    r = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)
    if r.returncode:
        sys.exit(f"bench/report.py: {' '.join(map(str, command))} failed:\n{r.stderr[-2000:]}")
    return r.stdout.splitlines()


def machine():
    with open("/proc/cpuinfo") as f:
        info = dict(re.split(r"\s*:\s*", line.rstrip("\n"), maxsplit=1) for line in f.read().split("\n\n")[0].splitlines() if ":" in line)
    sets = [s for s in ("avx2", "avx512f", "avx512_bf16") if s in info.get("flags", "").split()]
    caches = []
    for level in range(4):
        path = f"/sys/devices/system/cpu/cpu0/cache/index{level}"
        if os.path.exists(path) and open(f"{path}/type").read().strip() != "Instruction":
            caches.append(open(f"{path}/size").read().strip())
    return f"{len(os.sched_getaffinity(0))} cores of {info.get('model name', '?')}, family {info.get('cpu family', '?')}, {'+'.join(sets)}, caches {', '.join(caches)}"


def origin():
    commit = lines_of("git", "-C", ROOT, "rev-parse", "--short=9", "HEAD")[0]
    changed = bool(lines_of("git", "-C", ROOT, "status", "--porcelain", "--untracked-files=no", "--", "core", "kernels", "bench/gemm_vs_onednn.c"))
    return f"{datetime.date.today().isoformat()}, commit {commit}{' with changes' if changed else ''}, {machine()}."


def products(args):
    """{work: {(dtype, threads): text}} of bench/gemm_vs_onednn.c."""
    build = os.path.dirname(args.tare)
    program = os.path.join(tempfile.mkdtemp(), "gemm")
    made = subprocess.run(["cc", "-O2", *(f"-I{ROOT}/{d}" for d in ("core", "kernels", "sdk/include")), f"{ROOT}/bench/gemm_vs_onednn.c", f"{build}/libtare_kernels.a",
                           f"{build}/libtare_base.a", "-ldnnl", "-ljansson", "-lm", "-lpthread", "-o", program], capture_output=True, text=True)
    if made.returncode:
        print(f"products: left as it is, the program was not built (libdnnl-dev?):\n{made.stderr[-600:]}")
        return None
    rows, columns, head = {}, [], ""
    for dtype in ("f32", "bf16"):
        for threads in (1, 2):
            columns.append((dtype, threads))
            for line in lines_of(program, threads, dtype):
                got = re.match(r"(\S+)\s+\S+\s+T=(\d+)\s+N=(\d+)\s+K=(\d+)\s+tare\s+([0-9.]+) .*oneDNN\s+([0-9.]+) .*?([0-9.]+)x", line)
                if got:
                    key = (int(got[2]), f"{got[3]} <- {got[4]}", got[1])
                    rows.setdefault(key, {})[(dtype, threads)] = f"{float(got[5]):.0f} / {float(got[6]):.0f}, {got[7]}"
                elif line.startswith("#"):
                    head = line[2:].split(", ", 1)[0] + ", " + line.split("; ", 1)[1]
    text = [f"GFLOP/s, ours / oneDNN's, and the median ratio of 21 pairs in turn; {head}.", "",
            "| rows | columns <- inner | | " + " | ".join(f"{d}, {t} thread{'s' * (t > 1)}" for d, t in columns) + " |", "|---:|---|---|" + "---|" * len(columns)]
    for (t, shape, kind), cells in sorted(rows.items(), key=lambda x: (x[0][0], x[0][1])):
        text.append(f"| {t} | {shape} | {kind} | " + " | ".join(cells.get(c, "") for c in columns) + " |")
    return text


def stages(args):
    if not args.model:
        return None
    work = {"step 4 x 8, 64 + 64": ["step", "rollout.prompts=4", "rollout.group_size=8", "train.minibatch=32", "prompt=64", "rollout.max_new_tokens=64"],
            "train 8 x 256": ["train", "sft.batch=8", "rollout.max_new_tokens=256"]}
    runs = []
    for name, (stage, *keys) in work.items():
        for dtype in ("f32", "bf16"):
            r = json.loads("\n".join(lines_of(args.tare, "bench", stage, args.model, "--json", f"rounds={args.rounds}", f"model.dtype={dtype}", *keys)))
            for phase in ("rollout", "update", "train"):
                if phase in r:
                    runs.append((f"{name}, {dtype}: {phase}", r, r[phase]))
    names = {}
    for _, _, phase in runs:
        for kernel, k in phase["kernels"].items():
            names[kernel] = max(names.get(kernel, 0), k["seconds"] / phase["seconds"])
    text = ["SmolLM2-135M, 2 threads; share of the stage's time, and of the innermost fp32 loop of a product as it ran in those seconds "
            "(the dot product of bf16 can reach twice that, and twice the fp32 peak).", "",
            "| | " + " | ".join(f"{n}, {p['seconds']:.2f} s" for n, _, p in runs) + " |", "|---|" + "---|" * len(runs)]
    total = [sum(k["flops"] for k in p["kernels"].values()) / p["seconds"] * 1e-9 for _, _, p in runs]
    text.append("| all, GFLOP/s; of the loop; of the peak | " + " | ".join(f"{g:.0f}; {100 * g / r['tile_gflops'] if r['tile_gflops'] else 0:.0f} %; "
                                                                          f"{100 * g / r['peak_gflops']:.0f} %" for g, (_, r, _) in zip(total, runs)) + " |")
    for kernel in sorted(names, key=names.get, reverse=True):
        if names[kernel] < 0.005:
            continue
        cells = []
        for _, r, p in runs:
            k = p["kernels"].get(kernel)
            loop = f", {1e-7 * k['flops'] / k['seconds'] / r['tile_gflops']:.0f} %" if k and kernel.startswith(("matmul", "attention")) and r["tile_gflops"] else ""
            cells.append(f"{100 * k['seconds'] / p['seconds']:.1f} %{loop}" if k and k["seconds"] > 0 else "")
        text.append(f"| {kernel} | " + " | ".join(cells) + " |")
    return text


def attention(args):
    text = ["One thread; share of the peak of multiply-adds and of reading in the same run.", "", "| | GFLOP/s | of peak | GB/s | of reading |", "|---|---:|---:|---:|---:|"]
    for line in lines_of(args.tare, "bench", "attention", "--threads", "1"):
        got = re.match(r"\S+ (attention\S* .*?)\s+[0-9.]+ us\s+([0-9.]+) GFLOP/s\s+(\d+ %)\s+([0-9.]+) GB/s\s+(\d+ %)", line)
        if got and "smollm2" in got[1]:
            text.append(f"| {got[1].strip()} | {got[2]} | {got[3]} | {got[4]} | {got[5]} |")
    return text


def threads(args):
    """Speedup by a second thread of every operation that takes one thread longer than 50 us: medians of alternating rounds."""
    times = {}
    for _ in range(args.rounds):
        for n in (1, 2):
            for line in lines_of(args.tare, "bench", "smollm2", "--threads", n):
                got = re.match(r"\S+ (.*?)\s+([0-9.]+) us\s", line)
                if got:
                    times.setdefault(got[1], {}).setdefault(n, []).append(float(got[2]))
    one = {name: statistics.median(t[1]) for name, t in times.items() if statistics.median(t[1]) >= 50}
    gain = {name: one[name] / statistics.median(times[name][2]) for name in one}
    less = sorted((name for name in gain if gain[name] < 1.895), key=gain.get)
    return [f"SmolLM2, time of one thread (of its processor time) over that of two (by the clock), medians of {args.rounds} in turn; {len(gain)} operations take one thread 50 us or more.",
            "", f"{len(gain) - len(less)} of them are 1.9 to {max(gain.values()):.1f} times as fast with two threads. The others:", "",
            "| | one thread, us | times as fast |", "|---|---:|---:|", *(f"| {name} | {one[name]:.0f} | {gain[name]:.2f} |" for name in less)]


def peers(args):
    if not args.model or not args.peers:
        return None
    command = [sys.executable, f"{ROOT}/bench/peers/run.py", "--model", args.model, "--peers", args.peers, "--tare", args.tare, "--rounds", args.rounds, "--steps", args.steps,
               "--work", args.work]
    for name in ("tiny", "gguf", "vllm"):
        if getattr(args, name):
            command += ["--" + name, getattr(args, name)]
    return [f"Medians of {args.rounds}, in turn; {args.steps} steps a run, of which the first does not count.", "", *lines_of(*command)]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tables", default="products,stages,attention,threads,peers")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=3)
    p.add_argument("--work", default="tiny,grpo,train,generate")
    p.add_argument("--tare", default=f"{ROOT}/build/tare")
    p.add_argument("--doc", default=f"{ROOT}/docs/dev/performance.md")
    for name in ("model", "peers", "tiny", "gguf", "vllm"):
        p.add_argument("--" + name)
    args = p.parse_args()
    args.tare = os.path.abspath(args.tare)
    makers = {"products": products, "stages": stages, "attention": attention, "threads": threads, "peers": peers}
    for name in args.tables.split(","):
        if name not in makers:
            sys.exit(f"bench/report.py: unknown table {name}: must be one of {', '.join(makers)}")
        with open(args.doc) as f:
            text = f.read()
        place = re.search(rf"(<!-- bench {name} -->\n).*?(<!-- end -->)", text, re.S)
        if not place:
            sys.exit(f"bench/report.py: {args.doc} has no section for {name}: <!-- bench {name} --> ... <!-- end -->")
        made = makers[name](args)
        if not made:
            print(f"{name}: left as it is")
            continue
        with open(args.doc) as f: # read it again, since it may have been edited
            text = f.read()
        place = re.search(rf"(<!-- bench {name} -->\n).*?(<!-- end -->)", text, re.S)
        text = text[:place.end(1)] + "\n".join([origin() + " " + made[0], *made[1:]]) + "\n" + text[place.start(2):]
        with open(args.doc, "w") as f:
            f.write(text)
        print(f"{name}: written")


if __name__ == "__main__":
    main()
