#!/usr/bin/env python3
"""Pairs of short answers whose meaning is also written for sympy: what bench/verify_differential.py judges three times.

    tests/verify/pairs.py N [--seed S]     N JSON lines: id, kind, gold, pred (LaTeX), gold_sympy, pred_sympy (Python)

A kind makes a value, values near it, and spellings of each. Twelve spellings make up to a hundred pairs, so that a slow judge reads each of them
once. No label is written: sympy decides."""
import argparse, json, random
from fractions import Fraction as F
from math import comb, factorial


def py(x):
    return f"Rational({x.numerator},{x.denominator})" if isinstance(x, F) else str(x)


def rational(r, small=False):
    d = r.choice([1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 20, 25, 40])
    return F(r.randint(-30 if small else -200, 30 if small else 200), d)


def near_rational(x, r):
    choices = [-x, x + 1, x - 1, x * 10, x + F(1, 1000), F(x.numerator + r.choice([-1, 1]), x.denominator), F(x.numerator, x.denominator + 1)]
    if x:
        choices.append(1 / x)
    return r.choice([c for c in choices if c != x])


def decimal(x):
    d, k = x.denominator, 0
    while d % 2 == 0 or d % 5 == 0:
        d //= 2 if d % 2 == 0 else 5
    if d != 1:
        return None
    while (x * 10**k).denominator != 1:
        k += 1
    s = str(abs(int(x * 10**k))).rjust(k + 1, "0")
    return ("-" if x < 0 else "") + (s[:-k] + "." + s[-k:] if k else s)


