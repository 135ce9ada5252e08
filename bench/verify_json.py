"""Compares the verifier json with the standard's own tests, and with Python's jsonschema on random schemas and values.

  verify_json.py SUITE [--tare build/tare] [--venv FOLDER] [--random 3000] [--seed 1]

SUITE: a checkout of json-schema-org/JSON-Schema-Test-Suite. FOLDER: an environment with jsonschema (pip install jsonschema); without it only
the suite runs.
"""
import argparse
import collections
import glob
import json
import os
import random
import subprocess
import sys


def judge(tare, rows):
    """[verdict object], or the error message"""
    lines = "".join(json.dumps({"completion": json.dumps(value), "answer": "", "schema": schema}) + "\n" for schema, value in rows)
    done = subprocess.run([tare, "verify", "json"], input=lines, capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip().split("verify: ")[-1]
    return [json.loads(line) for line in done.stdout.splitlines()]


def suite(tare, folder):
    right, refused, wrong = 0, collections.Counter(), []
    for path in sorted(glob.glob(os.path.join(folder, "tests/draft2020-12/*.json"))):
        for group in json.load(open(path)):
            tests = group["tests"]
            got = judge(tare, [(group["schema"], t["data"]) for t in tests])
            if isinstance(got, str):
                refused[got] += len(tests)
                continue
            for test, verdict in zip(tests, got):
                if (verdict["reward"] == 1) == test["valid"]:
                    right += 1
                else:
                    wrong.append((os.path.basename(path), group["description"], test["description"], verdict["reason"]))
    print(f"suite: {right} right, {len(wrong)} wrong, {sum(refused.values())} with a schema that is refused")
    for message, n in refused.most_common():
        print(f"  {n:4d} {message[:110]}")
    for case in wrong:
        print("  WRONG", *case)
    return not wrong


def value(r, depth):
    kind = r.randint(0, 7 if depth else 5)
    if kind == 6:
        return [value(r, depth - 1) for _ in range(r.randint(0, 3))]
    if kind == 7:
        return {r.choice("abcx"): value(r, depth - 1) for _ in range(r.randint(0, 3))}
    return [None, r.random() < 0.5, r.randint(-3, 9), r.choice([0.5, 1.0, 2.5, 1e300]), r.choice(["", "a", "ab", "\u00e4b"]), r.randint(0, 2)][kind]


def schema(r, depth):
    s = {}
    for _ in range(r.randint(1, 3)):
        k = r.choice(["type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "multipleOf", "minLength", "maxLength", "pattern", "items", "minItems",
                      "uniqueItems", "prefixItems", "contains", "properties", "required", "additionalProperties", "patternProperties", "propertyNames",
                      "minProperties", "dependentRequired", "allOf", "anyOf", "oneOf", "not", "if", "maxContains"])
        sub = lambda: schema(r, depth - 1) if depth and r.random() < 0.8 else r.choice([True, False, {"type": "string"}, {"minimum": 1}])
        if k == "type":
            s[k] = r.sample(["null", "boolean", "object", "array", "number", "integer", "string"], r.randint(1, 4))
        elif k in ("enum", "const"):
            s[k] = value(r, 1) if k == "const" else [value(r, 1) for _ in range(4)]
        elif k in ("minimum", "maximum", "exclusiveMinimum"):
            s[k] = r.choice([-1, 0, 1, 2.5])
        elif k == "multipleOf":
            s[k] = r.choice([1, 2, 0.5, 0.1])
        elif k == "pattern":
            s[k] = r.choice(["^a", "b$", "[a-b]{2}", "^$"])
        elif k in ("items", "contains", "additionalProperties", "propertyNames", "not"):
            s[k] = sub()
        elif k == "uniqueItems":
            s[k] = True
        elif k in ("prefixItems", "allOf", "anyOf", "oneOf"):
            s[k] = [sub() for _ in range(r.randint(1, 3))]
        elif k in ("properties", "patternProperties"):
            s[k] = {r.choice("abx"): sub() for _ in range(2)}
        elif k == "required":
            s[k] = r.sample("abx", r.randint(0, 2))
        elif k == "dependentRequired":
            s[k] = {r.choice("ab"): [r.choice("abx")]}
        elif k == "if":
            s.update({"if": sub(), "then": sub(), "else": sub()})
        else:
            s[k] = r.randint(0, 2)
    return s


RANDOM = """
import json, sys, jsonschema
for line in sys.stdin:
    schema, value = json.loads(line)
    print(int(jsonschema.Draft202012Validator(schema).is_valid(value)))
"""


def differences(tare, python, n, seed):
    r = random.Random(seed)
    rows = []
    while len(rows) < n:
        s = schema(r, 2)
        rows += [(s, value(r, 2)) for _ in range(4)]
    want = subprocess.run([python, "-c", RANDOM], input="".join(json.dumps(row) + "\n" for row in rows), capture_output=True, text=True, check=True).stdout.split()
    got = judge(tare, rows)
    if isinstance(got, str):
        sys.exit(got)
    wrong = [(row, w, g) for row, w, g in zip(rows, want, got) if g["reward"] != int(w)]
    print(f"random: {len(rows)} values, {want.count('1')} valid, {len(wrong)} judged otherwise than by jsonschema")
    for (s, v), w, g in wrong[:10]:
        print("  ", json.dumps(s), json.dumps(v), "jsonschema:", w, "tare:", g["verdict"], g["reason"])
    return not wrong


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("suite")
    p.add_argument("--tare", default="build/tare")
    p.add_argument("--venv")
    p.add_argument("--random", type=int, default=3000)
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    fine = suite(a.tare, a.suite)
    if a.venv:
        fine &= differences(a.tare, os.path.join(a.venv, "bin/python"), a.random, a.seed)
    sys.exit(not fine)


main()
