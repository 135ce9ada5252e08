#!/usr/bin/env python3
"""Pairs of a gold answer and a completion, written by meaning: a value, ways in which people and models write it, near misses, text around it.

    tests/verify/meaning.py FROM TO [--each N]     one JSON line a pair, in the fields of shared/data/verify/math

A seed gives one value of each class and N pairs of it, equal and unequal. The label follows from the construction: two spellings of one
value are equal, a spelling of a near miss is not. Even seeds are for development, odd ones for reporting.
A spelling is LaTeX (a str) or plain text (Plain), which stands outside of $..$."""
import argparse, json, random, sys
from fractions import Fraction as F


class Plain(str):
    pass


# ---------------------------------------------------------------- spellings of numbers

def frac(x, r=None):
    """x as \\frac, in one of the usual forms."""
    if x.denominator == 1:
        return str(x.numerator)
    n, d, s = abs(x.numerator), x.denominator, "-" if x < 0 else ""
    forms = ["%s\\frac{%d}{%d}", "%s\\dfrac{%d}{%d}", "%s\\tfrac{%d}{%d}", "%s%d/%d"] if r else ["%s\\frac{%d}{%d}"]
    if r and n < 10 and d < 10:
        forms += ["%s\\frac%d%d", "%s\\frac %d %d"]
    return (r.choice(forms) if r else forms[0]) % (s, n, d)


def decimal(x):
    """x as a finite decimal, or None."""
    d, k = x.denominator, 0
    while d % 10 == 0:
        d //= 10
    while x.denominator and (x * 10**k).denominator != 1:
        k += 1
        if k > 8:
            return None
    n = abs(int(x * 10**k))
    s = str(n).rjust(k + 1, "0")
    return ("-" if x < 0 else "") + (s[:-k] + "." + s[-k:] if k else s)


def groups(n, mark):
    s = str(abs(n))
    out = []
    while len(s) > 3:
        out.insert(0, s[-3:])
        s = s[:-3]
    return ("-" if n < 0 else "") + mark.join([s] + out)


def poly(coefficients, x="x"):
    """Highest degree first; zero terms left out."""
    out, degree = "", len(coefficients) - 1
    for i, c in enumerate(coefficients):
        k = degree - i
        if not c:
            continue
        body = ("" if abs(c) == 1 and k else str(abs(c))) + ("" if not k else x if k == 1 else "%s^%s" % (x, k if k < 10 else "{%d}" % k))
        out += ("-" if c < 0 else "+" if out else "") + body
    return out or "0"


def spaced(s, r):
    """Blanks about signs, as some write."""
    return s if r.random() < .5 else s.replace("+", " + ").replace("=", " = ")


def sign(n):
    return "%+d" % n if n else ""


def matrix(rows, r=None, entry=str):
    body = " \\\\ ".join(" & ".join(entry(x) for x in row) for row in rows)
    kind = r.choice(["pmatrix", "bmatrix", "pmatrix", "array"]) if r else "pmatrix"
    if kind == "array":
        return "\\left[\\begin{array}{%s}%s\\end{array}\\right]" % ("c" * len(rows[0]), body)
    return "\\begin{%s}%s\\end{%s}" % (kind, body, kind)


def mul(a, b):
    return [[sum(a[i][k] * b[k][j] for k in range(len(b))) for j in range(len(b[0]))] for i in range(len(a))]


# ---------------------------------------------------------------- classes: (spellings of one value, near misses)

def locale(r):
    n, cents = r.choice([r.randint(1000, 9999), r.randint(10000, 9999999)]), r.choice([0, 0, r.randint(1, 99)])
    def forms(n, cents):
        whole = [groups(n, m) for m in (",", "{,}", ",\\!", "\\,", "\\ ", "\\;", "~", "\u2009", "\u202f", " ")] + [str(n)]
        tail = ".%02d" % cents if cents else ""
        out = [w + tail for w in whole] + [Plain(groups(n, m) + tail) for m in (",", " ", "\u2009", "\u202f", "\u00a0", "")]
        if cents:
            out += [Plain(groups(n, m) + ",%02d" % cents) for m in ("", " ", "\u202f", ".")]
            out += [w + "{,}%02d" % cents for w in (str(n), groups(n, "\\,"))]
        money = [str(n) + tail, groups(n, ",") + tail]
        out += ["\\$" + w for w in money] + [w + "\\$" for w in money] + [w + "\\text{ dollars}" for w in money]
        out += ["\\text{\\$}" + money[1], "\u20ac" + money[0], "\\text{USD }" + money[0]]
        out += [Plain("$" + w) for w in money] + [Plain(w + " \u20ac") for w in money] + [Plain("\u00a3" + money[1]), Plain(money[1] + " dollars")]
        return [f for f in out if "$" not in f or "\\$" in f or isinstance(f, Plain)]
    def of_kind(forms):
        """Amounts in two currencies differ: keep one."""
        keep = r.choice(["$", "\u20ac"])
        other = {"$": ("\u20ac", "\u00a3"), "\u20ac": ("$", "\u00a3", "dollar", "USD")}[keep]
        return [f for f in forms if not any(o in f for o in other)]
    return of_kind(forms(n, cents)), of_kind(forms(n + r.choice([1, -1, 1000, 10]), cents) + forms(n * 10, cents) + forms(n, cents + 1 if cents < 99 else 7))


def number(r):
    x = F(r.randint(-40, 40), r.choice([1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 20, 25]))
    def forms(x):
        out = [frac(x, r), frac(x), Plain(str(x)), frac(x).replace("-\\frac{", "\\frac{-", 1)]
        if decimal(x):
            out += [decimal(x), Plain(decimal(x)), decimal(x) + ("0" if "." in decimal(x) else ".0")]
            if abs(x) < 1 and "." in decimal(x):
                out.append(decimal(x).replace("0.", ".", 1))
        if abs(x) > 1 and x.denominator > 1:
            w, rest = divmod(abs(x.numerator), x.denominator)
            s = "-" if x < 0 else ""
            out += [s + m % (w, rest, x.denominator) for m in ("%d\\frac{%d}{%d}", "%d \\frac{%d}{%d}", "%d\\,\\frac{%d}{%d}", "%d\\;\\dfrac{%d}{%d}", "%d\\ \\tfrac{%d}{%d}", "%d~\\frac{%d}{%d}", "%d{\\frac{%d}{%d}}", "{%d}\\frac{%d}{%d}")]
            out += [Plain(s + "%d %d/%d" % (w, rest, x.denominator)), s + "%d\\ %d/%d" % (w, rest, x.denominator), s + "%d\\text{ and }\\frac{%d}{%d}" % (w, rest, x.denominator)][:2]
            out += [s + "\\left(%d + \\frac{%d}{%d}\\right)" % (w, rest, x.denominator), Plain(s + "%d\u00a0%d\u2044%d" % (w, rest, x.denominator))]
        out += ["\\left(%s\\right)" % frac(x), "{%s}" % frac(x), "%d \\cdot %s" % (2, frac(x / 2)) if x > 0 else frac(x), "+" + frac(x) if x > 0 else frac(x)]
        return out
    return forms(x), forms(x + F(1, x.denominator)) + forms(-x if x else F(1)) + (forms(1 / x) if x and abs(x) != 1 else [])


