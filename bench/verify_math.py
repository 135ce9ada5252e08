#!/usr/bin/env python3
"""Compares the math verifier with Math-Verify on the same rows in the same run: pairs per second and core, latencies, errors.

    bench/verify_math.py PLUGIN [--cases FOLDER] [--rows N] [--venv FOLDER]
    bench/verify_math.py PLUGIN --folds [--meaning FIRST:END]

PLUGIN is the compiled math.so; FOLDER holds realistic.jsonl (shared/data/verify/math). Math-Verify is installed with pip into a virtual
environment (created if missing), and this file runs it there. Times are CPU seconds of one thread, including extraction.

--folds: errors by class and fold (five, by a hash of the row's id) over all four files of FOLDER, then over pairs generated from meanings
(tests/verify/meaning.py), even and odd seeds separately. The rules were written with the files and the even seeds in view; only the figure
for odd seeds is held out."""
import argparse, collections, ctypes, hashlib, json, os, random, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDS = 5

PINNED = ["math-verify==0.9.0", "antlr4-python3-runtime==4.13.2", "latex2sympy2_extended==1.11.0", "sympy==1.14.0"]


class Text(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_int64)]


class Answer(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("prompt", Text), ("completion", Text), ("answer", Text),
                ("row", Text), ("deadline_ns", ctypes.c_int64)]


class Verdict(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("code", ctypes.c_int32), ("reward", ctypes.c_double), ("extracted", ctypes.c_void_p),
                ("capacity", ctypes.c_int64), ("size", ctypes.c_int64), ("reason", ctypes.c_char_p)]


class Param(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("fallback", ctypes.c_char_p), ("doc", ctypes.c_char_p), ("unit", ctypes.c_char_p),
                ("choices", ctypes.POINTER(ctypes.c_char_p)), ("min", ctypes.c_double), ("max", ctypes.c_double), ("type", ctypes.c_int32),
                ("flags", ctypes.c_uint32)]


class Verifier(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("create", ctypes.c_void_p), ("destroy", ctypes.c_void_p),
                ("verify", ctypes.c_void_p), ("explain", ctypes.c_void_p)]


class Descriptor(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("kind", ctypes.c_int32), ("name", ctypes.c_char_p), ("version", ctypes.c_char_p),
                ("summary", ctypes.c_char_p), ("license", ctypes.c_char_p), ("source", ctypes.c_char_p), ("params", ctypes.POINTER(Param)),
                ("n_params", ctypes.c_uint32), ("param_size", ctypes.c_uint32), ("needs", ctypes.c_uint32), ("threading", ctypes.c_uint32),
                ("functions", ctypes.POINTER(Verifier))]


class Plugin(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("abi_minor_built", ctypes.c_uint32), ("abi_minor_needed", ctypes.c_uint32),
                ("n_descriptors", ctypes.c_uint32), ("descriptors", ctypes.POINTER(ctypes.POINTER(Descriptor)))]


def default(param):
    """The parameter's default as the 8 bytes of a tare_value (no string parameters here)."""
    text = param.fallback.decode()
    if param.type == 1:
        return int(text == "true")
    if param.type == 5:
        k = 0
        while param.choices[k].decode() != text:
            k += 1
        return k
    return int(text)


def run_ours(path, rows):
    library = ctypes.CDLL(path)
    library.tare_plugin_v1.restype = ctypes.POINTER(Plugin)
    descriptor = library.tare_plugin_v1(None, None).contents.descriptors[0].contents
    functions = descriptor.functions.contents
    values = (ctypes.c_int64 * descriptor.n_params)(*[default(descriptor.params[i]) for i in range(descriptor.n_params)])
    create = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p)(functions.create)
    verify = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)(functions.verify)
    self = ctypes.c_void_p()
    assert create(None, values, ctypes.byref(self), None) == 0
    keep, answers, verdicts = [], [], []
    for r in rows:
        fields = {k: r[k] for k in ("gold_is_latex", "extract", "boxed_priority", "strict", "float_rounding", "allow_set_relation_comp") if k in r}
        gold, pred, row = r["gold"].encode(), r["pred"].encode(), json.dumps(fields).encode()
        extracted = ctypes.create_string_buffer(512)
        a = Answer(ctypes.sizeof(Answer), 0, Text(None, 0), Text(pred, len(pred)), Text(gold, len(gold)), Text(row, len(row)), 0)
        v = Verdict(ctypes.sizeof(Verdict), 0, 0.0, ctypes.addressof(extracted), 512, 0, None)
        keep += [gold, pred, row, extracted]
        answers.append(a), verdicts.append(v)
    n = len(rows)
    pa = (ctypes.POINTER(Answer) * n)(*[ctypes.pointer(a) for a in answers])
    pv = (ctypes.POINTER(Verdict) * n)(*[ctypes.pointer(v) for v in verdicts])
    each = []
    for i in range(n):  # latencies, including Python's call overhead; also a warm-up
        t = time.thread_time_ns()
        verify(self, ctypes.byref(pa, i * 8), ctypes.byref(pv, i * 8), 1, None)
        each.append((time.thread_time_ns() - t) / 1e6)
    t = time.thread_time_ns()
    assert verify(self, pa, pv, n, None) == 0
    return [v.code == 1 for v in verdicts], each, (time.thread_time_ns() - t) / 1e9