def repeating(x):
    n, d, s = abs(x.numerator), x.denominator, "-" if x < 0 else ""
    whole, rest, digits, seen = n // d, n % d, "", {}
    while rest and rest not in seen:
        seen[rest] = len(digits)
        digits += str(10 * rest // d)
        rest = 10 * rest % d
    if not rest:
        return None
    k = seen[rest]
    return None if len(digits) - k > 12 else f"{s}{whole}.{digits[:k]}\\overline{{{digits[k:]}}}"


def groups(n, mark):
    s, out = str(abs(n)), []
    while len(s) > 3:
        out.insert(0, s[-3:])
        s = s[:-3]
    return ("-" if n < 0 else "") + mark.join([s] + out)


def spell(x, r):
    """A rational number."""
    n, d, s = abs(x.numerator), x.denominator, "-" if x < 0 else ""
    if d == 1:
        forms = [f"{s}{n}", f"{s}{n}", f"{s}{n}.0", f"+{n}" if not s else f"{s} {n}", f"{s}\\frac{{{3 * n}}}{{3}}", f"{{{s}{n}}}"]
        if n >= 1000:
            forms += [s + groups(n, m) for m in (",", "{,}", "\\,", ",\\!", " ")]
        if n and n % 1000 == 0:
            forms.append(f"{s}{n // 1000}\\times 10^3")
        return r.choice(forms)
    k = r.choice([1, 1, 1, 2, 3])
    forms = [f"{s}\\frac{{{n * k}}}{{{d * k}}}", f"{s}\\dfrac{{{n}}}{{{d}}}", f"{s}{n}/{d}", f"\\frac{{{s}{n}}}{{{d}}}", f"{s}{n}\\cdot\\frac{{1}}{{{d}}}",
             f"{s}\\left(\\frac{{{n}}}{{{d}}}\\right)", f"{s}{n}\\div {d}", f"{s}\\frac{{1}}{{{d}}}\\cdot {n}"]
    if n < 10 and d < 10:
        forms += [f"{s}\\frac{n}{d}", f"{s}\\tfrac {n}{d}", f"{s}\\frac{n}{{{d}}}"]
    if n > d:
        forms.append(f"{s}{n // d}\\frac{{{n % d}}}{{{d}}}")
    for text in (decimal(x), repeating(x)):
        if text:
            forms += [text, text]
    if s:
        forms.append(f"\\frac{{{n}}}{{-{d}}}")
    return r.choice(forms)



def poly_text(c, x, r, shuffle=True):
    terms = []
    for k, a in enumerate(c):
        if a:
            body = ("" if abs(a) == 1 and k else str(abs(a))) + ("" if not k else x if k == 1 else f"{x}^{k}" if r.random() < .6 else f"{x}^{{{k}}}")
            terms.append(("-" if a < 0 else "+") + body)
    if not terms:
        return "0"
    terms.reverse()
    if shuffle and r.random() < .4:
        r.shuffle(terms)
    text = "".join(terms).lstrip("+")
    return text if r.random() < .5 else text.replace("+", " + ").replace("-", " - ").strip()


def poly_py(c, x="x"):
    return "+".join(f"({a})*{x}**{k}" for k, a in enumerate(c)) or "0"


def times(p, q):
    out = [0] * (len(p) + len(q) - 1)
    for i, a in enumerate(p):
        for j, b in enumerate(q):
            out[i + j] += a * b
    return out


def nearby(c, r):
    c = list(c)
    k = r.randrange(len(c))
    c[k] = r.choice([c[k] + 1, -c[k] if c[k] else 1, c[k] - 2])
    return c


def spell_surd(v, r):
    a, b, c = v
    s = "-" if b < 0 else "+"
    k = abs(b)
    root = r.choice([("" if k == 1 else str(k)) + f"\\sqrt{{{c}}}", f"\\sqrt{{{k * k * c}}}", f"{k}\\cdot\\sqrt{{{c}}}", f"{k}\\cdot {c}^{{1/2}}", f"{k}\\cdot {c}^{{\\frac12}}"])
    forms = [f"{a}{s}{root}" if a else ("-" if b < 0 else "") + root, f"{'-' if b < 0 else ''}{root}{a:+d}" if a else ("-" if b < 0 else "") + root]
    norm = a * a - b * b * c
    if norm and r.random() < .4:  # norm / (a - b sqrt c)
        forms = [f"\\frac{{{norm}}}{{{a}{-b:+d}\\sqrt{{{c}}}}}"] if a else forms
    if a > 0 and b > 0 and r.random() < .4:
        forms = [f"\\sqrt{{{a * a + b * b * c}+{2 * a * b}\\sqrt{{{c}}}}}"]
    return r.choice(forms)



# ---------------------------------------------------------------- kinds: a value, its spellings, its neighbours, its meaning for sympy


class Kind:
    weight = 1

    def mean(self, v):
        return str(v)


class Rational(Kind):
    weight = 6

    def value(self, r):
        return rational(r)

    spell = staticmethod(spell)
    near = staticmethod(near_rational)
    mean = staticmethod(py)


class Integer(Kind):
    weight = 5

    def value(self, r):
        return r.choice([r.randint(0, 99), r.randint(1000, 99999), r.randint(10**6, 10**9), factorial(r.randint(3, 10)), 2 ** r.randint(3, 40)])

    def near(self, v, r):
        return v + r.choice([-1, 1, 9, -10, 1000])

    def spell(self, v, r):
        forms = [spell(F(v), r)] * 2
        for k in range(3, 12):
            if factorial(k) == v:
                forms += [f"{k}!"] * 2
        if v > 4 and v & (v - 1) == 0:
            k = v.bit_length() - 1
            forms += [f"2^{{{k}}}", f"4^{{{k // 2}}}" + ("\\cdot 2" if k % 2 else "")]
        p = next((p for p in (7, 5, 3, 2) if v > 0 and v % p == 0), None)
        if p:
            forms += [f"{p}\\cdot {v // p}", f"{p}({v // p})"]
        return r.choice(forms)


class Surd(Kind):
    def value(self, r):
        return r.randint(-9, 9), r.choice([-3, -2, -1, 1, 2, 3, 5]), r.choice([2, 3, 5, 6, 7, 10, 11])

    def near(self, v, r):
        a, b, c = v
        return r.choice([(a, -b, c), (a + 1, b, c), (a, b, c + 3), (-a - 1, -b, c), (a, b + 4, c)])

    def mean(self, v):
        return "%d+(%d)*sqrt(%d)" % v

    def spell(self, v, r):
        return spell_surd(v, r)


class Multiple(Kind):
    """A rational multiple of a constant."""
    weight = 2

    def value(self, r):
        return (rational(r, True), *r.choice([("\\pi", "pi"), ("\\pi", "pi"), ("e", "E"), ("\\sqrt{3}", "sqrt(3)"), ("\\pi^2", "pi**2"), ("\\ln 2", "log(2)")]))

    def near(self, v, r):
        return (near_rational(v[0], r), *v[1:])

    def mean(self, v):
        return f"{py(v[0])}*{v[2]}"

    def spell(self, v, r):
        x, name, _ = v
        n, d, s = abs(x.numerator), x.denominator, "-" if x < 0 else ""
        if not x:
            return "0"
        forms = [f"{s}\\frac{{{n}{name}}}{{{d}}}", f"{s}\\frac{{{n}}}{{{d}}}{name}", f"{s}\\frac{{{n}}}{{{d}}} \\cdot {name}", f"{s}{n}{name}/{d}"] if d > 1 else [f"{s}{n}{name}", f"{s}{n} {name}", f"{s}{n}\\cdot {name}"]
        if decimal(x):
            forms.append(decimal(x) + name)
        return r.choice(forms)


class Polynomial(Kind):
    """A product of two linear factors."""

    def value(self, r):
        return r.choice("xxxyntakz"), (r.randint(-9, 9), r.choice([1, 1, 2, 3, -1])), (r.randint(-9, 9), r.choice([1, 1, 2, 5])), r.choice([1, 1, 1, 2, -3])

    def near(self, v, r):
        x, p, q, k = v
        return r.choice([(x, p, (q[0] + 1, q[1]), k), (x, (-p[0] or 2, p[1]), q, k), (x, p, q, -k), (x, p, (q[0], q[1] + 1), k)])

    def mean(self, v):
        return poly_py([v[3] * a for a in times(v[1], v[2])], v[0])

    def spell(self, v, r):
        x, p, q, k = v
        front = "" if k == 1 else str(k)
        factors = [f"({poly_text(f, x, r, False)})" for f in r.sample([p, q], 2)]
        return r.choice([front + "".join(factors), poly_text([k * a for a in times(p, q)], x, r), f"({poly_text(p, x, r, False)})^2" if p == q and k == 1 else poly_text([k * a for a in times(p, q)], x, r)])


class Fraction(Kind):
    """p / (x + a) + q / (x + b)"""
    weight = .5

    def value(self, r):
        return (*r.sample([a for a in range(-9, 10) if a], 2), r.choice([1, 2, 3, -1]), r.choice([1, 2, 5, -3]))

    def near(self, v, r):
        a, b, p, q = v
        return r.choice([(a, b, p, q + 1 or 2), (a, b, -p, q), (b, a, p, q) if p != q else (a, b + 11, p, q), (a, b + 11, p, q)])

    def mean(self, v):
        a, b, p, q = v
        return f"{p}/(x+({a}))+({q})/(x+({b}))"

    def spell(self, v, r):
        a, b, p, q = v
        top, bottom = [p * b + q * a, p + q], times([a, 1], [b, 1])
        if r.random() < .4:
            return f"\\frac{{{p}}}{{x{a:+d}}}{'+' if q > 0 else '-'}\\frac{{{abs(q)}}}{{x{b:+d}}}"
        under = r.choice([poly_text(bottom, "x", r, False), f"(x{a:+d})(x{b:+d})"])
        return f"\\frac{{{poly_text(top, 'x', r, False)}}}{{{under}}}"


IDENTITIES = [("\\sin 2x", "2\\sin x\\cos x", "sin(2*x)"), ("\\cos 2x", "1-2\\sin^2 x", "cos(2*x)"), ("\\cos 2x", "2\\cos^2 x-1", "cos(2*x)"),
              ("\\tan x", "\\frac{\\sin x}{\\cos x}", "tan(x)"), ("\\sec^2 x", "1+\\tan^2 x", "sec(x)**2"), ("\\sin^2 x", "\\frac{1-\\cos 2x}{2}", "sin(x)**2"),
              ("\\sin\\left(x+\\frac{\\pi}{2}\\right)", "\\cos x", "cos(x)"), ("\\cos(x+\\pi)", "-\\cos x", "-cos(x)"), ("\\cot x", "\\frac{1}{\\tan x}", "cot(x)"),
              ("\\sin 3x", "3\\sin x-4\\sin^3 x", "sin(3*x)"), ("e^{2x}", "(e^x)^2", "exp(2*x)"), ("2^{x+1}", "2\\cdot 2^x", "2**(x+1)"), ("\\ln(x^2+1)+\\ln 3", "\\ln(3x^2+3)", "log(3*x**2+3)"),
              ("\\cosh x", "\\frac{e^x+e^{-x}}{2}", "cosh(x)"), ("|x|", "\\sqrt{x^2}", "sqrt(x**2)"), ("x^{\\frac{3}{2}}", "x\\sqrt{x}", "x**Rational(3,2)"),
              ("\\frac{1}{\\sqrt{x}}", "x^{-\\frac12}", "1/sqrt(x)"), ("\\sqrt[3]{x^2}", "x^{2/3}", "x**Rational(2,3)"), ("\\log_2 x", "\\frac{\\ln x}{\\ln 2}", "log(x)/log(2)")]



class Identity(Kind):
    weight = .5

    def value(self, r):
        return r.choice(IDENTITIES), r.choice([0, 0, 1, 2, 5])

    def near(self, v, r):
        return (v[0], v[1] + 1) if r.random() < .3 else (r.choice([i for i in IDENTITIES if i[2] != v[0][2]]), v[1])

    def mean(self, v):
        return f"{v[0][2]}+{v[1]}"

    def spell(self, v, r):
        text = r.choice(v[0][:2])
        return r.choice([text + f"+{v[1]}", f"{v[1]}+{text}" if text[0] != "-" else text + f" + {v[1]}"]) if v[1] else r.choice([text, f"{{{text}}}", f"\\left({text}\\right)"])


ANGLES = {"0": ("0", "1"), "\\frac{\\pi}{6}": ("1/2", "sqrt(3)/2"), "30^\\circ": ("1/2", "sqrt(3)/2"), "\\frac{\\pi}{4}": ("sqrt(2)/2", "sqrt(2)/2"), "45^{\\circ}": ("sqrt(2)/2", "sqrt(2)/2"),
          "\\frac{\\pi}{3}": ("sqrt(3)/2", "1/2"), "60^\\circ": ("sqrt(3)/2", "1/2"), "\\frac{2\\pi}{3}": ("sqrt(3)/2", "-1/2"), "150^\\circ": ("1/2", "-sqrt(3)/2"),
          "\\frac{\\pi}{12}": ("(sqrt(6)-sqrt(2))/4", "(sqrt(6)+sqrt(2))/4"), "\\frac{\\pi}{2}": ("1", "0")}
VALUES = {"0": "0", "1": "1", "1/2": "\\frac12", "-1/2": "-0.5", "sqrt(3)/2": "\\frac{\\sqrt{3}}{2}", "-sqrt(3)/2": "-\\frac{\\sqrt3}{2}", "sqrt(2)/2": "\\frac{1}{\\sqrt2}",
          "(sqrt(6)-sqrt(2))/4": "\\frac{\\sqrt6-\\sqrt2}{4}", "(sqrt(6)+sqrt(2))/4": "\\frac{\\sqrt{2}+\\sqrt{6}}{4}"}



class Trigonometry(Kind):
    def value(self, r):
        return r.choice(list(VALUES))

    def near(self, v, r):
        return r.choice([x for x in VALUES if x != v])

    def spell(self, v, r):
        forms = [VALUES[v]]
        for angle, both in ANGLES.items():
            for f, w in zip(("\\sin", "\\cos"), both):
                if w == v:
                    forms += [f"{f} {angle}", f"{f}({angle})", f"{f}{{{angle}}}", f"{f}\\left({angle}\\right)"]
        return r.choice(forms)

    def mean(self, v):
        return f"sympify('{v}')"


class Logarithm(Kind):
    weight = 2

    def value(self, r):
        return r.randint(1, 6)

    def near(self, v, r):
        return r.choice([v + 1, v + 2, v + 5])

    def spell(self, v, r):
        b = r.choice([2, 3, 5, 10])
        return r.choice([f"\\log_{{{b}}} {b**v}", f"\\log_{b}({b**v})", f"\\frac{{\\ln {b**v}}}{{\\ln {b}}}", f"\\log_{{{b * b}}} {b**(2 * v)}", f"\\ln(e^{{{v}}})", spell(F(v), r)])


class Complex(Kind):
    def value(self, r):
        return tuple(r.randint(-6, 6) for _ in range(4))

    def near(self, v, r):
        a, b, c, d = v
        return r.choice([(a, -b or 1, c, d), (a + 1, b, c, d), (a, b, c, d - 1), (b, a, c, d) if a != b else (a, b, c + 1, d)])

    def mean(self, v):
        return "(%d+(%d)*I)*(%d+(%d)*I)" % v

    def spell(self, v, r):
        def write(x, y):
            i = ("" if abs(y) == 1 else str(abs(y))) + "i"
            return str(x) if not y else f"{x}{'-' if y < 0 else '+'}{i}" if x else ("-" if y < 0 else "") + i
        a, b, c, d = v
        x, y = a * c - b * d, a * d + b * c
        forms = [f"({write(a, b)})({write(c, d)})", f"({write(c, d)})({write(a, b)})", write(x, y), write(x, y)]
        if x and y > 0:
            forms.append(f"{write(0, y)}{x:+d}")
        return r.choice(forms)


def several(r, n):
    return [rational(r, True) for _ in range(n)]


def change_one(xs, r):
    ys = list(xs)
    k = r.randrange(len(ys))
    ys[k] = near_rational(ys[k], r)
    return ys


class Tuple(Kind):
    weight = 3

    def value(self, r):
        return several(r, r.choice([2, 3]))

    def near(self, v, r):
        return v[::-1] if r.random() < .3 and v != v[::-1] else change_one(v, r)

    def mean(self, v):
        return "Tuple(%s)" % ",".join(map(py, v))

    def spell(self, v, r):
        body = r.choice([", ", ","]).join(spell(x, r).replace(",", "{,}") for x in v)
        return (r.choice(["", "", "(x,y)="]) if len(v) == 2 else "") + r.choice(["(%s)", "\\left(%s\\right)", "( %s )"]) % body


class Set(Kind):
    weight = 3

    def value(self, r):
        return list(dict.fromkeys(several(r, r.choice([2, 3, 4]))))

    def near(self, v, r):
        return v[1:] if r.random() < .3 and len(v) > 2 else change_one(v, r)

    def mean(self, v):
        return "FiniteSet(%s)" % ",".join(map(py, v))

    def spell(self, v, r):
        parts = [spell(x, r).replace(",", "{,}") for x in r.sample(v, len(v))]
        return r.choice(["\\{%s\\}", "\\left\\{%s\\right\\}", "%s"]) % (" \\text{ and } " if r.random() < .2 and len(v) == 2 else ", ").join(parts)


class Interval(Kind):
    weight = 3

    def value(self, r):
        a = rational(r, True)
        b = a + abs(rational(r, True)) + 1
        low, high = r.random() < .5, r.random() < .5
        return r.choice([(a, b, low, high), (a, b, low, high), (None, b, False, high), (a, None, low, False)])

    def near(self, v, r):
        a, b, low, high = v
        return r.choice([(a, b, not low, high) if a is not None else (a, b + 1, low, high), (a, b, low, not high) if b is not None else (a - 1, b, low, high),
                         (a, b + 1, low, high) if b is not None else (a, a + 5, low, False), (a - 1, b, low, high) if a is not None else (b - 5, b, False, high)])

    def mean(self, v):
        a, b, low, high = v
        return f"Interval({py(a) if a is not None else '-oo'},{py(b) if b is not None else 'oo'},{not low},{not high})"

    def spell(self, v, r):
        a, b, low, high = v
        left, right = spell(a, r).replace(",", "{,}") if a is not None else "-\\infty", spell(b, r).replace(",", "{,}") if b is not None else r.choice(["\\infty", "+\\infty"])
        text = f"{'[' if low else '('}{left}, {right}{']' if high else ')'}"
        if a is not None and b is not None and r.random() < .2:
            m = (a + b) / 2
            text = r.choice(["%s\\cup %s", "%s \\cup %s"]) % tuple(r.sample([f"{'[' if low else '('}{left}, {spell(m, r)}]", f"({spell(m, r)}, {right}{']' if high else ')'}"], 2))
        return r.choice(["", "", "", "x\\in "]) + text


class Matrix(Kind):
    weight = 2

    def value(self, r):
        n, k = r.choice([(2, 2), (2, 1), (1, 2), (3, 1), (2, 3)])
        return [several(r, k) for _ in range(n)]

    def near(self, v, r):
        w = [list(x) for x in v]
        i = r.randrange(len(w))
        w[i] = change_one(w[i], r)
        return w

    def mean(self, v):
        return "Matrix([%s])" % ",".join("[%s]" % ",".join(map(py, row)) for row in v)

    def spell(self, v, r):
        env = r.choice(["pmatrix", "bmatrix"])
        return f"\\begin{{{env}}}" + r.choice([" \\\\ ", "\\\\"]).join(" & ".join(spell(x, r) for x in row) for row in v) + f"\\end{{{env}}}"


class Line(Kind):
    weight = .4

    def value(self, r):
        return r.choice([1, 2, 3, -1, 5]), r.choice([1, 2, -3, 4, -1]), r.randint(-9, 9)

    def near(self, v, r):
        a, b, c = v
        return r.choice([(a, -b, c), (a, b, c + 1), (a + 1 or 2, b, c), (b, a, c) if a != b else (a, b, c - 2)])

    def mean(self, v):
        return "Eq(%d*x+(%d)*y-(%d),0,evaluate=False)" % v

    def spell(self, v, r):
        k = r.choice([1, 1, -1, 2, 3])
        a, b, c = (k * u for u in v)
        term = lambda k, w: ("" if abs(k) == 1 else str(abs(k))) + w
        line = f"{'-' if a < 0 else ''}{term(a, 'x')}{'-' if b < 0 else '+'}{term(b, 'y')}"
        slope, rest = F(-a, b), F(c, b)
        tail = ("+" if rest > 0 else "-") + (f"\\frac{{{abs(rest.numerator)}}}{{{rest.denominator}}}" if rest.denominator > 1 else str(abs(rest.numerator))) if rest else ""
        head = ("-" if slope < 0 else "") + (f"\\frac{{{abs(slope.numerator)}}}{{{slope.denominator}}}x" if slope.denominator > 1 else term(slope.numerator, "x"))
        return r.choice([f"{line}={c}", f"{line}{-c:+d}=0" if c else f"{line}=0", f"y={head}{tail}"])


class Assignment(Kind):
    weight = 4

    def value(self, r):
        return r.choice(["x", "x", "n", "a", "k", "\\theta", "S", "x_1", "f(2)", "AB", "P(A)"]), rational(r)

    def near(self, v, r):
        return v[0], near_rational(v[1], r)

    def mean(self, v):
        return py(v[1])

    def spell(self, v, r):
        return r.choice(["", "", v[0] + "=", v[0] + " = "]) + spell(v[1], r)


class Count(Kind):
    weight = 2

    def value(self, r):
        n = r.randint(3, 12)
        return n, r.randint(1, n - 1)

    def near(self, v, r):
        n, k = v
        return r.choice([(n + 1, k), (n + 2, k)])

    def mean(self, v):
        return str(comb(*v))

    def spell(self, v, r):
        n, k = v
        return r.choice([f"\\binom{{{n}}}{{{k}}}", f"\\dbinom{{{n}}}{{{k}}}", f"\\frac{{{n}!}}{{{k}!\\cdot {n - k}!}}", f"\\frac{{{n}!}}{{{k}!{n - k}!}}", f"{{{n} \\choose {k}}}", f"\\binom{{{n}}}{{{n - k}}}", spell(F(comb(n, k)), r)])


def tree(r, depth):
    """(LaTeX, Python) of arithmetic on small whole numbers; the LaTeX of a sum or quotient is bracketed where it must be."""
    if depth == 0 or r.random() < .25:
        n = r.randint(1, 12)
        return str(n), f"Integer({n})", 3
    op = r.choice("+-*/^r+*/")
    a, b = tree(r, depth - 1), tree(r, depth - 1)
    wrap = lambda t, level: t[0] if t[2] >= level else f"\\left({t[0]}\\right)"
    if op in "+-":
        return f"{wrap(a, 1)}{op}{wrap(b, 2)}", f"({a[1]}{op}{b[1]})", 1
    if op == "*":
        return wrap(a, 2) + r.choice([" \\cdot ", "\\times "]) + wrap(b, 3), f"({a[1]}*{b[1]})", 2
    if op == "/":
        return f"\\frac{{{a[0]}}}{{{b[0]}}}", f"({a[1]}/{b[1]})", 3
    if op == "^":
        k = r.choice([2, 2, 3, -1, 0])
        return f"{wrap(a, 4) if a[2] < 3 or 'frac' in a[0] or '^' in a[0] or 'sqrt' in a[0] else a[0]}^{{{k}}}", f"({a[1]})**({k})", 2
    return f"\\sqrt{{{a[0]}}}", f"sqrt({a[1]})", 3


def value_of(python):
    """The rational value of a tree; None: it has none, or roots."""
    try:
        return eval(python, {"Integer": F, "__builtins__": {}})
    except (ZeroDivisionError, NameError):
        return None



class Tree(Kind):
    """Arithmetic on small whole numbers: each spelling of a value is a separate text."""
    weight = 2

    def value(self, r):
        while True:
            text, python, _ = tree(r, r.choice([1, 2, 3]))
            x = value_of(python)
            if x is not None and abs(x.numerator) < 10**9 and x.denominator < 10**6:
                return x, text

    def near(self, v, r):
        return near_rational(v[0], r), ""

    def mean(self, v):
        return py(v[0])

    def spell(self, v, r):
        k = r.randint(1, 9)
        return r.choice([v[1], f"\\left({v[1]}\\right)", f"{v[1]}+{k}-{k}", f"{k}+{v[1]}-{k}", f"\\frac{{{v[1]}}}{{1}}", spell(v[0], r)] if v[1] else [spell(v[0], r)])


KINDS = {k.__name__.lower(): k() for k in (Rational, Integer, Surd, Multiple, Polynomial, Fraction, Identity, Trigonometry, Logarithm, Complex, Tuple, Set, Interval, Matrix, Line, Assignment, Count, Tree)}


def group(kind, r):
    """Up to a hundred pairs of the spellings of one value and of three near it."""
    value = kind.value(r)
    texts = {}
    for v, n in [(value, 6)] + [(kind.near(value, r), 2) for _ in range(3)]:
        for _ in range(n):
            texts.setdefault(kind.spell(v, r), kind.mean(v))
    texts = list(texts.items())
    pairs = [(a, b) for a in texts for b in texts if a is not b]
    equal = [p for p in pairs if p[0][1] == p[1][1]]
    other = [p for p in pairs if p[0][1] != p[1][1]]
    return equal + r.sample(other, min(len(other), 100 - len(equal)))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("n", type=int)
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    names, weights = list(KINDS), [k.weight for k in KINDS.values()]
    seen, k = set(), 0
    while len(seen) < a.n:
        r = random.Random(f"{a.seed} {k}")
        name = r.choices(names, weights)[0]
        k += 1
        for i, ((gold, gm), (pred, pm)) in enumerate(group(KINDS[name], r)):
            if (gold, pred) not in seen and len(seen) < a.n:
                seen.add((gold, pred))
                print(json.dumps({"id": f"{name}-{k}-{i}", "kind": name, "gold": gold, "pred": pred, "gold_sympy": gm, "pred_sympy": pm}))


if __name__ == "__main__":
    main()