def chain(r):
    """The value at the end of a chain of equalities, or in front of its approximation."""
    a, b = r.randint(2, 60), r.randint(2, 60)
    v = r.choice(["x", "y", "n", "t", "k", "S", "A", "P", "f(%d)" % a, "g(x)", "|AB|", "x_{\\max}", "a_%d" % b, "P(A)", "P(X=3)", "P(A \\cap B)", "P(\\text{win})", "P(X > 2)", "\\angle ABC", "\\text{Area}", "S_{\\triangle ABC}",
                  "\\text{the number of ways}", "\\#S", "\\operatorname{Var}(X)", "E[X]", "f\\left(\\frac{1}{2}\\right)", "\\overline{AB}", "\\theta"])
    def of(value, wrong):
        s = frac(value)
        approx = "%.3f" % float(value)
        out = [s, "%s = %s" % (v, s), "= %s" % s, "%s = %s" % (s, s), "%s = %d + %s = %s" % (v, a, frac(value - a), s), "\\frac{%d}{%d} = %s" % ((value * 6).numerator, (value * 6).denominator * 6, s), "%s = \\boxed{%s}" % (v, s),
               "\\mathbf{%s}" % s, "\\therefore %s = %s" % (v, s), "%s \\text{ (exactly)}" % s, "%s:= %s" % (v, s), "%s\\ = \\ %s" % (v, s), "%s &= %s" % (v, s), "\\text{so } %s = %s" % (v, s), "%s = %s." % (v, s)]
        if value.denominator > 1:
            out += ["%s = %s \\approx %s" % (v, s, approx), "%s \\approx %s" % (s, approx), "%s = %s \\simeq %s" % (v, s, approx), "%s = %s = %s\\ldots" % (v, s, "%.6f" % float(value))][:3]
        if len(v) == 1:
            out += ["%s + 1 = %s \\implies %s = %s" % (v, frac(value + 1), v, s), "%s - %d = %s \\Rightarrow %s = %s" % (v, a, frac(value - a), v, s), "2%s = %s \\quad\\Longrightarrow\\quad %s = %s" % (v, frac(2 * value), v, s),
                    "3%s = %s \\iff %s = %s" % (v, frac(3 * value), v, s), "%s = %s" % (s, v), "2%s = %s \\Leftrightarrow %s = %s" % (v, frac(2 * value), v, s), "2%s = %s, \\text{ so } %s = %s" % (v, frac(2 * value), v, s)]
        return out
    value = F(a + b) if r.random() < .5 else F(r.randint(1, 99), r.choice([3, 7, 9, 11]))
    return of(value, value + 1), of(value + r.choice([1, -1, F(1, 7)]), value)


def interval(r):
    a, k = r.randint(-9, 6), r.randint(1, 9)
    b, v = a + k, r.choice("xyztam")
    lo, hi = r.choice([("[", "]"), ("(", ")"), ("[", ")"), ("(", "]")])
    def forms(a, b, lo, hi):
        L, R = ("\\le", "<")[lo == "("], ("\\le", "<")[hi == ")"]
        G, H = ("\\ge", ">")[lo == "("], ("\\ge", ">")[hi == ")"]
        return ["%s%d, %d%s" % (lo, a, b, hi), "\\left%s%d,%d\\right%s" % (lo, a, b, hi), "%s \\in %s%d,%d%s" % (v, lo, a, b, hi),
                "%d %s %s %s %d" % (a, L, v, R, b), "%d %s %s %s %d" % (b, H, v, G, a), "\\{%s \\mid %d %s %s %s %d\\}" % (v, a, L, v, R, b),
                "\\{%s : %d %s %s %s %d\\}" % (v, a, L, v, R, b), "\\{ %s \\in \\mathbb{R} \\mid %d %s %s %s %d \\}" % (v, a, L, v, R, b),
                "%s %s %d \\text{ and } %s %s %d" % (v, G, a, v, R, b), "%s %s %d, %s %s %d" % (v, G, a, v, R, b), "%d %s %s \\text{ and } %s %s %d" % (a, L, v, v, R, b),
                "%s \\in \\left%s %d, %d \\right%s" % (v, lo, a, b, hi), "%s%d;%d%s" % (lo, a, b, hi),
                "%d%s%s%s%d" % (a, {"\\le": "\u2264", "<": "<"}[L], v, {"\\le": "\u2264", "<": "<"}[R], b)]
    flip = {"[": "(", "(": "[", "]": ")", ")": "]"}
    return forms(a, b, lo, hi), forms(a, b + 1, lo, hi) + forms(a, b, flip[lo], hi) + forms(a - 1, b, lo, hi)


def half_line(r):
    a, v = r.randint(-9, 9), r.choice("xyztam")
    def forms(a, up, closed):
        c = "\\infty"
        iv = ("%s%d, \\infty)" % ("[" if closed else "(", a)) if up else "(-\\infty, %d%s" % (a, "]" if closed else ")")
        op, po = {(1, 1): ("\\geq", "\\leq"), (1, 0): (">", "<"), (0, 1): ("\\leq", "\\geq"), (0, 0): ("<", ">")}[(up, closed)]
        u = {"\\geq": "\u2265", "\\leq": "\u2264"}
        return [iv, iv.replace(" \\infty", " +\\infty"), "%s \\in %s" % (v, iv), "%s %s %d" % (v, op, a), "%d %s %s" % (a, po, v), "%s %s %d" % (v, op.replace("q", "") if op != ">" else ">", a),
                "\\{%s \\mid %s %s %d\\}" % (v, v, op, a), "%s %s %d" % (v, u.get(op, op), a), "2%s %s %d" % (v, op, 2 * a), "%s - %d %s 0" % (v, a, op) if a > 0 else "%s %s %d" % (v, op, a),
                "%s %s %d" % (v, op.replace("eq", "eqslant"), a), "-%s %s %d" % (v, po, -a)]
    up, closed = r.randint(0, 1), r.randint(0, 1)
    return forms(a, up, closed), forms(a + 1, up, closed) + forms(a, 1 - up, closed) + forms(a, up, 1 - closed)


def union(r):
    a = sorted(r.sample(range(-12, 13), 3))
    def forms(a, b, c):
        return ["(-\\infty, %d) \\cup (%d, %d]" % (a, b, c), "(%d, %d] \\cup (-\\infty, %d)" % (b, c, a), "x < %d \\text{ or } %d < x \\le %d" % (a, b, c),
                "x \\in (-\\infty, %d) \\cup (%d, %d]" % (a, b, c), "\\left(-\\infty, %d\\right) \\bigcup \\left(%d, %d\\right]" % (a, b, c), "(-\u221e, %d) \u222a (%d, %d]" % (a, b, c),
                "x<%d \\quad\\text{or}\\quad %d<x\\leq %d" % (a, b, c), "x < %d \\lor %d < x \\leq %d" % (a, b, c)]
    return forms(*a), forms(a[0], a[1], a[2] + 1) + forms(a[0] - 1, a[1], a[2]) + ["(-\\infty, %d] \\cup (%d, %d]" % tuple(a), "(-\\infty, %d) \\cup [%d, %d]" % tuple(a)]


