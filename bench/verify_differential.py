#!/usr/bin/env python3
"""Compares three graders on the same generated pairs: `math`, Math-Verify, and sympy on the generator's meaning. Reports where they differ.

    tests/verify/pairs.py 100500 --seed 25 > PAIRS
    VENV/bin/python bench/verify_differential.py sympy PAIRS OUT          one verdict per line; continues an interrupted run
    VENV/bin/python bench/verify_differential.py math-verify PAIRS OUT
    bench/verify_differential.py report PLUGIN PAIRS SYMPY MATH_VERIFY [--draw 300 [--even] --table FILE]

VENV holds math-verify (bench/verify_math.py makes one). sympy does not read the LaTeX: it compares the expressions written by the generator,
by exact arithmetic, otherwise to 30 digits, with letters at four points. Pairs that a grader has not reached are skipped. Every disagreement
is classified by a rule on its text; --draw writes some as a table, with the correct verdict and the reason; --even: the same number of each
class, as available."""
import argparse, collections, json, os, random, re, sys

sys.set_int_max_str_digits(0) if hasattr(sys, "set_int_max_str_digits") else None

# ---------------------------------------------------------------- graders


def sympy_judge():
    import sympy
    names = {k: getattr(sympy, k) for k in dir(sympy) if not k.startswith("_")}
    x, y, n, t, a, k, z = symbols = sympy.symbols("x y n t a k z", positive=True)
    names.update({str(s): s for s in symbols})
    points = [dict(zip(symbols, [sympy.Rational(p, q) for p, q in row])) for row in
              ([(3, 7), (5, 3), (2, 9), (7, 4), (11, 5), (13, 8), (1, 6)], [(17, 10), (2, 5), (9, 7), (1, 3), (5, 8), (3, 11), (19, 12)],
               [(23, 9), (6, 11), (4, 3), (8, 5), (2, 7), (15, 13), (5, 2)], [(1, 8), (21, 16), (7, 6), (10, 9), (3, 2), (4, 9), (12, 7)])]

    def scalars(a, b):
        d = sympy.sympify(a - b)
        if d.has(sympy.zoo, sympy.nan, sympy.oo):
            return False
        if d.is_Rational:
            return d == 0
        if not d.free_symbols:
            return abs(d.evalf(40)) < sympy.Float("1e-30")
        return all(abs(d.subs(p).evalf(40)) < sympy.Float("1e-25") for p in points)

    def equal(a, b):
        if isinstance(a, sympy.Eq) and isinstance(b, sympy.Eq):
            ratios = [((a.lhs - a.rhs).subs(p), (b.lhs - b.rhs).subs(p)) for p in points]
            return all(ratios[0][0] * v == ratios[0][1] * u for u, v in ratios)
        if isinstance(a, sympy.MatrixBase):
            return a.shape == b.shape and all(scalars(u, v) for u, v in zip(a, b))
        if isinstance(a, (sympy.Set, sympy.Tuple)):
            return a == b
        return scalars(a, b)
    return lambda r: bool(equal(eval(r["gold_sympy"], dict(names)), eval(r["pred_sympy"], dict(names))))


def math_verify_judge():
    import logging
    from math_verify import parse, verify, LatexExtractionConfig
    logging.disable(logging.CRITICAL)
    config, read = [LatexExtractionConfig()], {}

    def parsed(text):
        if text not in read:
            read[text] = parse("$" + text + "$", config, parsing_timeout=2)
        return read[text]
    return lambda r: bool(verify(parsed(r["gold"]), parsed(r["pred"]), timeout_seconds=2))


def run_judge(judge, pairs, out):
    done = sum(1 for _ in open(out)) if os.path.exists(out) else 0
    with open(pairs, encoding="utf-8") as f, open(out, "a", encoding="utf-8") as o:
        for k, line in enumerate(f):
            if k < done:
                continue
            r = json.loads(line)
            try:
                verdict = judge(r)
            except Exception as e:
                verdict = None
                if k - done < 20:
                    print(r["id"], type(e).__name__, e, file=sys.stderr)
            o.write(json.dumps([r["id"], verdict]) + "\n")
            if k % 100 == 0:
                o.flush()


# ---------------------------------------------------------------- classes

# The first matching rule is the class of a disagreement; statements about Math-Verify are based on its parse of such texts.
CLASSES = [
    ("log_10", r"\\log_1\d\(", "1 is no base: base 10 is meant, where TeX by the letter takes the first digit; Math-Verify reads log(100, 1)"),
    ("repeating decimal", r"\\overline\{\d", "the bar marks the period, an exact fraction; Math-Verify reads a product with a name, or nothing"),
    ("degrees", r"\^\{?\\circ", "an angle in degrees; Math-Verify drops the sign and takes radians, sin(60)"),
    ("value of an application", r"(?:f\(2\)|P\(A\)) ?=", "name = value; Math-Verify solves both equations, finds nothing for f(2), and calls any two of them equal, or compares the equation with the value"),
    ("two letters as a name", r"AB ?=", "AB = value; Math-Verify takes a product a b"),
    ("braced number", r"(?:^|[ ,(\[{=&])\{[-+]?\d+\}", "braces only group; Math-Verify makes a set of one of {26}"),
    ("product by brackets", r"\d\(\d+\)", "2(32) is a product; Math-Verify adds: 34"),
    ("spaced thousands", r"\d(?:\\,|\\ | |,\\!|\{,\})\d{3}", "a blank between groups of three digits; Math-Verify adds the groups: 1 287 is 288"),
    ("thousands after a name", r"= ?\d{1,3},\d{3}", "1,610 is one number; after an equals sign Math-Verify makes the set {1, 610}"),
    ("imaginary unit", r"(?<![a-z\\])i(?![a-z])", "i is the imaginary unit; Math-Verify takes a letter unless the text hints at complex numbers, so i^2 stays"),
    ("touching intervals", r"\\cup", "(a, b] and (b, c) are (a, c); Math-Verify compares ends that it has not evaluated, or takes the last interval, and calls unions equal whose outer ends differ"),
    ("logarithm over a number", r"\\ln 2/", "\\ln 2/n is (\\ln 2)/n here; Math-Verify divides inside: log(2/n)"),
    ("membership", r"x\\in ", "x in S names the set S; Math-Verify compares an equation with ends that it has not evaluated"),
    ("pair with its names", r"\(x,y\)=", "(x, y) = (a, b) is (a, b); Math-Verify compares ends of an interval that it has not evaluated"),
]


