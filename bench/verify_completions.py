#!/usr/bin/env python3
"""Compares the answers extracted by `math` and `choice` from real completions with those found by a human reader.

    bench/verify_completions.py TARE

tests/verify/completions.jsonl: 500 completions by SmolLM2-135M-Instruct for rows of GSM8K, MATH-500 (320) and ARC (180) at temperature 0.7,
half of them cut at 180 tokens. first, second: the answer as read in two passes over the last lines of each; null: none is given; "?": unclear."""
import json, os, subprocess, sys
from collections import Counter

HERE = os.path.dirname(os.path.abspath(__file__))


def extracted(tare, verifier, rows):
    lines = "".join(json.dumps({"id": r["id"], "completion": r["completion"], "answer": "A" if verifier == "choice" else "1", **({"letters": "ABCDEFGHIJ"[: r["options"]]} if verifier == "choice" else {})}) + "\n" for r in rows)
    out = subprocess.run([tare, "verify", verifier], input=lines, text=True, capture_output=True, check=True).stdout
    return [json.loads(line).get("extracted") or "" for line in out.splitlines()]


def equal(tare, pairs):
    """Compares the extracted answer with the reader's answer, as the verifier does."""
    lines = "".join(json.dumps({"id": k, "completion": "\\boxed{%s}" % took, "answer": said, "gold_is_latex": True}) + "\n" for k, (said, took) in enumerate(pairs))
    out = subprocess.run([tare, "verify", "math"], input=lines, text=True, capture_output=True, check=True).stdout
    return [json.loads(line)["verdict"] == "correct" for line in out.splitlines()]


def main():
    tare = sys.argv[1]
    with open(os.path.join(HERE, "..", "tests", "verify", "completions.jsonl"), encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    print(f"{len(rows)} completions; the two readings differ on {sum(r['first'] != r['second'] for r in rows)}:", " ".join(r["id"] for r in rows if r["first"] != r["second"]))
    for verifier in ("math", "choice"):
        mine = [r for r in rows if ("options" in r) == (verifier == "choice")]
        took = extracted(tare, verifier, mine)
        right = equal(tare, [(r["first"] or "none", t) for r, t in zip(mine, took)]) if verifier == "math" else [r["first"] == t for r, t in zip(mine, took)]
        count, shown = Counter(), []
        for r, t, same in zip(mine, took, right):
            if r["first"] != r["second"] or r["first"] == "?":
                what = "unclear to the reader"
            elif r["first"] is None:
                what = "neither finds one" if not t else "took one, the reader sees none (%s)" % ("cut off" if r["finish"] == "length" else "ended")
            else:
                what = "the reader's answer" if same else "nothing, the reader sees one" if not t else "another than the reader's"
            count[what] += 1
            if what.startswith(("nothing", "another")):
                shown.append(f"  {r['id']}: reader {r['first']}, took {t!r}")
        print(f"\n{verifier}: {len(mine)}")
        for what, n in count.most_common():
            print(f"{n:5} {what}")
        print("\n".join(shown))


if __name__ == "__main__":
    main()
