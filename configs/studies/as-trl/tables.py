#!/usr/bin/env python3
"""The tables of docs/results/as-trl.md.

    tables.py               writes the tables between the page's marks, and its figure, from the CSV files
    tables.py --check       exits with status 1 if the page's tables or its figure differ from the files
    tables.py collect runs  makes as-trl.csv (a row a run) and as-trl-curves.csv (means over 15 steps and the seeds) from the runs of run.sh

Intervals are Welch's, of the difference of two means over unpaired seeds. Needs Python alone."""
import csv
import glob
import json
import math
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "..", "..", "..", "docs", "results", "as-trl.md")
RUNS, CURVES, FIGURE = (PAGE[:-3] + end for end in (".csv", "-curves.csv", ".svg"))
ARMS, SIDES, MARGIN, STEPS, EVERY = ["grpo", "dr_grpo", "dapo", "gspo"], ["tare", "trl"], 0.02, 300, 15
# measure: (key of tare's metrics, key of TRL's log)
MEASURES = {"reward": ("reward/mean", "reward"), "entropy": ("policy/entropy", "entropy"), "length": ("response_length/mean", "completions/mean_length"),
            "clipped": ("policy/clip_fraction", "clip_ratio/region_mean")}

# ---------------------------------------------------------------- from runs to files