def members(r):
    """A list or set of numbers."""
    k = r.randint(2, 5)
    values = r.sample(range(-20, 40), k)
    v = r.choice("xnkmpt")
    def forms(xs):
        xs = list(xs)
        perm = r.sample(xs, len(xs))
        s, p = [str(x) for x in xs], [str(x) for x in perm]
        out = [", ".join(s), ",".join(p), "\\{%s\\}" % ", ".join(p), "\\left\\{%s\\right\\}" % ",".join(s), "%s = %s" % (v, ", ".join(p)), "%s \\in \\{%s\\}" % (v, ",".join(p)),
               ", ".join("%s = %s" % (v, x) for x in p), " \\text{ or } ".join("%s = %s" % (v, x) for x in p), ", ".join(p[:-1]) + " \\text{ and } " + p[-1],
               ", ".join(p[:-1]) + ", \\text{ and } " + p[-1], "; ".join(p), ", ".join("%s_{%d} = %s" % (v, i + 1, x) for i, x in enumerate(s)), ", \\quad ".join(p),
               ",\\ ".join(p), "%s = %s \\text{ or } %s = %s" % (v, ", ".join(p[:-1]), v, p[-1]) if k == 2 else ", ".join(p), " \\lor ".join("%s=%s" % (v, x) for x in p),
               Plain(", ".join(p[:-1]) + " and " + p[-1]), Plain(", ".join(p[:-1]) + (", and " if k > 2 else " and ") + p[-1]),
               Boxes([str(x) for x in perm]), Boxes(["%s = %d" % (v, x) for x in perm])]
        if k == 2:
            mid, half = F(sum(xs), 2), abs(F(xs[0] - xs[1], 2))
            out.append("%s \\pm %s" % (frac(mid), frac(half)))
        return out
    other = list(values)
    other[r.randrange(k)] += r.choice([1, -1]) * 100
    return forms(values), forms(other) + forms(values[:-1] + [values[-1] + 61]) + (forms(values[:-1]) if k > 3 else [])


class Boxes(list):
    """Several answers, each in a box."""


def tuples(r):
    k = r.randint(2, 4)
    xs = [F(r.randint(-9, 9), r.choice([1, 1, 2, 5])) for _ in range(k)]
    if len(set(xs)) < k:
        return tuples(r)
    names = ["x", "y", "z", "w"][:k]
    def forms(xs):
        s = [frac(x) for x in xs]
        d = [decimal(x) for x in xs]
        return ["(%s)" % ", ".join(s), "\\left(%s\\right)" % ",".join(s), "(%s)" % "; ".join(s), "(%s)" % ";".join(s), "(%s) = (%s)" % (",".join(names), ", ".join(s)), "(%s)" % ",\\,".join(d),
                "\\left( %s \\right)" % ", \\ ".join(s), "\\langle %s \\rangle" % ", ".join(s) if 0 else "(%s)" % ", ".join(s), Plain("(%s)" % ", ".join(str(x) for x in xs)),
                ", ".join("%s = %s" % z for z in zip(names, s)), " \\text{ and } ".join("%s = %s" % z for z in zip(names, s)) if k == 2 else "(%s)" % ",".join(s),
                "\\bigl(%s\\bigr)" % ", ".join(s), "P(%s)" % ", ".join(s) if 0 else "(%s)" % ", ".join(s), "\\big(%s\\big)" % "; ".join(d)]
    other = list(xs)
    i = r.randrange(k)
    other[i] = other[i] + 1
    swapped = [xs[1], xs[0]] + xs[2:]
    return forms(xs), forms(other) + [f for f in forms(swapped) if "=" not in f or f.startswith("(")] + forms([-x for x in xs[:1]] + xs[1:] if xs[0] else other)


def points(r):
    """Several tuples."""
    k = r.randint(2, 3)
    pts = r.sample([(a, b) for a in range(-6, 7) for b in range(-6, 7)], k)
    def forms(pts):
        p = r.sample(list(pts), len(pts))
        return [", ".join("(%d,%d)" % z for z in p), "\\{%s\\}" % ", ".join("(%d, %d)" % z for z in p), " \\text{ and } ".join("(%d, %d)" % z for z in p), "; ".join("(%d; %d)" % z for z in p),
                ";".join("(%d, %d)" % z for z in p), "(x, y) = " + ", ".join("(%d, %d)" % z for z in p), "(x,y) \\in \\{%s\\}" % ",".join("(%d,%d)" % z for z in p), Boxes("(%d, %d)" % z for z in p),
                " \\text{ or } ".join("(x,y) = (%d,%d)" % z for z in p), ", ".join("\\left(%d,%d\\right)" % z for z in p), Plain(" and ".join("(%d, %d)" % z for z in p))]
    bad = list(pts)
    bad[0] = (bad[0][0], bad[0][1] + 20)
    return forms(pts), forms(bad) + forms([(pts[0][0] + 30, pts[0][1])] + list(pts[1:]))


def matrices(r):
    n = r.choice([2, 2, 2, 3])
    A = [[r.randint(-4, 5) for _ in range(n)] for _ in range(n)]
    B = [[r.randint(-4, 5) for _ in range(n)] for _ in range(n)]
    kind = r.randrange(7)
    k = r.randint(2, 5)
    a, b = matrix(A, r), matrix(B, r)
    if kind == 0:
        C, texts = mul(A, B), [a + b, a + " \\cdot " + b, a + " \\times " + b]
    elif kind == 1:
        C, texts = mul(A, A), [a + "^2", a + "^{2}", "\\left(%s\\right)^2" % a, a + a]
    elif kind == 2:
        C, texts = [[A[i][j] + B[i][j] for j in range(n)] for i in range(n)], [a + " + " + b, b + "+" + a]
    elif kind == 3:
        C, texts = [[A[i][j] - B[i][j] for j in range(n)] for i in range(n)], [a + " - " + b, "-%s + %s" % (b, a)]
    elif kind == 4:
        C, texts = [[k * A[i][j] for j in range(n)] for i in range(n)], ["%d%s" % (k, a), "%d \\cdot %s" % (k, a), a + "\\cdot %d" % k]
    elif kind == 5:
        C, texts = [[A[j][i] for j in range(n)] for i in range(n)], [a + "^T", a + "^{T}", a + "^\\top", "%s^{\\mathrm{T}}" % a]
    else:
        C, texts = mul(mul(A, A), A), [a + "^3", "\\left(%s\\right)^{3}" % a, a + "\\cdot" + a + "^2"]
    def forms(C):
        half = [[F(x, 2) for x in row] for row in C]
        return [matrix(C, r), matrix(C, r), "A = " + matrix(C, r), "\\left(%s\\right)" % matrix(C), "2" + matrix(half, r, frac), "\\begin{pmatrix}%s\\\\\\end{pmatrix}" % "\\\\".join("&".join(map(str, row)) for row in C),
                "\\frac{1}{2}" + matrix([[2 * x for x in row] for row in C], r), matrix([[F(x) for x in row] for row in C], r, lambda x: str(x) + ".0")]
    D = [list(row) for row in C]
    D[r.randrange(n)][r.randrange(n)] += r.choice([1, -1, 7])
    T = [[C[j][i] for j in range(n)] for i in range(n)]
    return forms(C) + texts, forms(D) + (forms(T) if T != C else [])


