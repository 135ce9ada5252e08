#!/usr/bin/env python3
"""Measures the cost of making the loss a plugin: the share of a tiny training step, in instructions, spent on calling the objective.

  objective_cost.py [TARE] [--objectives ppo,gspo,mis] [--steps 1] [--keep FOLDER]

Counts everything that core/update/objective.c does in a step (columns, copies, entering and leaving the plugin, checks of its output), without
the plugin's own work, which a loss inside the engine would need as well. The step is the quickstart's: 16 prompts x 8 rollouts, a new model
of its shape, one thread. Valgrind's callgrind counts a run of one step and a run of 1 + STEPS; the difference is the steps alone, without
startup and shutdown. Counts hardly depend on other load; a run takes two to five minutes, as valgrind emulates FMA. Exit status 1 if the
share exceeds 1 % of the step. Requires valgrind (apt-get install valgrind) and a program with symbols.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

LIMIT = 0.01
HOST_SIDE = re.compile(r"objective_(begin|prepare|compute|apply)$")
BASE = """[run]
dir = runs/base
seed = 1
threads = 1
[model]
path = base
init = qwen2
hidden_size = 128
layers = 3
heads = 4
kv_heads = 2
intermediate_size = 384
context = 256
tie_embeddings = true
init_std = 0.08
rope_theta = 10000
[data]
train = builtin:arithmetic/phase1?rows=128
prompt = plain
[sft]
steps = 1
batch = 128
out = made
[train]
lr = 2e-3
warmup_steps = 0
"""
STEPS = """[run]
dir = runs/{name}
seed = 1
threads = 1
[model]
path = made
[data]
train = builtin:arithmetic/train
prompt = plain
[rollout]
prompts = 16
group_size = 8
max_new_tokens = 6
max_prompt_tokens = 32
[verifier]
plugins = exact
[codebook]
plugin = none
[estimator]
plugin = grpo
[objective]
plugin = {objective}
[loss]
clip = 0.2
kl_coef = 0
entropy_coef = 0.01
{sampler}
[train]
steps = {steps}
minibatch = 64
lr = 2e-4
warmup_steps = 0
[eval]
before = false
after = false
"""


class Profile:
    """Reads a callgrind file: instructions of all functions, of the host's side of the objective with its callees, and of the plugin called from it."""

    def __init__(self, path):
        self.names = {}
        self.total = self.host = self.plugin = 0
        fn, ob, callee, cob, call = "", "", "", "", False
        for line in open(path):
            key, eq, rest = line.rstrip("\n").partition("=")
            if eq and key in ("fn", "ob", "cfn", "cob"):
                name = self.name(key[-2:], rest)
                if key == "fn":
                    fn, cob = name, ""
                elif key == "ob":
                    ob = name
                elif key == "cfn":
                    callee = name
                else:
                    cob = name
            elif eq and key == "calls":
                call = True
            elif line[:1] in "0123456789+-*" and len(line.split()) == 2:
                self.count(int(line.split()[1]), HOST_SIDE.match(fn), callee if call else None, cob or ob)
                if call:
                    call, cob = False, ""

    def name(self, kind, text):
        number, _, name = text.partition(" ")
        if name:
            self.names[kind, number] = name
        return self.names[kind, number]

    def count(self, n, inside, callee, cob):
        self.total += 0 if callee else n
        if not inside or (callee and HOST_SIDE.match(callee)):
            return
        self.host += n
        if callee and "/objectives/" in cob:
            self.plugin += n


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr[-2000:]}")


def counted(tare, folder, objective, steps):
    name = f"{objective}-{steps}"
    # both compare the sampler's probabilities with the old policy's, which must therefore differ
    sampler = "old_logprobs = recompute" if objective in ("mis", "tis") else ""
    with open(os.path.join(folder, name + ".ini"), "w") as f:
        f.write(STEPS.format(name=name, objective=objective, steps=steps, sampler=sampler))
    out = os.path.join(folder, name + ".callgrind")
    run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", tare, "train", name + ".ini"], folder)
    return Profile(out)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tare", nargs="?", default="build/tare")
    p.add_argument("--objectives", default="ppo,gspo,mis")
    p.add_argument("--steps", type=int, default=1)
    p.add_argument("--keep", help="a new folder for the counts")
    a = p.parse_args()
    tare = os.path.abspath(a.tare)
    if not shutil.which("valgrind"):
        sys.exit("valgrind is missing: apt-get install valgrind")
    if not os.path.isfile(tare) or not os.access(tare, os.X_OK):
        sys.exit(f"{tare}: not found; build it (make), or pass its path as the first argument")
    if a.steps < 1:
        sys.exit(f"--steps {a.steps}: must be at least 1")
    if a.keep and os.path.exists(a.keep):
        sys.exit(f"--keep {a.keep}: already exists; name a new folder")
    folder = a.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    worst = 0
    try:
        with open(os.path.join(folder, "base.ini"), "w") as f:
            f.write(BASE)
        run([tare, "sft", "base.ini"], folder)
        for objective in a.objectives.split(","):
            one, more = (counted(tare, folder, objective, n) for n in (1, 1 + a.steps))
            step, host, plugin = ((getattr(more, k) - getattr(one, k)) / a.steps for k in ("total", "host", "plugin"))
            if plugin <= 0 or host <= plugin:
                sys.exit(f"{objective}: {plugin:.0f} instructions in the plugin, {host:.0f} with the host's side; is the program stripped of its symbols?")
            share = (host - plugin) / step
            worst = max(worst, share)
            print(f"{objective:8} a step {step / 1e6:8.1f} million instructions, the plugin {plugin / 1e3:7.1f} thousand, calling it {(host - plugin) / 1e3:7.1f} thousand: {100 * share:.3f} %",
                  flush=True)
    finally:
        if not a.keep:
            shutil.rmtree(folder)
    return worst > LIMIT


if __name__ == "__main__":
    sys.exit(main())
