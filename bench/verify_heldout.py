#!/usr/bin/env python3
"""Errors of `math`, and of Math-Verify if it is installed, on the same pairs, by kind.

    bench/verify_heldout.py PLUGIN FILE... [--venv FOLDER] [--show]

FILE: pairs with the fields of tests/verify/heldout_*.jsonl. --venv: a virtual environment with math-verify (see bench/verify_math.py);
without it only `math` is measured. --show: print the wrong pairs. Pairs marked "policy", on which graders differ, are skipped."""
import argparse, collections, json, os, subprocess, sys

from verify_math import run_ours

THEIRS = """
import json, logging, sys
from math_verify import parse, verify, ExprExtractionConfig, LatexExtractionConfig
logging.disable(logging.CRITICAL)
for line in sys.stdin:
    r = json.loads(line)
    config = ([LatexExtractionConfig(boxed_match_priority=r["boxed_priority"])] if "latex" in r["extract"] else []) + ([ExprExtractionConfig()] if "expr" in r["extract"] else [])
    try:
        gold = parse("$" + r["gold"] + "$", [LatexExtractionConfig()]) if r["gold_is_latex"] else parse(r["gold"], config)
        verdict = bool(verify(gold, parse(r["pred"], config), float_rounding=r.get("float_rounding", 6)))
    except Exception:
        verdict = False
    print(json.dumps(verdict), flush=True)
"""


def run_theirs(venv, rows):
    text = "".join(json.dumps(r) + "\n" for r in rows)
    out = subprocess.run([os.path.join(venv, "bin", "python"), "-c", THEIRS], input=text, text=True, capture_output=True, check=True)
    return [json.loads(line) for line in out.stdout.splitlines()]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("plugin")
    p.add_argument("files", nargs="+")
    p.add_argument("--venv")
    p.add_argument("--show", action="store_true")
    a = p.parse_args()
    for path in a.files:
        with open(path, encoding="utf-8") as f:
            rows = [r for r in map(json.loads, f) if not r.get("policy")]
        graders = {"ours": run_ours(a.plugin, rows)[0]}
        if a.venv:
            graders["Math-Verify"] = run_theirs(a.venv, rows)
        print(path)
        for name, verdicts in graders.items():
            count = collections.Counter()
            for r, v in zip(rows, verdicts):
                for kind in (r["kind"], "all"):
                    count[kind, "pairs"] += 1
                    count[kind, "fp"] += v and not r["expected"]
                    count[kind, "fn"] += r["expected"] and not v
                if a.show and name == "ours" and v != r["expected"]:
                    print("  false positive" if v else "  false negative", r["id"], json.dumps(r["gold"]), json.dumps(r["pred"]))
            for kind in sorted({k for k, _ in count}):
                n, fp, fn = (count[kind, c] for c in ("pairs", "fp", "fn"))
                print(f"  {name:12} {kind:12} {n:5} pairs, {fp:3} false positives, {fn:3} false negatives, {100 * (fp + fn) / n:5.2f} % wrong")


if __name__ == "__main__":
    main()