def vector(r):
    k = r.randint(2, 3)
    xs = [r.randint(-9, 9) for _ in range(k)]
    name = r.choice(["\\mathbf{v}", "\\vec{v}", "\\overrightarrow{AB}", "v"])
    def forms(xs):
        col = [[x] for x in xs]
        return [matrix(col, r), matrix(col, r), name + " = " + matrix(col, r), name + "=" + matrix(col), "\\begin{bmatrix}%s\\end{bmatrix}" % " \\\\".join(map(str, xs)), "\\begin{pmatrix} %s \\end{pmatrix}" % "\\\\ ".join(map(str, xs))]
    other = list(xs)
    other[r.randrange(k)] += 1
    return forms(xs), forms(other) + (forms(xs[::-1]) if xs != xs[::-1] else [])


def radicals(r):
    a, b, c = r.randint(2, 9), r.choice([2, 3, 5, 6, 7, 10]), r.randint(1, 9)
    q = r.choice([2, 3, 4, 5])
    def forms(a, b, c):
        out = ["%d\\sqrt{%d}" % (a, b), "\\sqrt{%d}" % (a * a * b), "%d \\cdot %d^{1/2}" % (a, b), "%d\\cdot %d^{\\frac{1}{2}}" % (a, b), "\\frac{%d}{\\sqrt{%d}}" % (a * b, b), "\\sqrt[2]{%d}" % (a * a * b),
               "%d \\times \\sqrt{%d}" % (a, b), "\\sqrt{%d}\\cdot %d" % (b, a), "(%d)^{\\frac12}" % (a * a * b), "%d^{0.5} \\cdot %d" % (b, a), "\\sqrt{%d \\cdot %d}" % (a * a, b), "%d\u221a%d" % (a, b), "\\frac{%d\\sqrt{%d}}{2}" % (2 * a, b),
               Plain("%d*sqrt(%d)" % (a, b)), Plain("%dsqrt(%d)" % (a, b)), "%d\\sqrt %d" % (a, b) if b < 10 else "%d\\sqrt{%d}" % (a, b), "%d{\\sqrt{%d}}" % (a, b), "\\left(%d\\right)\\sqrt{%d}" % (a, b)]
        return out
    return forms(a, b, c), forms(a + 1, b, c) + forms(a, b + 1, c) + ["%d\\sqrt[3]{%d}" % (a, b), "-%d\\sqrt{%d}" % (a, b)]


def powers(r):
    p, q, x = r.randint(1, 7), r.choice([2, 3, 4, 5, 7]), r.choice(["x", "a", "2", "3", "t"])
    if p % q == 0 or x in "23" and p == 1 and q == 2:
        p = q + 1
    def forms(p, q):
        root = "\\sqrt%s{%s}" % ("" if q == 2 else "[%d]" % q, x if p == 1 else "%s^{%d}" % (x, p))
        out = ["%s^{%d/%d}" % (x, p, q), "%s^{\\frac{%d}{%d}}" % (x, p, q), root, "\\left(%s\\right)^{\\frac{%d}{%d}}" % (x, p, q), "\\frac{1}{%s^{-%d/%d}}" % (x, p, q), "%s^{\\frac{%d}{%d}} \\cdot %s" % (x, p - q, q, x),
               "{%s}^{%d/%d}" % (x, p, q), "\\sqrt%s{%s}^{%d}" % ("" if q == 2 else "[%d]" % q, x, p) if p > 1 else root, "\\left(\\sqrt%s{%s}\\right)^%d" % ("" if q == 2 else "[%d]" % q, x, p) if p < 10 else root]
        return out
    return forms(p, q), forms(p + q, q) + forms(q, p) if p != 1 else forms(p + q, q)


