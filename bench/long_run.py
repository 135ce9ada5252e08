#!/usr/bin/env python3
"""Checks that memory, descriptors, threads and files do not grow in a run of many steps.

usage: bench/long_run.py TARE FOLDER [STEPS]
TARE is the program. In FOLDER, which the script creates, a model of 8 channels trains for STEPS (100000) steps of two rollouts of one token,
with checkpoints and without rollout dumps. The process is sampled ten times a second. The table shows its resources after each tenth of
the steps, and the sizes of the records. Exit status 1 if resident memory after the last tenth exceeds that after the second one by more
than a MiB, or if the number of descriptors, threads or files has grown.
"""
import os
import subprocess
import sys
import time

SFT = """[run]
dir = {0}/sft
[model]
path = none
init = qwen2
hidden_size = 8
layers = 1
heads = 1
kv_heads = 1
intermediate_size = 8
context = 64
[data]
train = builtin:arithmetic/phase1?rows=200
prompt = plain
[sft]
steps = 2
batch = 8
out = {0}/base
"""
RUN = """[run]
dir = {0}/run
threads = 1
[model]
path = {0}/base
[data]
train = builtin:arithmetic/train?rows=64
prompt = plain
[rollout]
prompts = 1
group_size = 2
max_new_tokens = 1
[verifier]
plugins = exact
[codebook]
plugin = none
[estimator]
plugin = grpo
[train]
steps = {1}
minibatch = 2
lr = 1e-4
[checkpoint]
every = {2}
keep = 2
[log]
rollouts = false
progress = none
"""


def look(pid):
    status = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status").read().splitlines())
    return int(status["VmRSS"].split()[0]), len(os.listdir(f"/proc/{pid}/fd")), int(status["Threads"])


def last_step(path):
    with open(path, "rb") as f:
        f.seek(max(0, os.path.getsize(path) - 8000))
        lines = f.read().split(b"\n")
    return int(lines[-2].split(b":")[1].split(b",")[0]) if len(lines) > 1 and lines[-2].startswith(b'{"step"') else 0


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    tare, folder, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 100000
    os.makedirs(folder)
    for name, text in (("sft", SFT), ("run", RUN)):
        with open(f"{folder}/{name}.ini", "w") as f:
            f.write(text.format(folder, steps, max(steps // 100, 1)))
    subprocess.run([tare, "-q", "sft", f"{folder}/sft.ini"], check=True)
    began, rows = time.time(), []
    p = subprocess.Popen([tare, "-q", "train", f"{folder}/run.ini"], stdout=subprocess.DEVNULL)
    print("     step  resident KiB  descriptors  threads  files  metrics B/step  chain B/step")
    while p.poll() is None:
        time.sleep(0.1)
        try:
            at = last_step(f"{folder}/run/metrics.jsonl")
            if at < (len(rows) + 1) * steps // 10:
                continue
            held = look(p.pid)
            files = sum(len(names) for _, _, names in os.walk(f"{folder}/run"))
        except (FileNotFoundError, ProcessLookupError, KeyError):
            continue
        rows.append((at, *held, files))
        sizes = [os.path.getsize(f"{folder}/run/{name}.jsonl") / at for name in ("metrics", "chain")]
        print("%9d %13d %12d %8d %6d %15.1f %13.1f" % (*rows[-1], *sizes), flush=True)
    print(f"{steps} steps in {time.time() - began:.0f} s, exit status {p.returncode}")
    if p.returncode or len(rows) < 3:
        sys.exit("the run failed or was too short to measure")
    first, last = rows[1], rows[-1]
    grown = last[1] > first[1] + 1024 or any(last[k] > first[k] for k in (2, 3)) or last[4] > max(r[4] for r in rows[1:3])
    print("grows" if grown else "does not grow")
    sys.exit(grown)


if __name__ == "__main__":
    main()
