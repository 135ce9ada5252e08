#!/usr/bin/env python3
"""Compares tare with its peers on this machine: the same work, alternating, in one run.

    bench/peers/run.py --model SMOLLM2 --tiny runs/quickstart-base-1 --peers PYTHON [--work learn,grpo,tiny,fewshot,train,generate]
                       [--rounds 3] [--threads 2] [--tare build/tare] [--vllm PYTHON [--vllm-dtype float32]]
                       [--gguf FILE.gguf] [--json OUT]

PYTHON is an interpreter with torch, transformers, trl, datasets (and llama-cpp-python for --gguf), --vllm one with vllm. vLLM uses bfloat16
unless --vllm-dtype is given: on a CPU without bf16 instructions, float32 is faster. A peer that cannot be imported is skipped with a
message. The work, as in bench/peers/trl_step.py and torch_train.py:

  learn     300 steps of GRPO on the quickstart's task from its warm start, --tiny, on one thread (configs/studies/as-trl);
            each round has another seed, and the held-out rewards are printed                                      TRL GRPOTrainer
  grpo      a GRPO step of SMOLLM2, 4 prompts x 8 rollouts, 64 prompt + 64 new tokens, one optimizer step            TRL GRPOTrainer
  tiny      a GRPO step of a tiny model, 16 x 8, 32 + 32                                                             TRL GRPOTrainer
  fewshot   a GRPO step of SMOLLM2, 16 x 8, 120 + 8                                                                  TRL GRPOTrainer
  train     forward, backward and AdamW on 8 x 256 tokens                                                            PyTorch
  generate  64 + 64 tokens at batch 1, 32, 128: new tokens per second of decoding                                    llama.cpp, vLLM

TRL and PyTorch run under tcmalloc if it is installed, which is faster. A round runs every program once; a step's time is the median of the
steps after the first. Prints the median, minimum and maximum over rounds, and the ratio of medians. tare's step is its metric time/step:
data, sampling, verifying, estimating, update.
"""
import argparse
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
STUDY = os.path.join(HERE, "..", "..", "configs", "studies", "as-trl")
WORDS = ("the of to and in is that it was for on are with as his they at be this from have or by one had not but what all were when we there can "
         "an your which their said if do will each about how up out them then she many some so these would other into has more her two like him see "
         "time could no make than first been its who now people my made over did down only way find use may water long little very after words called "
         "just where most know").split()


def fail(text):
    sys.exit(f"bench/peers/run.py: {text}")