def as_text(r):
    """Limits, sums, products, integrals and derivatives that equal themselves in another spelling."""
    n, a, b = r.choice("nkm"), r.randint(0, 4), r.randint(5, 9)
    i, j = r.sample(["k", "j", "i", "m"], 2)
    f = r.choice(["%s^2", "\\frac{1}{%s}", "2^%s", "\\frac{1}{%s(%s+1)}", "a_%s"])
    def body(v):
        return f.replace("%s", v)
    kind = r.randrange(5)
    if kind == 0:
        i, n = "k", r.choice(["n", "N", "p"])
        eq = ["\\sum_{%s=%d}^{%s} %s" % (i, a + 1, n, body(i)), "\\sum_{%s=%d}^{%s} %s" % (j, a + 1, n, body(j)), "\\sum\\limits_{%s=%d}^{%s} {%s}" % (i, a + 1, n, body(i)), "\\sum^{%s}_{%s=%d} %s" % (n, i, a + 1, body(i)),
              "\\displaystyle\\sum_{%s = %d}^%s %s" % (i, a + 1, n, body(i)), "\\sum_{%s=%d}^{%s}\\left(%s\\right)" % (i, a + 1, n, body(i))]
        ne = ["\\sum_{%s=%d}^{%s} %s" % (i, a + 2, n, body(i)), "\\sum_{%s=%d}^{%s+1} %s" % (i, a + 1, n, body(i)), "\\sum_{%s=%d}^{%s} 3%s" % (i, a + 1, n, body(i)), "\\prod_{%s=%d}^{%s} %s" % (i, a + 1, n, body(i))]
    elif kind == 1:
        g = r.choice(["x^2 e^x", "\\sin x", "\\frac{1}{1+x^2}", "x \\ln x", "\\sqrt{x}"])
        u = g.replace("x", "t").replace("e^t", "e^t") if "\\e" not in g else g
        eq = ["\\int_{%d}^{%d} %s \\, dx" % (a, b, g), "\\int_{%d}^{%d} %s dx" % (a, b, g), "\\int\\limits_{%d}^{%d} %s\\,dx" % (a, b, g), "\\int_%d^%d %s\\;\\mathrm{d}x" % (a, b, g), "\\displaystyle \\int_{%d}^{%d} %s \\, \\text{d}x" % (a, b, g),
              "\\int_{%d}^{%d} \\left(%s\\right) dx" % (a, b, g), "\\int_{%d}^{%d} %s\\,dt" % (a, b, u)]
        ne = ["\\int_{%d}^{%d} %s \\, dx" % (a, b + 1, g), "\\int_{%d}^{%d} 2%s \\, dx" % (a, b, g), "\\int_{%d}^{%d} %s \\, dx + 1" % (a, b, g), "\\int_{%d}^{%d} %s \\, dx" % (a + 1, b, g)]
    elif kind == 2:
        g = r.choice(["\\frac{\\sin x}{x}", "\\left(1+\\frac{1}{x}\\right)^x", "\\frac{x^2-1}{x-1}", "x e^{-x}", "f(x)"])
        to = r.choice(["0", "\\infty", "1", "a"])
        eq = ["\\lim_{x \\to %s} %s" % (to, g), "\\lim_{x\\to %s}%s" % (to, g), "\\lim\\limits_{x \\rightarrow %s} %s" % (to, g), "\\displaystyle\\lim_{x\\to{%s}} %s" % (to, g)]
        twice, turned = 3 if to == "0" and g[0] == "x" else 2, "3" if "sin" in g else "-" + to  # both limits 0; an even function
        ne = ["\\lim_{x \\to 2} %s" % g, "\\lim_{x \\to %s} %d%s" % (to, twice, g) + (" + 1" if twice == 3 else ""), "\\lim_{x \\to %s} %s + 1" % (to, g), "\\lim_{x \\to %s} %s" % (turned, g) if to != "0" else "\\lim_{x \\to 5} %s" % g]
    elif kind == 3:
        eq = ["\\frac{dy}{dx} = %d%s" % (b, "xy"), "\\frac{dy}{dx}=%dxy" % b, "\\dfrac{dy}{dx} = %dyx" % b, "\\frac{\\mathrm{d}y}{\\mathrm{d}x} = %d x y" % b, "\\frac{d y}{d x} = %dxy" % b]
        ne = ["\\frac{dy}{dx} = %dxy" % (b + 1), "\\frac{dy}{dx} = -%dxy" % b, "\\frac{dx}{dy} = %dxy" % b]
    else:
        i = r.choice("kj")
        c = r.choice(["k", "(k+1)", "\\frac{k+1}{k}"])
        eq = ["\\prod_{k=1}^{n} %s" % c, "\\prod_{j=1}^{n} %s" % c.replace("k", "j"), "\\prod\\limits_{k=1}^n %s" % c, "\\prod^{n}_{k=1} {%s}" % c]
        ne = ["\\prod_{k=2}^{n} 2%s" % c, "\\prod_{k=1}^{n+1} %s" % c, "\\sum_{k=1}^{n} %s" % c]
    return eq, ne


UNITS = [("cm", "centimeters"), ("m/s", None), ("km/h", None), ("kg", "kilograms"), ("N \\cdot m", None), ("m^2", "square meters"), ("cm^3", "cubic centimeters"), ("m/s^2", None), ("J/(kg \\cdot K)", None), ("kg \\cdot m/s^2", None),
         ("ft", "feet"), ("W/m^2", None), ("mol/L", None), ("hours", "hours"), ("\\Omega", "ohms"), ("rad/s", None), ("units", "units"), ("square units", "square units"), ("degrees", "degrees"), ("meters per second", "meters per second"), ("miles", "miles"), ("N/m", None)]


def units(r):
    x = F(r.randint(1, 900), r.choice([1, 1, 10, 100]))
    u, words = r.choice(UNITS)
    d = decimal(x)
    def forms(d):
        up = u.replace("^2", "^{2}").replace("^3", "^{3}")
        inverse = {"m/s": "m \\cdot s^{-1}", "m/s^2": "m \\cdot s^{-2}", "km/h": "km \\cdot h^{-1}"}.get(u, up)
        mathy = "degrees" not in u and "units" not in u and "per" not in u and u not in ("hours", "miles")
        out = [d, Plain(d)]
        if mathy:
            out += ["%s \\mathrm{%s}" % (d, u), "%s\\ \\mathrm{%s}" % (d, up), "%s~\\mathrm{%s}" % (d, u.replace(" \\cdot ", "\\cdot ")), "%s \\, \\mathrm{%s}" % (d, inverse), "%s\\;\\rm{%s}" % (d, u),
                    "%s\\,%s" % (d, " \\cdot ".join("\\text{%s}" % p for p in u.split(" \\cdot "))) if "^" not in u and "\\Omega" not in u and "(" not in u else "%s \\mathrm{~%s}" % (d, u), "%s \\operatorname{%s}" % (d, u)]
            if "^" in u and "cdot" not in u and "/" not in u:
                out += ["%s\\text{ %s}^%s" % (d, u[:-2], u[-1]), "%s \\text{ %s}^{%s}" % (d, u[:-2], u[-1]), "%s\\ \\text{%s}^%s" % (d, u[:-2], u[-1]), "%s\\text{ %s}$^%s$" % (d, u[:-2], u[-1]) if 0 else d]
            if "/" in u and "cdot" not in u and "^" not in u:
                p, q = u.split("/")
                out += ["%s\\ \\frac{\\text{%s}}{\\text{%s}}" % (d, p, q), "%s \\text{ %s/%s}" % (d, p, q), "%s\\,\\text{%s}/\\text{%s}" % (d, p, q), Plain("%s %s/%s" % (d, p, q))]
        else:
            out += ["%s \\text{ %s}" % (d, u), Plain("%s %s" % (d, u))]
        if words:
            out += ["%s\\text{ %s}" % (d, words), "%s \\text{%s}" % (d, words), Plain("%s %s" % (d, words)), "%s\\mbox{ %s}" % (d, words), "%s \\textrm{ %s}" % (d, words)]
        return out
    return forms(d), forms(decimal(x + 1)) + forms(decimal(x * 10)) + forms(decimal(x / 10) or decimal(x + 2))


def percent(r):
    x = F(r.randint(1, 200), r.choice([1, 1, 2, 10]))
    d = decimal(x)
    def forms(x):
        d = decimal(x)
        return [d + "\\%", d + " \\%", Plain(d + "%"), Plain(d + " %"), Plain(d + " percent"), d + "\\text{ percent}", d + "\\text{\\%}" if 0 else d + "\\%", d + "~\\%", "%s\\,\\%%" % d, frac(x) + "\\%", d + "\\text{\\%}"]
    return forms(x) + [r.choice([d, decimal(x / 100)])], forms(x + 1) + forms(x / 10) + [decimal(x + 5), decimal(x / 1000)]