def run_theirs(rows):
    import logging
    from math_verify import parse, verify, ExprExtractionConfig, LatexExtractionConfig
    logging.disable(logging.CRITICAL)
    verdicts, each = [], []
    start = time.process_time_ns()
    for r in rows:
        t = time.process_time_ns()
        latex = LatexExtractionConfig(boxed_match_priority=r["boxed_priority"])
        pred_config = ([latex] if "latex" in r["extract"] else []) + ([ExprExtractionConfig()] if "expr" in r["extract"] else [])
        gold = parse("$" + r["gold"] + "$" if r["gold_is_latex"] else r["gold"], [LatexExtractionConfig()] if r["gold_is_latex"] else pred_config)
        verdicts.append(bool(verify(gold, parse(r["pred"], pred_config))))
        each.append((time.process_time_ns() - t) / 1e6)
    return verdicts, each, (time.process_time_ns() - start) / 1e9


def show(name, rows, result):
    verdicts, each, seconds = result
    each = sorted(each)
    scored = [(v, r.get("truth", r["expected"])) for v, r in zip(verdicts, rows) if not r.get("policy")]
    fp, fn = sum(v and not t for v, t in scored), sum(t and not v for v, t in scored)
    n = len(rows)
    print(f"{name:12} {n / seconds:10.0f} pairs/s  mean {1e6 * seconds / n:9.1f} us  p50 {1e3 * each[n // 2]:9.1f}  p99 {1e3 * each[n * 99 // 100]:9.1f}  "
          f"max {1e3 * each[-1]:9.1f} us  wrong {fp + fn} of {len(scored)} (false positives {fp}, false negatives {fn})")
    return n / seconds


def wrong(rows, verdicts):
    """(rows that count, false positives, false negatives)"""
    scored = [(v, r.get("truth", r["expected"])) for v, r in zip(verdicts, rows) if not r.get("policy")]
    return len(scored), sum(v and not t for v, t in scored), sum(t and not v for v, t in scored)


def show_classes(title, plugin, rows, key):
    verdicts, _, seconds = run_ours(plugin, rows)
    classes = collections.defaultdict(list)
    for r, v in zip(rows, verdicts):
        classes[key(r)].append((r, v))
    print(f"\n{title}: {len(rows)} pairs, {len(rows) / seconds:.0f} a second")
    print(f"{'class':24} {'pairs':>6} {'fp':>4} {'fn':>4} {'wrong':>8}   by fold")
    for name, pairs in sorted(classes.items()) + [("all", list(zip(rows, verdicts)))]:
        n, fp, fn = wrong(*zip(*pairs))
        folds = []
        for k in range(FOLDS):
            part = [p for p in pairs if int(hashlib.sha256(p[0]["id"].encode()).hexdigest(), 16) % FOLDS == k]
            m, a, b = wrong(*zip(*part)) if part else (0, 0, 0)
            folds.append(f"{100 * (a + b) / m:.2f}" if m else "-")
        if n:
            print(f"{name:24} {n:6} {fp:4} {fn:4} {100 * (fp + fn) / n:7.2f}%   {' '.join(folds)}")


def show_folds(a):
    rows = []
    for name in ("realistic", "graders", "mathverify", "adversarial"):
        with open(os.path.join(a.cases, name + ".jsonl"), encoding="utf-8") as f:
            for r in map(json.loads, f):
                if "pred" not in r:
                    r["pred"] = "".join(piece * count for piece, count in r["pred_parts"])
                rows.append({**r, "file": name})
    show_classes("shared files", a.plugin, rows, lambda r: r["file"] + (" " + r["kind"].split(":")[0] if r["file"] == "realistic" else ""))
    first, end = map(int, a.meaning.split(":"))
    for half, start in (("even seeds, for development", first + first % 2), ("odd seeds, held out", first + 1 - first % 2)):
        lines = subprocess.run([sys.executable, os.path.join(HERE, "..", "tests", "verify", "meaning.py"), str(start), str(end), "--step", "2"], check=True, capture_output=True).stdout
        show_classes("by meaning, " + half, a.plugin, [json.loads(line) for line in lines.splitlines()], lambda r: r["kind"])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("plugin")
    p.add_argument("--cases", default=os.path.join(os.path.dirname(__file__), "..", "..", "shared", "data", "verify", "math"))
    p.add_argument("--rows", type=int, default=1000, help="number of rows, selected with a fixed seed; 0: all")
    p.add_argument("--venv", default="/tmp/tare-math-verify")
    p.add_argument("--folds", action="store_true", help="errors by class and fold instead of times")
    p.add_argument("--meaning", default="0:400", help="seeds of tests/verify/meaning.py for --folds")
    p.add_argument("--theirs", action="store_true", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.folds:
        show_folds(a)
        return
    with open(os.path.join(a.cases, "realistic.jsonl"), encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    if a.rows:
        rows = random.Random(1).sample(rows, min(a.rows, len(rows)))
    if a.theirs:
        json.dump(run_theirs(rows), sys.stdout)
        return
    python = os.path.join(a.venv, "bin", "python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", a.venv], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PINNED], check=True)
    ours = show("tare math", rows, run_ours(a.plugin, rows))
    out = subprocess.run([python, __file__, a.plugin, "--cases", a.cases, "--rows", str(a.rows), "--theirs"], check=True, capture_output=True)
    theirs = show("Math-Verify", rows, json.loads(out.stdout))
    print(f"{ours / theirs:.0f} times as many pairs a second and core")


if __name__ == "__main__":
    main()
