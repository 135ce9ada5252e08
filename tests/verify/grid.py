#!/usr/bin/env python3
"""Every construct in every notation, in every frame, on either side: a grid of pairs for the math verifier.

    tests/verify/grid.py FROM TO [--each N]     one JSON line a pair, in the fields of shared/data/verify/math

A seed draws a value for each construct. All its notations are tried against one another, each in a frame drawn by the seed: words before
and after it, in the box or in \\text{}, on the side of the gold answer or of the completion. The label follows from the construction: two
notations of one value are equal, a notation of a near miss is not. --each: pairs for each construct and seed."""
import argparse, json, random
from fractions import Fraction as F

SMALL = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()
PARTS = {2: "half", 3: "third", 4: "quarter", 5: "fifth", 6: "sixth", 8: "eighth", 10: "tenth"}


def words(n):
    """n < 1,000,000 in English."""
    if n < 20:
        return SMALL[n]
    if n < 100:
        return TENS[n // 10] + ("-" + SMALL[n % 10] if n % 10 else "")
    if n < 1000:
        return SMALL[n // 100] + " hundred" + (" and " + words(n % 100) if n % 100 else "")
    return words(n // 1000) + " thousand" + (" " + words(n % 1000) if n % 1000 else "")


def text(s):
    return "\\text{%s}" % s


# ---------------------------------------------------------------- constructs: (notations of one value, notations of near misses)

def whole(r):
    n = r.choice([r.randint(2, 20), r.randint(21, 99), r.randint(100, 9999)])
    def forms(n):
        out = [str(n), text(words(n)), "\\mathbf{%d}" % n, "{\\bf %d}" % n, "\\mathtt{%d}" % n, "\\Large %d" % n, "%d.0" % n, "\\bbox[5px]{%d}" % n, "\\color{red}{%d}" % n, "{\\rm %d}" % n]
        return out + ["{:,}".format(n), "{:,}".format(n).replace(",", "\\,")] if n > 999 else out
    return forms(n), forms(n + 1) + forms(n * 10) + [text("minus " + words(n)), text(words(n) + " hundred"), text("not " + words(n))]


def fraction(r):
    b = r.choice(list(PARTS))
    a = r.choice([k for k in range(1, b) if F(k, b).denominator == b])
    def forms(a):
        plural = {"half": "halves"}.get(PARTS[b], PARTS[b] + "s") if a > 1 else PARTS[b]
        out = ["\\frac{%d}{%d}" % (a, b), "\\dfrac %d%d" % (a, b) if a < 10 and b < 10 else "\\frac{%d}{%d}" % (a, b), "%d/%d" % (a, b), "{%d \\over %d}" % (a, b), text("%s %s" % (words(a), plural)), text("%s-%s" % (words(a), plural)),
               "%d\\text{ out of }%d" % (a, b), "%d\\text{ in }%d" % (a, b), text("%d out of %d" % (a, b))]
        return out
    return forms(a), ["\\frac{%d}{%d}" % (b, a + b), text("%s and %s" % (words(a), words(b))), "%d\\text{ out of }%d" % (a, b + 1), text("%s and a half" % words(a)), "%d\\text{ and }%d" % (a, b), text("%s %s" % (words(a + 1 if a + 1 < b else 1 if a > 1 else 7), PARTS[b] + "s"))]


def mixed(r):
    w, b = r.randint(2, 12), r.choice([2, 4])
    def forms(w):
        return ["%d\\frac{1}{%d}" % (w, b), "\\frac{%d}{%d}" % (w * b + 1, b), str(w) + {2: ".5", 4: ".25"}[b], text("%s and a %s" % (words(w), PARTS[b])), text("%d and a %s" % (w, PARTS[b])), "%d\\,\\tfrac{1}{%d}" % (w, b)]
    return forms(w), forms(w + 1) + [text("%s %ss" % (words(w), "half" if b == 2 else "quarter")).replace("halfs", "halves"), str(w)]


def repeating(r):
    a = r.choice([1, 2, 4, 5, 7, 8])
    b = r.randint(1, 9)
    if a == b:
        b = a % 9 + 1
    def forms(a, b):
        return ["0.\\overline{%d%d}" % (a, b), "0.\\dot{%d}\\dot{%d}" % (a, b), "0.\\dot %d\\dot %d" % (a, b), "0.(%d%d)" % (a, b), "\\frac{%d}{99}" % (10 * a + b), "0.\\bar{%d%d}" % (a, b)]
    return forms(a, b), forms(b, a) + ["0.%d%d" % (a, b), "0.%d\\overline{%d}" % (a, b) if b != a else "0"]


def scientific(r):
    m, e = r.randint(2, 9), r.choice([3, 4, 5, -2, -3])
    def forms(m, e):
        return ["%d \\times 10^{%d}" % (m, e), "%d \\cdot 10^{%d}" % (m, e), "%de%d" % (m, e), "%d\\text{E%d}" % (m, e), "%d\\mathrm{e}{%d}" % (m, e), "%d*10^{%d}" % (m, e), "\\num{%de%d}" % (m, e),
                str(m * 10**e) if e > 0 else "0." + str(m).rjust(-e, "0")]
    return forms(m, e), forms(m, e + 1) + forms(m + 1, e)


def ratio(r):
    a, b = r.sample([1, 2, 3, 5, 7], 2)
    def forms(a, b):
        return ["%d:%d" % (a, b), "%d : %d" % (a, b), "%d{:}%d" % (a, b), "%d\\text{ to }%d" % (a, b), text("%d to %d" % (a, b)), text("%s to %s" % (words(a), words(b))), "%d:%d" % (2 * a, 2 * b)]
    return forms(a, b), forms(b, a) + forms(a, b + 1) + ["\\$%d.50" % a]


def measure(r):
    small, big, by, small_words, big_words = r.choice([("cm", "m", 100, "centimeters", "meters"), ("m", "km", 1000, "meters", "kilometers"), ("g", "kg", 1000, "grams", "kilograms"), ("min", "h", 60, "minutes", "hours"), ("mL", "L", 1000, "milliliters", "liters")])
    n = r.randint(2, 30)
    def forms(n):
        return ["%d\\text{ %s}" % (n, big), "%d\\,\\mathrm{%s}" % (n, big), text("%d %s" % (n, big_words)), text("%s %s" % (words(n), big_words)), "%d\\text{ %s}" % (n * by, small), "%d\\text{ %s}" % (n * by, small_words), "\\SI{%d}{%s}" % (n, big)]
    return forms(n), forms(n + 1) + ["%d\\text{ %s}" % (n, small), text("%d %s" % (n * 10, big_words)), text("%s %s" % (words(n), small_words))]


def speed(r):
    n = r.randint(2, 90)
    def forms(n):
        return ["%d\\text{ m/s}" % n, "%d\\,\\mathrm{m\\,s^{-1}}" % n, "%d\\text{ ms}^{-1}" % n, text("%d meters per second" % n), "\\SI{%d}{m/s}" % n, "\\qty{%d}{\\meter\\per\\second}" % n, "%d\\ \\frac{\\text{m}}{\\text{s}}" % n]
    return forms(n), forms(n + 1) + ["%d\\text{ m}" % n, "%d\\text{ m/s}^2" % n, text("%d meters" % n)]


def matrix(r):
    a = [r.randint(-5, 9) for _ in range(4)]
    def forms(a):
        out = ["\\begin{%s}%d & %d \\\\ %d & %d\\end{%s}" % (k, *a, k) for k in ("pmatrix", "bmatrix", "Bmatrix", "psmallmatrix", "bmatrix*")]
        return out + ["\\pmatrix{%d & %d \\cr %d & %d}" % tuple(a), "[[%d, %d], [%d, %d]]" % tuple(a), "[%d, %d; %d, %d]" % tuple(a), "\\begin{bmatrix}%d, %d \\\\ %d, %d\\end{bmatrix}" % tuple(a),
                      "\\left(\\begin{array}{cc}%d & %d \\\\ \\hline %d & %d\\end{array}\\right)" % tuple(a)]
    return forms(a), forms([a[0], a[2] + 20, a[1], a[3]]) + forms([a[0] + 1] + a[1:])


def vector(r):
    a = [r.choice([-3, -2, 2, 3, 4, 5]) for _ in range(3)]
    def forms(a):
        s = "%d%s{i}%+d%s{j}%+d%s{k}"
        out = [s % (a[0], u, a[1], u, a[2], u) for u in ("\\mathbf", "\\hat", "\\vec")]
        return out + ["(%d, %d, %d)" % tuple(a), "\\langle %d, %d, %d \\rangle" % tuple(a), "<%d, %d, %d>" % tuple(a), "\\begin{pmatrix}%d \\\\ %d \\\\ %d\\end{pmatrix}" % tuple(a), "%d\\hat{\\imath} %+d\\hat{\\jmath} %+d\\hat{k}" % tuple(a), "[%d, %d, %d]^T" % tuple(a)]
    return forms(a), forms([a[0] + 1] + a[1:]) + forms([a[0], a[1], a[2] + 7])


def polar(r):
    n, d = r.randint(2, 9), r.choice([30, 45, 60, 120])
    def forms(n, d):
        x = F(d, 180)
        t = "\\frac{%s\\pi}{%d}" % ("" if x.numerator == 1 else x.numerator, x.denominator)
        return ["%de^{i%s}" % (n, t), "%d\\operatorname{cis}\\left(%s\\right)" % (n, t), "%d\\text{ cis } %d^\\circ" % (n, d), "%d\\left(\\cos %s + i\\sin %s\\right)" % (n, t, t), "%d\\angle %d^\\circ" % (n, d), "%d\\exp\\left(i%s\\right)" % (n, t)]
    return forms(n, d), forms(n + 1, d) + forms(n, 75)


def congruence(r):
    m = r.randint(5, 19)
    k = r.randint(0, m - 1)
    def forms(k, m):
        return ["%d \\pmod{%d}" % (k, m), "x \\equiv %d \\pmod{%d}" % (k, m), "x \\equiv %d \\bmod %d" % (k, m), "x \\equiv %d \\ (\\text{mod } %d)" % (k + m, m), "%d \\ (\\bmod\\ %d)" % (k + m, m)]
    return forms(k, m), forms((k + 1) % m, m) + forms(k, m + 1)


def base(r):
    n, b = r.randint(20, 200), r.choice([2, 3, 5, 8])
    def digits(n, b):
        return (digits(n // b, b) if n >= b else "") + str(n % b)
    def forms(n, b):
        d = digits(n, b)
        return ["%s_{%d}" % (d, b), "%s_%d" % (d, b), "(%s)_{%d}" % (d, b), "%s\\text{ (base %d)}" % (d, b), "%s\\text{ in base }%d" % (d, b), "%s_{\\text{%s}}" % (d, SMALL[b]), text("%s in base %d" % (d, b))]
    return forms(n, b), forms(n + 1, b) + ["%s_{%d}" % (digits(n, b), b + 1)]


def members(r):
    xs = r.sample(range(-9, 20), 3)
    def forms(xs):
        s = [str(x) for x in r.sample(xs, len(xs))]
        return [", ".join(s), "\\{%s\\}" % ", ".join(s), "%s, \\text{ and } %s" % (", ".join(s[:-1]), s[-1]), "%s \\text{ or } %s" % (", ".join(s[:-1]), s[-1]), "x = " + ", ".join(s), "x \\in \\{%s\\}" % ", ".join(s), ", ".join("x = " + x for x in s), text("%s, and %s" % (", ".join(s[:-1]), s[-1]))]
    return forms(xs), forms([xs[0] + 40] + xs[1:]) + forms(xs[:2])


def bound(r):
    a, up = r.randint(-9, 9), r.random() < .5
    def forms(a, up):
        return ["x %s %d" % ("\\ge" if up else "\\le", a), "x\\text{ is at %s }%d" % ("least" if up else "most", a), text("x is %s than or equal to %d" % ("greater" if up else "less", a)), "%d %s x" % (a, "\\le" if up else "\\ge"),
                "x %s %d" % ("\\geqq" if up else "\\leqq", a)]
    return forms(a, up), forms(a + 1, up) + forms(a, not up) + ["x\\text{ is %s than }%d" % ("greater" if up else "less", a)]


def without(r):
    a = r.randint(-9, 9)
    def forms(a):
        return ["(-\\infty, %d) \\cup (%d, \\infty)" % (a, a), "\\mathbb{R} \\setminus \\{%d\\}" % a, "\\mathbb{R} - \\{%d\\}" % a, "\\text{all real numbers except }%d" % a, text("all real numbers except %d" % a), text("all reals except for %d" % a)]
    return forms(a), forms(a + 1) + ["\\mathbb{R}", text("all real numbers"), "\\{%d\\}" % a]


def function(r):
    a, b = r.randint(2, 9), r.randint(2, 9)
    def forms(a, b):
        return ["f(x) = %dx + %d" % (a, b), "f(t) = %dt + %d" % (a, b), "f(n) = %d + %dn" % (b, a), "f\\left(y\\right) = %dy + %d" % (a, b)]
    return forms(a, b), forms(a, b + 1) + forms(a + 1, b) + ["f(t) = %dx + %d" % (a, b)]


def options(r):
    a, b, c = r.sample("ABCD", 3)
    return ["%s, %s" % (a, b), "%s%s" % (a, b), "%s \\text{ and } %s" % (b, a), text("%s and %s" % (a, b)), "\\{%s, %s\\}" % (b, a)], ["%s, %s" % (a, c), "%s%s" % (a, c), "%s%s%s" % (a, b, c), a]


def option(r):
    a, b = r.sample("ABCD", 2)
    def forms(a):
        return [a, "(%s)" % a, "\\text{%s}" % a, "\\textbf{(%s)}" % a, "%s)" % a, "\\mathrm{%s}" % a, text("Option " + a)]
    return forms(a), forms(b)


def progression(r):
    d, n, m = r.choice([2, 3, 4, 6]), r.choice([1, 2]), r.randint(1, 3)
    def forms(d, n):
        step, degrees = "%s\\pi" % ("" if n == 1 else n), 180 // d
        out = ["x = \\frac{\\pi}{%d} + %s, %s \\in \\mathbb{Z}" % (d, step.replace("\\pi", "%s\\pi" % k), k) for k in "knm"]
        return out + ["\\left\\{\\frac{\\pi}{%d} + %dk\\pi \\mid k \\in \\mathbb{Z}\\right\\}" % (d, n), "x = %d^\\circ + %d^\\circ n, n \\in \\mathbb{Z}" % (degrees, 180 * n), "\\frac{\\pi}{%d} - %dk\\pi, k \\in \\mathbb{Z}" % (d, n),
                      "x = \\frac{\\pi}{%d} + %d\\pi + %dk\\pi \\ (k \\in \\mathbb{Z})" % (d, n * m, n), "x = \\frac{\\pi}{%d} + %dk\\pi\\text{ for any integer }k" % (d, n)]
    return forms(d, n), forms(d + 1, n) + forms(d, 3 - n) + ["\\frac{\\pi}{%d}" % d]


def residue(r):
    m = r.randint(3, 11)
    k = r.randint(0, m - 1)
    def forms(k, m):
        return ["x \\equiv %d \\pmod{%d}" % (k, m), "x = %dk + %d, k \\in \\mathbb{Z}" % (m, k), "x = %dn - %d, n \\in \\mathbb{Z}" % (m, m - k), "\\{%dk + %d : k \\in \\mathbb{Z}\\}" % (m, k), "x \\equiv %d \\pmod{%d}" % (k - m, m)]
    return forms(k, m), forms((k + 1) % m, m) + forms(k, m + 1) + ["x = %d" % k if k else "x = %d" % m]


def clock(r):
    h, m, late = r.randint(1, 11), r.choice([5, 15, 30, 45, 50]), r.random() < .5
    def forms(h, m, late):
        half = ["p.m.", "PM", "pm"] if late else ["a.m.", "AM", "am"]
        return ["%d:%02d\\text{ %s}" % (h, m, x) for x in half] + ["%d{:}%02d \\text{ %s}" % (h, m, half[1]), text("%d:%02d %s" % (h, m, half[0])), "%d:%02d\\,\\mathrm{%s}" % (h, m, half[2])]
    return forms(h, m, late), forms(h, m, not late) + forms(h % 11 + 1, m, late) + forms(h, (m + 5) % 60, late)


def duration(r):
    h, m = r.randint(1, 9), r.choice([5, 12, 15, 20, 30, 45])
    def forms(h, m):
        return ["%d\\text{ hours }%d\\text{ minutes}" % (h, m), "%d\\text{ h }%d\\text{ min}" % (h, m), "%d\\text{ minutes}" % (60 * h + m), "%d\\text{ hours and }%d\\text{ minutes}" % (h, m), "%d\\text{ s}" % (3600 * h + 60 * m)]
    return forms(h, m), forms(h + 1, m) + forms(h, m + 2) + ["%d.%02d\\text{ hours}" % (h, m) if m not in (0,) else "1", "%d\\text{ minutes}" % (h + m)]


def arc(r):
    d, m = r.randint(1, 89), r.choice([6, 15, 30, 45, 54])
    def forms(d, m):
        return ["%d^\\circ %d'" % (d, m), "%d^{\\circ}%d^{\\prime}" % (d, m), "%s^\\circ" % (F(60 * d + m, 60) + 0 if 0 else ("%.2f" % (d + m / 60)).rstrip("0")), "%d\\text{ degrees }%d\\text{ minutes}" % (d, m), "%d^\\circ %d' 0''" % (d, m)]
    return forms(d, m), forms(d + 1, m) + ["%d.%d^\\circ" % (d, m) if m not in (30,) else "%d^\\circ 31'" % d, "%d^\\circ" % d]


def decimal(r):
    w, c = r.randint(1000, 99999), r.choice([5, 25, 75, 48, 9])
    def forms(w, c):
        g = "{:,}".format(w)
        return ["%d.%02d" % (w, c), "%s.%02d" % (g, c), "%s{,}%02d" % (g.replace(",", "."), c), "%s{,}%02d" % (g.replace(",", "\\,"), c), "%s.%02d" % (g.replace(",", "{,}"), c), "%s.%02d" % (g.replace(",", "'"), c)]
    return forms(w, c), forms(w + 1, c) + ["%d" % (100 * w + c), "%d.%02d" % (w, c + 1)]


def derived(r):
    small, big, by = r.choice([("J", "kJ", 1000), ("V", "kV", 1000), ("\\Omega", "k\\Omega", 1000), ("mA", "A", 1000), ("W", "MW", 10**6), ("Hz", "MHz", 10**6), ("Pa", "kPa", 1000), ("mmol", "mol", 1000)])
    n = r.randint(2, 30)
    def forms(n):
        return ["%d\\ \\mathrm{%s}" % (n, big), "%d\\ \\mathrm{%s}" % (n * by, small), "%d\\,\\mathrm{%s}" % (n, big), "%d \\times 10^{%d}\\ \\mathrm{%s}" % (n, len(str(by)) - 1, small)]
    return forms(n), forms(n + 1) + ["%d\\ \\mathrm{%s}" % (n, small), "%d\\ \\mathrm{%s}" % (n * by, big)]


def open_bound(r):
    a = r.randint(2, 50)
    def forms(a):
        return ["x \\ge %d" % a, "[%d, \\infty)" % a, "\\ge %d" % a, text("%d or more" % a), text("at least %d" % a), text("no less than %d" % a), "%d\\text{ or greater}" % a, "x \\not< %d" % a]
    return forms(a), forms(a + 1) + [str(a), text("more than %d" % a), text("%d or less" % a), "(%d, \\infty)" % a]


def integral(r):
    n, b, c = r.randint(1, 4), r.randint(1, 4), r.randint(1, 5)
    def forms(n, b, c):
        return ["\\frac{%d}{%d}" % (c * b**(n + 1), n + 1), "\\int_0^{%d} %dx^{%d}\\,dx" % (b, c, n), "\\int_{0}^{%d} %dt^{%d} dt" % (b, c, n), "%d\\int_0^%d x^%d \\, dx" % (c, b, n), "\\left[\\frac{%dx^{%d}}{%d}\\right]_0^{%d}" % (c, n + 1, n + 1, b), "\\frac{%d}{%d}x^{%d}\\Big|_0^{%d}" % (c, n + 1, n + 1, b)]
    return forms(n, b, c), forms(n + 1, b + 1, c) + ["\\int_1^{%d} %dx^{%d}\\,dx" % (b + 1, c, n + 5), "\\frac{%d}{%d}" % (c * b**(n + 1) + 1, n + 1)]


def limit(r):
    a, c = r.randint(1, 9), r.randint(2, 9)
    def forms(a, c):
        return [str(2 * a * c), "\\lim_{x \\to %d} \\frac{%d(x^2 - %d)}{x - %d}" % (a, c, a * a, a), "\\lim_{t\\to %d} %d(t + %d)" % (a, c, a), "%d\\lim_{h \\to 0} \\frac{(%d + h)^2 - %d}{h}" % (c, a, a * a), "\\lim_{x \\to 0} \\frac{\\sin(%dx)}{x}" % (2 * a * c), "\\lim_{x \\to \\infty} \\frac{%dx^2 + x}{x^2 - 1}" % (2 * a * c)]
    return forms(a, c), forms(a + 1, c) + forms(a, c + 1)


def date(r):
    months = "January February March April June July August September October November December".split()
    month, day = r.choice(months), r.randint(1, 28)
    suffix = lambda d: "th" if 10 < d < 20 else {1: "st", 2: "nd", 3: "rd"}.get(d % 10, "th")
    def forms(month, day):
        return [text("%s %d" % (month, day)), "\\text{%s }%d" % (month, day), text("%d %s" % (day, month)), text("%s %d%s" % (month, day, suffix(day))), text("the %d%s of %s" % (day, suffix(day), month)), text("%s. %d" % (month[:3], day))]
    return forms(month, day), forms(month, day % 28 + 1) + forms(r.choice([m for m in months if m != month]), day)


CONSTRUCTS = [whole, fraction, mixed, repeating, scientific, ratio, measure, speed, matrix, vector, polar, congruence, base, members, bound, without, function, options, option,
              progression, residue, clock, duration, arc, decimal, derived, open_bound, integral, limit, date]


# ---------------------------------------------------------------- frames: what stands around the value, in the formula

def inner(s):
    """The words of a notation that is all \\text{}; None: it has mathematics, too."""
    return s[6:-1] if s.startswith("\\text{") and s.count("{") == 1 and s.endswith("}") else None


FRAMES = [
    lambda s: s,
    lambda s: s + ".",
    lambda s: "\\text{The answer is }" + s,
    lambda s: "\\text{Answer: }" + s,
    lambda s: "\\text{the final result is } " + s,
    lambda s: "\\text{So the answer is }%s\\text{.}" % s,
    lambda s: s + "\\text{, because of symmetry}",
    lambda s: s + "\\text{ since the sum is even}",
    lambda s: "\\textbf{Answer:}\\ " + s,
    lambda s: "\\displaystyle " + s,
    lambda s: "\\boxed{%s}" % s,
    lambda s: "\\text{We get } " + s,
    lambda s: text("The answer is " + inner(s)) if inner(s) else s,
    lambda s: text("It is %s, as claimed." % inner(s)) if inner(s) else s,
]
SENTENCES = ["The answer is $%s$.", "\\boxed{%s}", "So we have $\\boxed{%s}$", "**Final Answer:** $%s$", "Therefore \\[ %s \\]", "<answer>$%s$</answer>", "#### $%s$"]


def pairs(seed, each):
    for construct in CONSTRUCTS:
        r = random.Random("%s %d" % (construct.__name__, seed))
        equal, near = construct(r)
        near = [n for n in near if n not in equal]
        for k in range(each):
            expected = k % 2 == 0
            gold, answer = r.choice(equal), r.choice(equal if expected else near)
            if r.random() < .3:
                gold, answer = answer, gold
            framed = r.choice(FRAMES)(answer)
            if r.random() < .2:  # the frame on the gold answer's side
                gold, framed = r.choice(FRAMES[:10])(gold), answer
            yield {"id": "%s-%d-%d" % (construct.__name__, seed, k), "kind": construct.__name__, "gold": gold, "pred": r.choice(SENTENCES) % framed, "gold_is_latex": True,
                   "extract": ["latex", "expr"], "boxed_priority": 0, "expected": expected, "note": answer}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("first", type=int)
    p.add_argument("end", type=int)
    p.add_argument("--each", type=int, default=20)
    p.add_argument("--step", type=int, default=1)
    a = p.parse_args()
    for seed in range(a.first, a.end, a.step):
        for pair in pairs(seed, a.each):
            print(json.dumps(pair))


if __name__ == "__main__":
    main()