def unicode(r):
    """Characters by their code: signs, raised digits, fractions, letters, and HTML's names of them."""
    a, b, n = r.randint(2, 9), r.randint(2, 9), r.randint(2, 9)
    up = str.maketrans("0123456789", "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
    wide = str.maketrans("0123456789", "".join(chr(0xff10 + k) for k in range(10)))
    kind = r.randrange(7)
    if kind == 0:
        f = lambda a, b, n: ["%dx^%d-%d" % (a, n, b), "%dx%s\u2212%d" % (a, str(n).translate(up), b), Plain("%dx%s - %d" % (a, str(n).translate(up), b)), "%dx^{%d} \u2013 %d" % (a, n, b), Plain("%dx^%d \u2212 %d" % (a, n, b))]
    elif kind == 1:
        f = lambda a, b, n: ["%d\\pi" % (a * b), "%d\u03c0" % (a * b), Plain("%d\u03c0" % (a * b)), "%d\\cdot %d\u03c0" % (a, b), "\u03c0\u00b7%d" % (a * b), "%d\u00d7%d\u03c0" % (a, b), "%d \U0001d70b" % (a * b)]
    elif kind == 2:
        f = lambda a, b, n: ["%d\\sqrt{%d}" % (a, b + 10), "%d\u221a%d" % (a, b + 10), "%d\u221a(%d)" % (a, b + 10), "%d\u221a{%d}" % (a, b + 10), Plain("%d\u221a%d" % (a, b + 10))]
    elif kind == 3:
        table = {F(1, 2): "\u00bd", F(1, 4): "\u00bc", F(3, 4): "\u00be", F(1, 3): "\u2153", F(2, 3): "\u2154", F(3, 8): "\u215c", F(1, 5): "\u2155"}
        x = r.choice(list(table))
        f = lambda a, b, n: [frac(a + x), "%d%s" % (a, table[x]), Plain("%d%s" % (a, table[x])), Plain("%d %s" % (a, table[x])), frac(a + x, r)]
    elif kind == 4:
        f = lambda a, b, n: ["x \\le %d" % (a - b), "x \u2264 %d" % (a - b), Plain("x \u2264 %d" % (a - b)), "x &le; %d" % (a - b), Plain("x &le; %d" % (a - b)), "x \u2a7d %d" % (a - b), "x \u2266 %d" % (a - b)]
    elif kind == 5:
        f = lambda a, b, n: [str(1000 * a + b), str(1000 * a + b).translate(wide), Plain(str(1000 * a + b).translate(wide)), "\u200b%d" % (1000 * a + b), "%d\ufeff" % (1000 * a + b), Plain("\u2068%d\u2069" % (1000 * a + b)), "&nbsp;%d" % (1000 * a + b)]
    else:
        f = lambda a, b, n: ["-%d" % (a * b), "\u2212%d" % (a * b), Plain("\u2212%d" % (a * b)), "\ufe63%d" % (a * b), "&minus;%d" % (a * b), Plain("\uff0d%d" % (a * b)), Plain("\u2010%d" % (a * b))]
    return f(a, b, n), f(a + 1, b, n) + f(a, b, n + 1) if kind == 0 else f(a + 1, b, n)


def polynomials(r):
    """Factored, expanded, completed squares."""
    p, q, k = r.randint(-7, 7), r.randint(-7, 7), r.choice([1, 1, 2, 3, -2])
    x = r.choice(["x", "t", "n", "a"])
    name = r.choice(["f(%s)" % x, "y", "P(%s)" % x, "S_n", "f^{-1}(%s)" % x, "f'(%s)" % x])
    def forms(p, q, k):
        e = [k, k * (p + q), k * p * q]
        h = F(p + q, 2)
        square = "%s\\left(%s%s\\right)^2%s" % ("" if k == 1 else k, x, "+" + frac(h) if h > 0 else "-" + frac(-h) if h < 0 else "", "+" + frac(k * (p * q - h * h)) if p * q - h * h and k * (p * q - h * h) > 0 else "-" + frac(-k * (p * q - h * h)) if p * q - h * h else "")
        fac = "%s(%s%s)(%s%s)" % ("" if k == 1 else k, x, sign(p), x, sign(q))
        return [poly(e, x), spaced(poly(e, x), r), fac, fac.replace(")(", ") \\cdot (").replace("(", "\\left(").replace(")", "\\right)"), square, "(%s%s)(%s)" % (x, sign(q), poly([k, k * p], x)),
                "%s(%s)" % (k, poly([1, p + q, p * q], x)) if k != 1 else fac, poly(e, x).replace("^2", "^{2}"), Plain(poly(e, x)), Plain(spaced(poly(e, x), r)),
                "%s\\left[%s\\right]" % (k, poly([1, p + q, p * q], x)) if k != 1 else fac, "%s = %s" % (name, poly(e, x)), "%s = %s" % (poly(e, x), fac), "%s = %s" % (name, fac), Plain(poly(e, x).replace("^", "**"))]
    return forms(p, q, k), forms(p + 1, q, k) + forms(p, q, k + (1 if k != -1 else 2)) + (forms(p, -q, k) if q and p else [])


def equations(r):
    """Lines, circles and systems: equivalent equations."""
    a, b, c = r.randint(1, 7), r.choice([-5, -4, -3, -2, 1, 2, 3, 4, 5]), r.randint(-9, 9)
    k = r.choice([2, 3, -1])
    h, v, s = r.randint(-5, 5), r.randint(-5, 5), r.randint(1, 6)
    kind = r.randrange(3)
    if kind == 0:
        def forms(a, b, c):
            lhs = poly([a, 0], "x") + sign(b).replace("+1", "+").replace("-1", "-") + "y" if abs(b) == 1 else "%dx%+dy" % (a, b)
            m, t = F(-a, b), F(-c, b)
            return ["%s%s = 0" % (lhs, sign(c)), "%s = %d" % (lhs, -c), "%dx%+dy%s = 0" % (k * a, k * b, sign(k * c)), "0 = %s%s" % (lhs, sign(c)), "y = %sx%s" % (frac(m), "+" + frac(t) if t > 0 else "-" + frac(-t) if t < 0 else ""),
                    "y=%s" % frac(m) + "x" + ("+" + frac(t) if t > 0 else "-" + frac(-t) if t < 0 else ""), "%d x %+d y = %d" % (a, b, -c), "%dx = %dy%s" % (a, -b, sign(-c)), Plain("%dx %s %dy = %d" % (a, "+" if b > 0 else "-", abs(b), -c))]
        return forms(a, b, c), forms(a, b, c + 1) + forms(a + 1, b, c) + forms(a, -b, c)
    if kind == 1:
        def forms(h, v, s):
            xs = "x" if not h else "(x%s)" % sign(-h)
            ys = "y" if not v else "(y%s)" % sign(-v)
            e = "x^2%s+y^2%s%s" % (sign(-2 * h) + "x" if h else "", sign(-2 * v) + "y" if v else "", sign(h * h + v * v - s * s))
            return ["%s^2 + %s^2 = %d" % (xs, ys, s * s), "%s^{2}+%s^{2}=%d^2" % (xs, ys, s), e + " = 0", "%s^2 + %s^2 - %d = 0" % (ys, xs, s * s), "\\frac{%s^2}{%d} + \\frac{%s^2}{%d} = 1" % (xs, s * s, ys, s * s), "%d = %s^2 + %s^2" % (s * s, xs, ys)]
        return forms(h, v, s), forms(h + 1, v, s) + forms(h, v, s + 1) + forms(h, v + 1 if v != -1 else v - 1, s)
    def forms(h, v, c):
        system = ["x+y=%d" % (h + c), "x-y=%d" % v]
        other = ["2x+2y=%d" % (2 * (h + c)), "y=x%s" % sign(-v) if v else "y=x"]
        square = ["(x+1)^2=%d" % (s * s), "x^2+2x+1=%d" % (s * s), "x^2+2x=%d" % (s * s - 1)]
        z = r.choice(square)
        return ["%s, %s" % tuple(system), "%s, %s" % tuple(other), "\\begin{cases} %s \\\\ %s \\end{cases}" % tuple(system), "%s \\text{ and } %s" % (system[1], system[0]), "\\left\\{\\begin{array}{l} %s \\\\ %s \\end{array}\\right." % tuple(other), "\\begin{cases} %s, \\\\ %s. \\end{cases}" % tuple(system),
                "%s; %s" % tuple(system)]
    return forms(h, v, c), forms(h + 1, v, c) + forms(h, v + 1, c)


def science(r):
    m, e = r.randint(101, 999), r.randint(3, 12) * r.choice([1, -1])
    def forms(m, e):
        s = "%d.%02d" % (m // 100, m % 100)
        value = F(m, 100) * F(10) ** e
        out = ["%s \\times 10^{%d}" % (s, e), "%s\\cdot 10^{%d}" % (s, e), "%se%d" % (s, e), "%sE%+d" % (s, e), "%d \\times 10^{%d}" % (m, e - 2), "%s * 10^{%d}" % (s, e), Plain("%s x 10^%d" % (s, e)), Plain("%s \u00d7 10^%d" % (s, e)), Plain("%se%d" % (s, e)),
               "%s \\times 10^{%d}\\text{ kg}" % (s, e), "10^{%d} \\times %s" % (e, s), "%s\\times{10}^{%d}" % (s, e), "%s0 \\times 10^{%d}" % (s, e)]
        if 0 < e < 10:
            out += [decimal(value), groups(int(value), ",")] if value.denominator == 1 else [decimal(value)]
        return out
    return forms(m, e), forms(m + 1, e) + forms(m, e + 1) + forms(m, -e)


def complexes(r):
    a, b = r.randint(-9, 9), r.choice([-7, -5, -3, -2, 2, 3, 4, 6])
    def forms(a, b):
        t = "%d%+di" % (a, b) if a else "%di" % b
        return [t, "%+di%s" % (b, sign(a)) if a else t, t.replace("i", "\\mathrm{i}"), "z = " + t, "\\left(%s\\right)" % t, "%d %s %d i" % (a, "+" if b > 0 else "-", abs(b)), Plain(t), "\\frac{%d%+di}{2}" % (2 * a, 2 * b), "%d%+d \\cdot i" % (a, b), "%d%+d\\sqrt{-1}" % (a, b)]
    return forms(a, b), forms(a, -b) + forms(a + 1, b) + (forms(b, a) if a and a != b else [])


def logs(r):
    a, b = r.choice([(2, 3), (3, 5), (2, 7), (5, 3)])
    n = r.randint(2, 5)
    forms = lambda a, b, n: ["%d\\ln %d" % (n, a), "\\ln %d" % a**n, "\\ln(%d)" % a**n, "\\ln{%d}" % a**n, "\\log_e %d" % a**n, "%d \\ln(%d)" % (n, a), "\\ln %d^{%d}" % (a, n) if 0 else "\\ln(%d^{%d})" % (a, n), "\\ln\\left(%d\\right)" % a**n, "-\\ln\\frac{1}{%d}" % a**n, "%d\\log_{e}{%d}" % (n, a), Plain("%d*ln(%d)" % (n, a)), Plain("ln(%d)" % a**n)]
    return forms(a, b, n), forms(a + 1, b, n) + forms(a, b, n + 1)


def trig(r):
    a = r.choice(["x", "\\theta", "\\alpha", "t"])
    k = r.randint(2, 5)
    forms = lambda k: ["%d\\sin^2 %s" % (k, a), "%d\\sin^{2}(%s)" % (k, a), "%d(\\sin %s)^2" % (k, a), "%d - %d\\cos^2 %s" % (k, k, a), "\\frac{%d(1-\\cos 2%s)}{2}" % (k, a), "%d\\sin\\left(%s\\right)^2" % (k, a), "%d\\sin{%s}\\sin{%s}" % (k, a, a), "\\frac{%d}{\\csc^2 %s}" % (k, a)]
    return forms(k), forms(k + 1) + ["%d\\cos^2 %s" % (k, a), "%d\\sin %s" % (k, a), "%d\\sin^2 2%s" % (k, a)]


def texts(r):
    words = r.choice([("Monday", "Tuesday"), ("yes", "no"), ("even", "odd"), ("Evelyn", "Carla"), ("increasing", "decreasing"), ("no solution", "one solution"), ("isosceles", "equilateral"), ("true", "false"), ("hyperbola", "parabola")])
    def forms(w):
        return ["\\text{%s}" % w, "\\text{%s}" % w.capitalize(), "\\textbf{%s}" % w, "\\mathrm{%s}" % w if " " not in w else "\\text{%s}" % w, "\\text{ %s }" % w, "\\text{%s.}" % w.capitalize(), "\\mbox{%s}" % w]
    return forms(words[0]), forms(words[1])


def letters(r):
    c, d = r.sample("ABCDE", 2)
    f = lambda c: ["\\text{%s}" % c, "(%s)" % c, "\\text{(%s)}" % c, c, "\\textbf{(%s)}" % c, "\\mathrm{%s}" % c, "\\textbf{%s}" % c, "\\text{(%s)}\\ " % c, "\\mathbf{(%s)}" % c, "\\text{(%s)." % c + "}"]
    return f(c), f(d)


def ratio(r):
    a, b, k = r.randint(1, 9), r.randint(1, 9), r.randint(2, 4)
    if a == b:
        b += 1
    f = lambda a, b: ["%d:%d" % (a, b), "%d : %d" % (a, b), "%d:%d" % (k * a, k * b), "\\frac{%d}{%d}" % (a, b), "%d \\colon %d" % (a, b), "%d/%d" % (a, b), Plain("%d:%d" % (a, b)), "%d\\text{ to }%d" % (a, b), Plain("%d to %d" % (a, b)), "x:y = %d:%d" % (a, b), "%d\\!:\\!%d" % (a, b)]
    return f(a, b), f(b, a) + f(a + b, b)


def bases(r):
    b = r.choice([2, 3, 5, 8])
    digits = [str(r.randint(1, b - 1))] + [str(r.randrange(b)) for _ in range(r.randint(2, 6))]
    def forms(s, b):
        return [s + "_%d" % b, s + "_{%d}" % b, "(%s)_{%d}" % (s, b), s + "_{\\text{%d}}" % b, "\\left(%s\\right)_%d" % (s, b), s + "_{(%d)}" % b, Plain(s + "_%d" % b), s + "\\text{ (base %d)}" % b, s + "_{\\text{base } %d}" % b]
    s = "".join(digits)
    t = list(digits)
    t[-1] = str((int(t[-1]) + 1) % b)
    return forms(s, b), forms("".join(t), b) + forms(s, b + 1)


def nested(r):
    """Brackets, braces and boxes about a value, to any depth."""
    depth = r.choice([1, 2, 3, 5, 10, 30])
    x, y = r.randint(2, 99), r.randint(2, 99)
    def forms(x, y):
        t = "%d+%dx" % (x, y)
        return [t, "(" * depth + t + ")" * depth, "{" * depth + t + "}" * depth, "\\left(" * depth + t + "\\right)" * depth, "\\boxed{" * min(depth, 5) + t + "}" * min(depth, 5), "\\frac{" * min(depth, 10) + t + "}{1}" * min(depth, 10),
                "\\sqrt{" * min(depth, 4) + "(" + t + ")^{%d}" % 2 ** min(depth, 4) + "}" * min(depth, 4) if 0 else t, "\\displaystyle{%s}" % t, "\\mathbf{%s}" % t, "{\\displaystyle %s}" % t, "\\bigg(%s\\bigg)" % t, "\\left[\\left(%s\\right)\\right]" % t, "0+" * min(depth, 9) + t]
    return forms(x, y), forms(x + 1, y) + forms(x, y + 1)


def plusminus(r):
    a, b = r.randint(-9, 9), r.choice([2, 3, 5, 7])
    c = r.randint(1, 4)
    root = "%s\\sqrt{%d}" % ("" if c == 1 else c, b)
    def forms(a, root):
        p = str(a) if a else ""
        return [p + "\\pm " + root, "%s+%s, %s-%s" % (p, root, p, root), "x = %s \\pm %s" % (p, root), "\\{%s-%s, %s+%s\\}" % (p, root, p, root), "x = %s + %s \\text{ or } x = %s - %s" % (p, root, p, root), Boxes(["%s+%s" % (p, root), "%s-%s" % (p, root)]), "%s\\pm{%s}" % (p, root), "x_{1,2} = %s \\pm %s" % (p, root), "x_1 = %s + %s, x_2 = %s - %s" % (p, root, p, root)]
    return [f if isinstance(f, Boxes) else f for f in forms(a, root)], forms(a + 1, root) + [str(a) + "+" + root if a else root, str(a) + "-" + root if a else "-" + root]


CLASSES = [locale, number, chain, interval, half_line, union, members, tuples, points, matrices, vector, radicals, powers, as_text, units, percent, unicode, polynomials, equations, science, complexes, logs, trig, texts, letters, ratio, bases, nested, plusminus]

# ---------------------------------------------------------------- the text around an answer

OPENINGS = ["", "We compute step by step. First, $3 \\cdot 4 = 12$.\n\n", "Let $x$ be the value; then $x > 0$ and there are 17 cases.\n", "<think>\nMaybe it is \\boxed{0}? No, let me check: 5 + 6 = 11.\n</think>\n\n", "## Solution\n\n1. **Step 1**: we have \\( a = 5 \\).\n2. **Step 2**: simplify.\n\n",
            "Note that $10 was paid on day 3.\n", "By symmetry, \\[ \\frac{a}{b} = \\frac{c}{d}. \\]\n", "Wait, $\\boxed{-1}$ is wrong. Again:\n\n"]


def in_text(s, r):
    """A completion whose answer is s."""
    form = ending(s, r)
    return r.choice(OPENINGS if "\\boxed" in form or "\\fbox" in form else OPENINGS[:-1]) + form  # a box outranks prose


def ending(s, r):
    o = ""
    if isinstance(s, Boxes):
        joint = r.choice([", ", " and ", ",", "$ and $", "$, $", ", \\quad ", "$ or $"])
        return o + r.choice(["The answers are $%s$.", "Thus $%s$"]) % joint.join("\\boxed{%s}" % x for x in s)
    if isinstance(s, Plain):
        return o + r.choice(["The answer is %s.", "Answer: %s", "**Answer:** %s", "Final answer: %s", "The final answer is %s", "#### %s", "<answer>%s</answer>", "So the final answer is: **%s**", "\n\n%s"
                             if s[0].isdigit() and " " not in s else "Answer: %s", "\\boxed{%s}", "$\\boxed{%s}$", "**Final Answer**\n%s"]).replace("%s", s)
    return o + r.choice(["$\\boxed{%s}$", "\\boxed{%s}", "\\[ \\boxed{%s} \\]", "Hence the answer is $\\boxed{%s}$.", "The answer is $%s$.", "Answer: $%s$", "**Answer:** $%s$", "Final Answer: The final answer is $%s$. I hope it is correct.", "the final answer is \\(%s\\).", "So we get $%s$.",
                         "Therefore, \\[ %s \\]", "<answer>$%s$</answer>", "#### $%s$", "$$\\boxed{%s}$$", "**Final Answer**\n\n\\[ \\boxed{%s} \\]", "Thus, the answer is\n$$\n%s\n$$", "$\\fbox{%s}$", "The answer is \\boxed{%s}, as wanted."]).replace("%s", s)


def as_gold(s, r):
    """The row's answer, and whether it is bare LaTeX."""
    if isinstance(s, Boxes):
        return ", ".join("\\boxed{%s}" % x for x in s), False
    if isinstance(s, Plain):
        return str(s), r.random() < .5
    k = r.randrange(8)
    if k < 4:
        return s, True
    return ["$%s$", "$\\boxed{%s}$", "The roots add up, so that $a + b = 7$ and the result is $\\boxed{%s}$, as claimed.", "So the answer is: \\[ \\boxed{%s} \\]"][k - 4].replace("%s", s), False


def pairs(seed, each):
    for make in CLASSES:
        r = random.Random("%s %d" % (make.__name__, seed))
        same, near = make(r)
        for i in range(each):
            equal = r.random() < .6
            gold, pred = r.choice(same), r.choice(same if equal else near)
            if isinstance(gold, Plain) and not isinstance(pred, Plain) and r.random() < .5:
                gold = r.choice([x for x in same if not isinstance(x, Plain)])
            text, latex = as_gold(gold, r)
            yield {"id": "%s-%d-%d" % (make.__name__, seed, i), "kind": make.__name__, "gold": text, "gold_is_latex": latex, "pred": in_text(pred, r), "extract": ["latex", "expr"], "boxed_priority": 0, "expected": equal,
                   "allow_set_relation_comp": True, "note": "%s against %s" % (gold, pred)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("first", type=int)
    p.add_argument("end", type=int, help="one past the last seed")
    p.add_argument("--step", type=int, default=1, help="2 with an even FROM: the development half; with an odd one: the other")
    p.add_argument("--each", type=int, default=4, help="pairs of each class and seed")
    a = p.parse_args()
    for seed in range(a.first, a.end, a.step):
        for row in pairs(seed, a.each):
            print(json.dumps(row))


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        sys.exit(0)
