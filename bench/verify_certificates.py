#!/usr/bin/env python3
"""Checks that "correct" verdicts of the math verifier are true. Its explanation contains both answers as parsed; this script checks
them independently: with mpmath at 60 digits, at random points if there are letters, and without the plugin's arithmetic.

    bench/verify_certificates.py TARE [--pairs N]       TARE: the program; requires mpmath (python3-mpmath, or the --venv of
                                                        bench/verify_math.py)

Pairs come from tests/verify/meaning.py (odd seeds). Answers that the checker cannot read (inequalities, sums with letters, words) are
counted separately."""
import argparse, json, os, random, re, subprocess, sys
import mpmath
from mpmath import mp, mpf, mpc

mp.dps = 60
HERE = os.path.dirname(os.path.abspath(__file__))


class Unreadable(Exception):
    pass


def read(text):
    """An S-expression as nested lists; names in quotes stay strings with their quotes."""
    tokens = re.findall(r"'[^']*'|[()]|[^\s()']+", text)
    stack = [[]]
    for t in tokens:
        if t == "(":
            stack.append([])
        elif t == ")":
            if len(stack) < 2:
                raise Unreadable(text)
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(t)
    if len(stack) != 1 or len(stack[0]) != 1:
        raise Unreadable(text)
    return stack[0][0]


FUNCTIONS = {"sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan, "cot": mpmath.cot, "arcsin": mpmath.asin, "arccos": mpmath.acos, "arctan": mpmath.atan, "sinh": mpmath.sinh, "cosh": mpmath.cosh,
             "tanh": mpmath.tanh, "arsinh": mpmath.asinh, "arcosh": mpmath.acosh, "artanh": mpmath.atanh, "ln": mpmath.log, "abs": abs, "floor": mpmath.floor, "ceil": mpmath.ceil, "!": mpmath.factorial}
RELATIONS = {"=", "!=", "<", "<=", ">", ">=", "~", "in", "notin", "subset", "==", "->", "sim"}


def value(x, letters):
    if isinstance(x, str):
        if re.fullmatch(r"-?\d+(e-?\d+)?", x):
            return mpf(x)
        if x in ("pi", "e"):
            return mpmath.pi if x == "pi" else mpmath.e
        if x == "i":
            return mpc(0, 1)
        if x in ("inf", "undefined", "empty") or x[0] in "'#" or x in RELATIONS:
            raise Unreadable(x)
        return letters.setdefault(x, mpf(random.Random("letter " + x).randint(1, 4000)) / 1021)
    op, a = x[0], x[1:]
    if op == "+":
        return sum((value(k, letters) for k in a), mpf(0))
    if op == "*":
        out = mpf(1)
        for k in a:
            out *= value(k, letters)
        return out
    if op == "^":
        return mpmath.power(value(a[0], letters), value(a[1], letters))
    if op == "root":
        b, n = value(a[0], letters), int(value(a[1], letters))
        return -mpmath.root(-b, n) if mpmath.im(b) == 0 and mpmath.re(b) < 0 else mpmath.root(b, n)
    if op == "log":
        return mpmath.log(value(a[0], letters)) / mpmath.log(value(a[1], letters))
    if op == "binom":
        return mpmath.binomial(value(a[0], letters), value(a[1], letters))
    if op in ("unit", "base", "degrees"):
        return value(a[-1], letters)
    if op == "ratio" and len(a) == 2:
        return value(a[0], letters) / value(a[1], letters)
    if op in FUNCTIONS and len(a) == 1:
        return FUNCTIONS[op](value(a[0], letters))
    raise Unreadable(op)


def plus_minus(x, sign):
    """x with every a +- b as a + b or a - b"""
    if isinstance(x, str):
        return x
    x = [plus_minus(k, sign) for k in x]
    return ["+", x[1], x[2] if sign > 0 else ["*", "-1", x[2]]] if x[0] == "+-" else x


def members(x):
    if isinstance(x, list) and x[0] in ("list", "set"):
        return [m for k in x[1:] for m in members(k)]
    if "'+-'" in repr(x):
        return [plus_minus(x, 1), plus_minus(x, -1)]
    return [x]