def ran(command, **more):
    """Runs a program and returns its standard output, standard error and peak resident size in MiB."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(command, stdout=out, stderr=errors, **more)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        if child.returncode:
            fail(f"{' '.join(command[:4])} ... failed:\n{errors.read().decode(errors='replace')[-2000:]}")
        errors.seek(0)
        return out.read().decode(), errors.read().decode(errors="replace"), usage.ru_maxrss / 1024


def exact_prompts(tare, model, length, count):
    """Makes count texts of exactly length tokens: words of one token each after a first one, or digits if words have more tokens."""
    def ids(texts):
        lines = "".join(json.dumps({"text": t}) + "\n" for t in texts)
        out = subprocess.run([tare, "tokenize", model], input=lines, check=True, capture_output=True, text=True).stdout
        return [json.loads(line)["ids"] for line in out.splitlines()]
    words = [w for w, i in zip(WORDS, ids([" " + w for w in WORDS])) if len(i) == 1]
    texts = []
    for row in range(count):
        if len(words) > 20:
            texts.append("Q" + "".join(" " + words[(row * 37 + k * (row % 7 + 1)) % len(words)] for k in range(length - 1)))
        else:
            texts.append("".join(str((row * 7 + k * k) % 10) for k in range(length)))
    if any(len(i) != length for i in ids(texts)):
        fail(f"cannot make prompts of {length} tokens for {model}")
    return texts


def tcmalloc():
    found = glob.glob("/usr/lib/*/libtcmalloc_minimal.so.4")
    return {**os.environ, **({"LD_PRELOAD": found[0]} if found else {})}


class Bench:
    def __init__(self, args):
        self.args, self.folder, self.results = args, tempfile.mkdtemp(prefix="tare-bench-"), []

    def rows(self, name, texts, **more):
        path = os.path.join(self.folder, name + ".jsonl")
        with open(path, "w") as f:
            for i, text in enumerate(texts):
                f.write(json.dumps({"id": str(i), "question": text, "answer": "1", **more}) + "\n")
        return path

    # ---- a GRPO step
    def tare_step(self, model, dtype, rows, m, g, plen, new, steps):
        run = tempfile.mkdtemp(dir=self.folder)
        config = os.path.join(run, "bench.ini")
        with open(config, "w") as f:
            f.write(f"[run]\ndir = {run}/run\nseed = 1\nthreads = {self.args.threads}\n[model]\npath = {model}\ndtype = {dtype}\n"
                    f"[data]\ntrain = {rows}\nprompt = plain\n[rollout]\nprompts = {m}\ngroup_size = {g}\nmax_new_tokens = {new}\nignore_eos = true\n"
                    "[verifier]\nplugins = exact\n[estimator]\nplugin = grpo\n[codebook]\nplugin = none\n[loss]\nentropy_coef = 0\n"
                    f"[train]\nsteps = {steps}\nminibatch = {m * g}\nlr = 1e-6\n[checkpoint]\nevery = 0\nlast = false\n"
                    "[log]\ntensorboard = false\nrollouts = false\ndatabase = false\nprogress = none\n")
        _, _, mib = ran([self.args.tare, "train", config])
        with open(f"{run}/run/metrics.jsonl") as f:
            lines = [json.loads(line) for line in f]
        return {"seconds": statistics.median([x["time/step"] for x in lines if "time/step" in x][1:]), "mib": mib}

    def trl_step(self, model, dtype, rows, m, g, plen, new, steps):
        out, _, mib = ran([self.args.peers, f"{HERE}/trl_step.py", model, dtype, rows, str(m), str(g), str(new), str(steps), str(self.args.threads)],
                       env=tcmalloc())
        return {**json.loads(out.splitlines()[-1]), "mib": mib}

    def step(self, name, model, dtype, m, g, plen, new, steps):
        rows = self.rows(name, exact_prompts(self.args.tare, model, plen, m * steps))
        self.compare(f"{name}, {m} x {g}, {plen} + {new}, {dtype}", "s", False, {
            "tare": lambda: self.tare_step(model, dtype, rows, m, g, plen, new, steps),
            "TRL": lambda: self.trl_step(model, dtype, rows, m, g, plen, new, steps)})

    # ---- a whole training: the study of docs/results/as-trl.md with one seed a round
    def held_out(self, model, seed, out):
        ran([self.args.tare, "-q", "eval", f"{STUDY}/grpo.ini", f"model.path={model}", f"run.seed={seed}", f"eval.out={out}"])
        with open(f"{out}/results.json") as f:
            return json.load(f)["reward"]

    def tare_learn(self, model, rows, seed):
        run = tempfile.mkdtemp(dir=self.folder)
        _, _, mib = ran([self.args.tare, "-q", "train", f"{STUDY}/grpo.ini", f"model.path={model}", f"data.train={rows}", f"run.seed={seed}",
                         "run.threads=1", f"run.dir={run}/run", "eval.after=false", "checkpoint.last=true"])
        with open(f"{run}/run/metrics.jsonl") as f:
            lines = [json.loads(line) for line in f]
        return {"seconds": sum(x.get("time/step", 0) for x in lines), "mib": mib,
                "reward": self.held_out(glob.glob(f"{run}/run/checkpoints/step-*")[0], seed, f"{run}/eval")}

    def trl_learn(self, model, rows, seed):
        out = tempfile.mkdtemp(dir=self.folder)
        _, _, mib = ran([self.args.peers, f"{HERE}/trl_learn.py", model, rows, "grpo", str(seed), "300", out], env={**tcmalloc(), "OMP_NUM_THREADS": "1"})
        with open(f"{out}/seconds.json") as f:
            return {**json.load(f), "mib": mib, "reward": self.held_out(out, seed, f"{out}/eval")}

    def learn(self, model):
        rows, rewards = os.path.join(self.folder, "train.jsonl"), {"tare": [], "TRL": []}
        ran([self.args.tare, "-q", "data", "check", "builtin:arithmetic/train", f"write={rows}"])

        def one(name, program):
            got = program(model, rows, len(rewards[name]) + 1)
            rewards[name].append(got["reward"])
            return got
        self.compare("learn, 300 steps of 16 x 8, f32, one thread", "s", False, {
            "tare": lambda: one("tare", self.tare_learn), "TRL": lambda: one("TRL", self.trl_learn)})
        print("held-out reward after it: " + "; ".join(f"{n} {', '.join(f'{x:.3f}' for x in r)}" for n, r in rewards.items()))

    # ---- training
    def tare_train(self, dtype, batch, length, steps):
        run = tempfile.mkdtemp(dir=self.folder)
        texts = exact_prompts(self.args.tare, self.args.model, length - 1, batch * steps)  # the end-of-sequence token makes the total length
        rows = os.path.join(run, "rows.jsonl")
        with open(rows, "w") as f:
            for i, text in enumerate(texts):
                f.write(json.dumps({"id": str(i), "question": text[:1], "answer": "1", "completion": text[1:]}) + "\n")
        config = os.path.join(run, "bench.ini")
        with open(config, "w") as f:
            f.write(f"[run]\ndir = {run}/run\nseed = 1\nthreads = {self.args.threads}\n[model]\npath = {self.args.model}\ndtype = {dtype}\n[data]\ntrain = {rows}\n"
                    f"prompt = plain\n[sft]\nsteps = {steps}\nbatch = {batch}\nout = {run}/out\n[train]\nlr = 1e-6\n[log]\ntensorboard = false\n"
                    "database = false\nlevel = info\nprogress = lines\n")
        _, log, mib = ran([self.args.tare, "sft", config])
        # the mean over all steps, including the first
        return {"rate": float(re.findall(r"([0-9.]+) tokens/s", log)[-1]), "mib": mib}

    def torch_train(self, dtype, batch, length, steps):
        out, _, mib = ran([self.args.peers, f"{HERE}/torch_train.py", self.args.model, dtype, str(batch), str(length), str(steps), str(self.args.threads)],
                       env=tcmalloc())
        return {**json.loads(out.splitlines()[-1]), "mib": mib}

    # ---- generation: the time of 64 new tokens minus that of 1, which leaves 63 decoded tokens per sequence
    def tare_generate(self, dtype, batch, length, new):
        lines = "".join(json.dumps({"id": str(i), "text": t}) + "\n"
                        for i, t in enumerate(exact_prompts(self.args.tare, self.args.model, length, batch)))
        seconds = []
        for n in (1, new):
            out = subprocess.run([self.args.tare, "generate", self.args.model, f"dtype={dtype}", f"max_new_tokens={n}", "group_size=1", "ignore_eos=true",
                                  f"batch={batch}", f"threads={self.args.threads}", "prompt=plain", "--stats"], input=lines, check=True, capture_output=True, text=True)
            seconds.append(json.loads(out.stderr.splitlines()[-1])["seconds"])
        return {"rate": batch * (new - 1) / (seconds[1] - seconds[0])}

    def python_generate(self, program, python, model, dtype, batch, length, new):
        out, _, mib = ran([python, f"{HERE}/{program}", model, dtype, str(batch), str(length), str(new), str(self.args.threads)])
        return {**json.loads(out.splitlines()[-1]), "mib": mib}

    # ---- alternating rounds
    def compare(self, what, unit, more_is_better, programs):
        key = "rate" if more_is_better else "seconds"
        got = {name: [] for name in programs}
        for _ in range(self.args.rounds):
            for name, program in programs.items():
                got[name].append(program())
        ours = statistics.median(r[key] for r in got["tare"])
        for name, rounds in got.items():
            values = [r[key] for r in rounds]
            middle = statistics.median(values)
            ratio = (ours / middle if more_is_better else middle / ours) if name != "tare" else 1
            mib = statistics.median(r.get("mib", float("nan")) for r in rounds)
            self.results.append({"work": what, "program": name, "unit": unit, "median": middle, "least": min(values), "largest": max(values),
                                 "tare_is_faster_by": ratio, "peak_mib": mib, "rounds": len(values)})
            print(f"| {what} | {name} | {middle:.4g} {unit} | {min(values):.4g} - {max(values):.4g} | "
                  f"{'' if name == 'tare' else f'{ratio:.2f}x'} | {mib:.0f} |", flush=True)


def has(python, module):
    return bool(python) and subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model")
    p.add_argument("--tiny")
    p.add_argument("--peers", default=sys.executable)
    p.add_argument("--vllm")
    p.add_argument("--vllm-dtype", default="bfloat16")
    p.add_argument("--gguf")
    p.add_argument("--work", default="tiny,grpo,fewshot,train,generate")
    p.add_argument("--dtypes", default="f32,bf16")
    p.add_argument("--batches", default="1,32,128")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=4)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--tare", default="build/tare")
    p.add_argument("--json")
    args = p.parse_args()
    args.tare = os.path.abspath(args.tare)
    b, work = Bench(args), args.work.split(",")
    trl, torch = has(args.peers, "trl"), has(args.peers, "transformers")
    print("| work | program | median | least - largest | tare is faster by | peak MiB |\n|---|---|---|---|---|---|")
    if "learn" in work and args.tiny and trl:
        b.learn(os.path.abspath(args.tiny))
    for dtype in args.dtypes.split(","):
        if "tiny" in work and args.tiny and trl:
            b.step("tiny", os.path.abspath(args.tiny), dtype, 16, 8, 32, 32, args.steps)
        if "grpo" in work and args.model and trl:
            b.step("grpo", args.model, dtype, 4, 8, 64, 64, args.steps)
        if "fewshot" in work and args.model and trl:
            b.step("fewshot", args.model, dtype, 16, 8, 120, 8, args.steps)
        if "train" in work and args.model and torch:
            b.compare(f"train 8 x 256, {dtype}", "tokens/s", True, {"tare": lambda: b.tare_train(dtype, 8, 256, args.steps),
                                                                     "PyTorch": lambda: b.torch_train(dtype, 8, 256, args.steps)})
    for batch in (int(x) for x in args.batches.split(",")):
        if "generate" not in work or not args.model:
            break
        programs = {"tare": lambda: b.tare_generate("bf16", batch, 64, 64)}
        if args.gguf and has(args.peers, "llama_cpp"):
            programs["llama.cpp"] = lambda: b.python_generate("llamacpp_generate.py", args.peers, args.gguf, "bf16", batch, 64, 64)
        if has(args.vllm, "vllm"):
            programs[f"vLLM {args.vllm_dtype}"] = lambda: b.python_generate("vllm_generate.py", args.vllm, args.model, args.vllm_dtype, batch, 64, 64)
        b.compare(f"generate, batch {batch}, bf16", "tokens/s", True, programs)
    for name, there in (("TRL", trl), ("PyTorch", torch), ("llama.cpp", args.gguf and has(args.peers, "llama_cpp")), ("vLLM", has(args.vllm, "vllm"))):
        if not there:
            print(f"left out: {name} (not importable, or not asked for)")
    if args.json:
        with open(args.json, "w") as f:
            json.dump(b.results, f, indent=1)


main()