def lines_of(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def measured(step, key):
    if key == "policy/clip_fraction":  # of the tokens that have an advantage; TRL's is of all
        return (step[key] or 0) * (1 - step["update/skipped_ratio"])
    return step[key]


def run_of(top, arm, side, seed):
    """Held-out reward, seconds and, for each measure, its values by step."""
    if side == "tare":
        steps = lines_of(os.path.join(top, "as-trl-" + arm, "seed-%s" % seed, "metrics.jsonl"))
        seconds, after = sum(s.get("time/step", 0) for s in steps), steps[-1]["eval/reward"]
        by = [(s["step"], s) for s in steps if "reward/mean" in s]
    else:
        folder = os.path.join(top, "as-trl", "trl-" + arm, "seed-%s" % seed)
        with open(os.path.join(folder, "eval", "results.json"), encoding="utf-8") as f:
            after = json.load(f)["reward"]
        with open(os.path.join(folder, "seconds.json"), encoding="utf-8") as f:
            seconds = json.load(f)["seconds"]
        # a step of tare is two of TRL's, of which the first has the sampling
        by = [((s["step"] + 1) // 2, s) for s in lines_of(os.path.join(folder, "log.jsonl")) if "loss" in s]
    curves = {m: [(step, measured(s, keys[side == "trl"])) for step, s in by if keys[side == "trl"] in s] for m, keys in MEASURES.items()}
    return after, seconds, curves


def deviation(x):
    mean = sum(x) / len(x)
    return math.sqrt(sum((v - mean) ** 2 for v in x) / (len(x) - 1))


def collect(top):
    rows, curves = [], []
    for arm in ARMS:
        for side in SIDES:
            folder = os.path.join(top, "as-trl-" + arm if side == "tare" else os.path.join("as-trl", "trl-" + arm))
            seeds = sorted(int(re.search(r"(\d+)$", p).group(1)) for p in glob.glob(os.path.join(folder, "seed-*")))
            found = [run_of(top, arm, side, seed) for seed in seeds]
            rows += [[arm, side, seed, "%.6f" % after, "%.2f" % seconds] for seed, (after, seconds, _) in zip(seeds, found)]
            for measure in MEASURES:
                for begin in range(0, STEPS, EVERY):
                    means = [[v for step, v in c[measure] if begin < step <= begin + EVERY] for _, _, c in found]
                    means = [sum(x) / len(x) for x in means]
                    curves.append([arm, side, measure, begin + EVERY, "%.6g" % (sum(means) / len(means)), "%.6g" % deviation(means)])
    for path, head, body in ((RUNS, ["arm", "side", "seed", "after", "seconds"], rows), (CURVES, ["arm", "side", "measure", "step", "mean", "deviation"], curves)):
        with open(path, "w", newline="", encoding="utf-8") as out:
            w = csv.writer(out, lineterminator="\n")
            w.writerow(head)
            w.writerows(body)
    print("%d runs" % len(rows))


# ---------------------------------------------------------------- statistics


def t_tail(t, n):
    """P(T > t) of Student's t with n degrees of freedom, t >= 0, by Simpson's rule over the angle: T = sqrt(n) tan(x)."""
    low, parts = math.atan(t / math.sqrt(n)), 2000
    h = (math.pi / 2 - low) / parts
    f = [max(math.cos(low + i * h), 0.0) ** (n - 1) for i in range(parts + 1)]
    area = h / 3 * (f[0] + f[-1] + 4 * sum(f[1:-1:2]) + 2 * sum(f[2:-1:2]))
    return area * math.exp(math.lgamma((n + 1) / 2) - math.lgamma(n / 2)) / math.sqrt(math.pi)


def t_quantile(p, n):
    """The t with P(T > t) = p."""
    low, high = 0.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if t_tail(middle, n) > p else (low, middle)
    return (low + high) / 2


def welch(a, b):
    """Difference of the means, its standard error, and the degrees of freedom."""
    va, vb = deviation(a) ** 2 / len(a), deviation(b) ** 2 / len(b)
    return sum(a) / len(a) - sum(b) / len(b), math.sqrt(va + vb), (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))


# ---------------------------------------------------------------- tables


def load(path):
    with open(path, newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def values(arm, side, column="after"):
    return [float(r[column]) for r in load(RUNS) if r["arm"] == arm and r["side"] == side]


def table(head, lines):
    return "\n".join(["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)] + ["| " + " | ".join(x) + " |" for x in lines])


def table_after():
    lines = []
    for arm in ARMS:
        ours, theirs = values(arm, "tare"), values(arm, "trl")
        gap, error, n = welch(ours, theirs)
        half90, half95 = t_quantile(0.05, n) * error, t_quantile(0.025, n) * error
        p = t_tail((MARGIN - abs(gap)) / error, n) if abs(gap) < MARGIN else 1 - t_tail((abs(gap) - MARGIN) / error, n)
        equal = "yes" if abs(gap) + half90 < MARGIN else "no"
        differ = "yes" if abs(gap) > half95 else "no"
        lines.append([arm, "%d, %d" % (len(ours), len(theirs)), "%.4f (%.4f)" % (sum(ours) / len(ours), deviation(ours)),
                      "%.4f (%.4f)" % (sum(theirs) / len(theirs), deviation(theirs)), "%+.4f" % gap, "%+.4f to %+.4f" % (gap - half90, gap + half90),
                      "%.2g" % p, equal, differ])
    return table(["arm", "seeds", "tare (s.d.)", "TRL (s.d.)", "difference", "90 % interval", "p, two one-sided", "equal", "different"], lines)


def median(x):
    x = sorted(x)
    return (x[(len(x) - 1) // 2] + x[len(x) // 2]) / 2


def table_seconds():
    lines = []
    for arm in ARMS:
        ours, theirs = values(arm, "tare", "seconds"), values(arm, "trl", "seconds")
        lines.append([arm] + ["%.1f (%.1f to %.1f)" % (median(x), min(x), max(x)) for x in (ours, theirs)] + ["%.0f" % (median(theirs) / median(ours))])
    return table(["arm", "tare, s", "TRL, s", "ratio of medians"], lines)


def table_curves():
    rows, lines = load(CURVES), []
    by = {(r["arm"], r["side"], r["measure"], int(r["step"])): r for r in rows}
    for arm in ARMS:
        for measure in MEASURES:
            cells = []
            for step in (EVERY, STEPS // 2, STEPS):
                a, b = (by[arm, side, measure, step] for side in SIDES)
                cells.append("%.3f, %.3f" % (float(a["mean"]), float(b["mean"])))
            lines.append([arm, measure] + cells)
    return table(["arm", "measure", "steps 1 to 15", "136 to 150", "286 to 300"], lines)


# ---------------------------------------------------------------- figure

COLOURS = {"tare": "#1f6fb4", "trl": "#d1661c"}


def panel(by, arm, measure, x0, y0, w, h):
    steps = list(range(EVERY, STEPS + 1, EVERY))
    at = {side: [by[arm, side, measure, s] for s in steps] for side in SIDES}
    top = max(m + d for c in at.values() for m, d in c) or 1
    x = lambda s: x0 + w * s / STEPS
    y = lambda v: y0 + h - h * max(v, 0) / top
    out = ['<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#999"/>' % (x0, y0, w, h),
           '<text x="%d" y="%d">%s: %s, 0 to %.3g</text>' % (x0, y0 - 5, arm, measure, top)]
    for side, c in at.items():
        edge = [(s, m + d) for s, (m, d) in zip(steps, c)] + [(s, m - d) for s, (m, d) in reversed(list(zip(steps, c)))]
        out.append('<polygon fill="%s" opacity="0.2" points="%s"/>' % (COLOURS[side], " ".join("%.1f,%.1f" % (x(s), y(v)) for s, v in edge)))
        out.append('<polyline fill="none" stroke="%s" stroke-width="1.5" points="%s"/>' % (COLOURS[side], " ".join("%.1f,%.1f" % (x(s), y(m)) for s, (m, _) in zip(steps, c))))
    return out


def figure():
    by = {(r["arm"], r["side"], r["measure"], int(r["step"])): (float(r["mean"]), float(r["deviation"])) for r in load(CURVES)}
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="980" height="640" font-family="sans-serif" font-size="11">', '<rect width="980" height="640" fill="white"/>']
    for i, arm in enumerate(ARMS):
        for j, measure in enumerate(MEASURES):
            out += panel(by, arm, measure, 20 + 240 * j, 30 + 150 * i, 215, 115)
    for k, side in enumerate(SIDES):
        out.append('<text x="%d" y="632" fill="%s">%s: mean and standard deviation over the seeds</text>' % (20 + 320 * k, COLOURS[side], {"tare": "tare", "trl": "TRL"}[side]))
    return "\n".join(out + ["</svg>"]) + "\n"


def written(page):
    for name, make in (("after", table_after), ("seconds", table_seconds), ("curves", table_curves)):
        page, n = re.subn(r"(<!-- table: %s -->\n\n)(?:\|[^\n]*\n)*" % name, lambda m: m.group(1) + make() + "\n", page)
        if n != 1:
            sys.exit("as-trl.md: %d marks <!-- table: %s -->, expected 1" % (n, name))
    return page


def main():
    if sys.argv[1:2] == ["collect"]:
        return collect(sys.argv[2])
    with open(PAGE, encoding="utf-8") as f:
        before = f.read()
    after, drawn = written(before), figure()
    if sys.argv[1:] == ["--check"]:
        with open(FIGURE, encoding="utf-8") as f:
            if after != before or f.read() != drawn:
                sys.exit("as-trl.md: its tables or its figure are not those of the CSV files; run configs/studies/as-trl/tables.py")
        return
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write(after)
    with open(FIGURE, "w", encoding="utf-8") as f:
        f.write(drawn)


main()