def assigned(x):
    """x = v: v, the last member of a chain"""
    if isinstance(x, list) and x[0] == "relation":
        signs = x[2::2]
        if signs == ["="] and isinstance(x[3], str) and isinstance(x[1], str) and re.fullmatch(r"-?\d+(e-?\d+)?", x[1]):
            return x[1]  # 5 = x
        if set(signs) <= {"=", "~"} and "=" in signs:
            return x[1 + 2 * sum(1 for s in signs if s == "=")]
        if signs == ["in"]:
            return x[3]
        raise Unreadable("relation")
    return x


def is_equation(x):
    return isinstance(x, list) and x[0] == "relation" and x[2::2] == ["="]


def proportional(a, b):
    """Compares two equations with letters: the differences of their sides must have a constant ratio at four points. None: not such equations."""
    ratios = []
    for seed in range(4):
        letters = Letters(seed)
        try:
            p, q = (value(x[1], letters) - value(x[3], letters) for x in (a, b))
        except Unreadable:
            return None
        if not letters.drawn:
            return None
        ratios.append(p / q)
    return all(abs(r - ratios[0]) <= mpf(10) ** -40 * abs(r) for r in ratios)


class Letters:
    """A value for each letter, the same for the same seed."""

    def __init__(self, seed):
        self.seed, self.drawn = seed, {}

    def setdefault(self, name, default):
        return self.drawn.setdefault(name, default + mpf(random.Random(f"{self.seed} {name}").randint(1, 999)) / 499)


def same(a, b):
    if re.search(r"'(<|<=|>|>=|!=)'", repr([a, b])):
        raise Unreadable("inequality")
    if is_equation(a) and is_equation(b) and proportional(a, b):
        return True
    a, b = assigned(a), assigned(b)
    kinds = [x[0] if isinstance(x, list) else "" for x in (a, b)]
    if "percent" in kinds:
        x, y = (k[1] if isinstance(k, list) and k[0] == "percent" else k for k in (a, b))
        return same(x, y) or (kinds[0] != kinds[1] and (same(["*", "100", x], y) or same(x, ["*", "100", y])))
    if "text" in kinds:
        raise Unreadable("text")
    if {"list", "set"} & set(kinds) or "'+-'" in repr([a, b]):
        if "tuple" in kinds:
            p, q = (k[1:] for k in (a, b))
            return len(p) == len(q) and all(same(x, y) for x, y in zip(p, q))
        p, q = members(a), members(b)
        return all(any(same(x, y) for y in q) for x in p) and all(any(same(x, y) for x in p) for y in q)
    if kinds[0] == kinds[1] and kinds[0] in ("tuple", "matrix"):
        return len(a) == len(b) and all(x == y if x in ("closed", "to-closed") else same(x, y) for x, y in zip(a[1:], b[1:]))
    letters = Letters(0)
    x, y = value(a, letters), value(b, letters)
    return abs(x - y) <= mpf(10) ** -40 * max(1, abs(x))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tare")
    p.add_argument("--pairs", type=int, default=24000, help="number of pairs; slightly under half of them are equal")
    a = p.parse_args()
    seeds = a.pairs // 116 * 2
    rows = subprocess.run([sys.executable, os.path.join(HERE, "..", "tests", "verify", "meaning.py"), "20001", str(20001 + seeds), "--step", "2"], check=True, capture_output=True).stdout
    out = subprocess.run([a.tare, "verify", "math", "--explain"], input=rows, check=True, capture_output=True).stdout.decode()
    confirmed, refuted, unread = 0, [], {}
    for line in out.splitlines():
        v = json.loads(line)
        if v["verdict"] != "correct":
            continue
        e = v["explanation"] if "explanation" in v else v.get("explain", v)
        try:
            ok = same(read(e["gold_parsed"]), read(e["answer_parsed"]))
        except (Unreadable, KeyError, ValueError, ZeroDivisionError, TypeError, OverflowError, RecursionError) as why:
            key = v["id"].split("-")[0]
            unread[key] = unread.get(key, 0) + 1
            continue
        if ok:
            confirmed += 1
        else:
            refuted.append((v["id"], e["gold_parsed"], e["answer_parsed"]))
    for r in refuted[:20]:
        print("not confirmed:", *r)
    print(f"{confirmed} verdicts confirmed, {len(refuted)} not; {sum(unread.values())} beyond this checker:", ", ".join(f"{k} {n}" for k, n in sorted(unread.items(), key=lambda z: -z[1])))
    sys.exit(bool(refuted))


if __name__ == "__main__":
    main()