WHY = {name: why for name, _, why in CLASSES} | {"unexplained": "?"}


def classify(r):
    for name, pattern, why in CLASSES:
        if re.search(pattern, r["gold"]) or re.search(pattern, r["pred"]):
            return name, why
    return "unexplained", "?"


def cell(text):
    return "`" + text.replace("|", "\\|") + "`"


def evenly(differ, n):
    """Selects n of them: one of each class in turn, until a class is exhausted."""
    classes = collections.defaultdict(list)
    for d in random.Random(25).sample(differ, len(differ)):
        classes[d[4]].append(d)
    drawn = []
    while len(drawn) < min(n, len(differ)):
        for name in sorted(classes):
            if classes[name] and len(drawn) < n:
                drawn.append(classes[name].pop())
    return sorted(drawn, key=lambda d: (d[4], d[0]["id"]))


def report(a):
    from verify_math import run_ours
    plugin, pairs, *verdicts = a.files
    with open(pairs, encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    sympy_says, theirs = ({k: bool(v) for k, v in map(json.loads, open(p, encoding="utf-8"))} for p in verdicts)
    rows = [r for r in rows if r["id"] in sympy_says and r["id"] in theirs]
    ours = run_ours(plugin, [{"gold": r["gold"], "pred": "$\\boxed{%s}$" % r["pred"], "gold_is_latex": True, "extract": ["latex", "expr"], "boxed_priority": 0} for r in rows])[0]
    count, classes, differ = collections.Counter(), collections.defaultdict(collections.Counter), []
    for r, o in zip(rows, ours):
        s, t = sympy_says[r["id"]], theirs[r["id"]]
        for name, v in (("math", o), ("Math-Verify", t)):
            count[name, "false positives"] += v and not s
            count[name, "false negatives"] += s and not v
        if not o == t == s:
            name, why = classify(r)
            classes[name]["both wrong" if o == t else "math right" if o == s else "Math-Verify right"] += 1
            differ.append((r, o, t, s, name, why))
    print(f"{len(rows)} pairs, {len({r[k] for r in rows for k in ('gold', 'pred')})} texts; {len(differ)} disagreements")
    for name in ("math", "Math-Verify"):
        print(f"{name:12} against sympy: {count[name, 'false positives']} false positives, {count[name, 'false negatives']} false negatives")
    for name, c in sorted(classes.items(), key=lambda x: -sum(x[1].values())):
        print(f"{name:22} {sum(c.values()):6}   " + ", ".join(f"{k} {v}" for k, v in c.items()))
        if name == "unexplained":
            for r, o, t, s, n, _ in [d for d in differ if d[4] == name][:30]:
                print("    ", r["gold"], "|", r["pred"], "| math", o, "| Math-Verify", t, "| sympy", s)
    if a.table:
        drawn = evenly(differ, a.draw) if a.even else random.Random(25).sample(differ, min(a.draw, len(differ)))
        word = {True: "equal", False: "different"}
        with open(a.table, "w", encoding="utf-8") as f:
            f.write(f"# {len(differ)} disagreements on {len(rows)} generated pairs, {len(drawn)} of them one by one\n\n")
            f.write("Written by `bench/verify_differential.py report`, which says how the pairs come about and how to repeat this. sympy judges what the generator meant and not "
                    "the text: it is the reference.\n\n| | false positives | false negatives |\n|---|---|---|\n")
            for name in ("math", "Math-Verify"):
                f.write(f"| {name} | {count[name, 'false positives']} | {count[name, 'false negatives']} |\n")
            f.write("\n| class | pairs | who is right | why |\n|---|---|---|---|\n")
            for name, c in sorted(classes.items(), key=lambda x: -sum(x[1].values())):
                f.write(f"| {name} | {sum(c.values())} | {', '.join(f'{k} {v}' for k, v in c.items())} | {WHY[name]} |\n")
            f.write(f"\nThe drawn ones ({'an equal share of each class, and' if a.even else ''} at random, by a fixed seed); the class says why.\n\n".replace("( ", "("))
            f.write("| gold | answer | math | Math-Verify | sympy | right | class |\n|---|---|---|---|---|---|---|\n")
            for r, o, t, s, name, why in drawn:
                right = "nobody" if o == t != s else "math" if o == s else "Math-Verify"
                f.write(f"| {cell(r['gold'])} | {cell(r['pred'])} | {word[o]} | {word[t]} | {word[s]} | {right} | {name} |\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["sympy", "math-verify", "report"])
    p.add_argument("files", nargs="+")
    p.add_argument("--draw", type=int, default=0)
    p.add_argument("--even", action="store_true")
    p.add_argument("--table")
    a = p.parse_args()
    if a.what == "report":
        report(a)
    else:
        run_judge(sympy_judge() if a.what == "sympy" else math_verify_judge(), *a.files)


if __name__ == "__main__":
    main()
