#!/usr/bin/env python3
"""The tables of docs/results/which-estimator.md.

    tables.py            writes the tables between the page's marks, and its figure, from the CSV files in this folder
    tables.py --check    exits with status 1 if the page's tables or its figure differ from the files
    tables.py collect runs       makes which-estimator.csv from the runs of configs/studies/which: the seeds that all arms of a study have finished
    tables.py norms RUN ...      makes which-estimator-norms.csv: the length of each update of runs that kept all their checkpoints
    tables.py measured FILE      makes which-estimator-variance.csv from tare variance's variance.jsonl

A difference is paired by seed. Its interval: bootstrap over seeds, 4,000 resamplings with a fixed seed. p: two-sided, all sign flips. Holm: over the arms of
one task. Needs Python alone."""
import array
import bisect
import csv
import glob
import json
import os
import random
import re
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "..", "..", "..", "docs", "results", "which-estimator.md")
RUNS, VARIANCE, NORMS, FIGURE = (PAGE[:-3] + end for end in (".csv", "-variance.csv", "-norms.csv", ".svg"))
KINDS = ["max3", "ones", "add1", "rev4", "add2", "sub2", "mul1", "sort4"]  # of format and cold, most frequent right form first
ONCE = ["study", "arm", "lr", "clip", "seed"]
LEAST = 5  # whole seeds that a study needs to have a table
NUMBERS = ["before", "after", "wrong_first", "wrong_last", "grad_norm", "clipped", "advantage_max"]

# ---------------------------------------------------------------- from runs to a file


def settings(folder):
    section, found = "", {}
    for line in open(os.path.join(folder, "config.ini"), encoding="utf-8"):
        line = line.strip()
        if line.startswith("["):
            section = line[1:-1]
        elif " = " in line and not line.startswith(";"):
            key, value = line.split(" = ", 1)
            found[section + "." + key] = value
    return found


def arm_of(c):
    name = c["estimator.plugin"]
    if name == "bv_blend":
        return "bv_blend, " + c.get("estimator.bv_blend.mapping", "exp")
    if name == "eb_blend":
        prior = c.get("estimator.eb_blend.prior", "1")
        return "eb_blend, " + c["estimator.eb_blend.scale"] + ("" if float(prior) == 1 else ", prior " + prior)
    return name


def median(x):
    x = sorted(x)
    return (x[(len(x) - 1) // 2] + x[len(x) // 2]) / 2


def row_of(study, folder):
    c = settings(folder)
    steps = [json.loads(line) for line in open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8")]
    last = steps[-1]
    if last.get("step") != int(c["train.steps"]) or "eval/reward" not in last:
        return None
    body = [s for s in steps if "reward/all_wrong_groups" in s]
    wrong = [s["reward/all_wrong_groups"] for s in body]
    norm = [s["grad_norm"] for s in body]
    row = {"study": study, "arm": arm_of(c), "lr": float(c["train.lr"]), "clip": float(c["train.max_grad_norm"]), "seed": int(c["run.seed"])}
    row["before"] = steps[0].get("eval/reward", "") if steps[0]["step"] == 0 else ""
    row["after"] = last["eval/reward"]
    row["wrong_first"] = sum(wrong[:10]) / 10
    row["wrong_last"] = sum(wrong[-20:]) / 20
    row["grad_norm"] = median(norm)
    row["clipped"] = sum(n > 1 for n in norm) / len(norm)
    row["advantage_max"] = max(s.get("estimator/advantage_max", 0) for s in body)
    for kind in KINDS:
        row[kind] = last.get("eval/reward/" + kind, "")
    return row


def whole_seeds(folder):
    """The rows of the seeds that all arms of a sweep have finished; a seed that lacks one would favour the arms that come first."""
    with open(os.path.join(folder, "sweep.json"), encoding="utf-8") as file:
        arms = {re.sub(r"_seed-\d+$", "", cell["name"]) for cell in json.load(file)["cells"]}
    by = {}
    for run in sorted(glob.glob(os.path.join(folder, "*_seed-*"))):
        row = row_of(os.path.basename(folder)[len("which-"):], run) if os.path.exists(os.path.join(run, "metrics.jsonl")) else None
        if row:
            by.setdefault(row["seed"], []).append(row)
    return [rows for _, rows in sorted(by.items()) if len(rows) == len(arms)]


def collect(top):
    rows = []
    for folder in sorted(glob.glob(os.path.join(top, "which-*"))):
        seeds = whole_seeds(folder)
        print("%s: %d whole seeds%s" % (os.path.basename(folder), len(seeds), "" if len(seeds) >= LEAST else ", left out: fewer than %d" % LEAST))
        rows += sum(seeds, []) if len(seeds) >= LEAST else []
    rows.sort(key=lambda r: [r[k] for k in ONCE])
    with open(RUNS, "w", newline="", encoding="utf-8") as out:
        w = csv.DictWriter(out, ONCE + NUMBERS + KINDS, lineterminator="\n")
        w.writeheader()
        for r in rows:
            w.writerow({k: "%.6g" % v if isinstance(v, float) else v for k, v in r.items()})
    print("%d runs in %s" % (len(rows), os.path.relpath(RUNS)))


def weights(path):
    """All numbers of a safetensors file of single precision, tensors in the order of their names."""
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8 : 8 + size])
    out = array.array("f")
    for name in sorted(k for k in head if k != "__metadata__"):
        if head[name]["dtype"] != "F32":
            sys.exit("%s: %s is %s, not F32" % (path, name, head[name]["dtype"]))
        begin, end = head[name]["data_offsets"]
        out.frombytes(data[8 + size + begin : 8 + size + end])
    return out


def norms(runs):
    """run, first and last step, mean length of an update, length of the way from the first to the last."""
    lines = ["run,first,last,update,way"]
    for run in runs:
        files = sorted(glob.glob(os.path.join(run, "checkpoints", "step-*", "model.safetensors")))
        steps = [int(re.search(r"step-(\d+)", f).group(1)) for f in files]
        before = first = weights(files[0])
        total = 0.0
        for file in files[1:]:
            now = weights(file)
            total += sum((a - b) ** 2 for a, b in zip(now, before)) ** 0.5
            before = now
        way = sum((a - b) ** 2 for a, b in zip(before, first)) ** 0.5
        lines.append("%s,%d,%d,%.6g,%.6g" % (os.path.basename(run), steps[0], steps[-1], total / (steps[-1] - steps[0]), way))
    open(NORMS, "w", encoding="utf-8").write("\n".join(lines) + "\n")


def measured(path):
    """A row an estimator, state and checkpoint: directions, and the shares of the kinds in the squared gradient and in the signal."""
    names = ["step", "estimator", "state", "direction", "ahead", "ahead_low", "ahead_high", "mean_direction"]
    with open(VARIANCE, "w", newline="", encoding="utf-8") as out:
        w = csv.DictWriter(out, names + ["square " + k for k in KINDS] + ["signal " + k for k in KINDS], lineterminator="\n")
        w.writeheader()
        for x in (json.loads(line) for line in open(path, encoding="utf-8")):
            if x["kind"] != "estimator":
                continue
            row = {"step": x["step"], "estimator": x["estimator"], "state": x["state"], "direction": x["direction"][0], "mean_direction": x["mean_direction"][0]}
            row["ahead"], row["ahead_low"], row["ahead_high"] = x["direction_ahead"]
            for part in x["parts"]["clusters"]:
                row["square " + part["name"]], row["signal " + part["name"]] = part["square"], part["signal"]
            w.writerow({k: "%.5g" % v if isinstance(v, float) else v for k, v in row.items()})


# ---------------------------------------------------------------- statistics


def interval(x):
    rng = random.Random(1)
    means = sorted(sum(rng.choices(x, k=len(x))) / len(x) for _ in range(4000))
    return means[100], means[3899]


def half_sums(x):
    sums = [0.0]
    for v in x:
        sums = [s + v for s in sums] + [s - v for s in sums]
    return sums


def sign_flips(x):
    """p of |sum x| under all sign flips: sums of the first half meet those of the second."""
    seen, k = abs(sum(x)) - 1e-12, len(x) // 2
    first, second = half_sums(x[:k]), sorted(half_sums(x[k:]))
    n = sum(bisect.bisect_right(second, -seen - s) + len(second) - bisect.bisect_left(second, seen - s) for s in first)
    return min(1.0, n / (len(first) * len(second)))


T_5 = 2.7764  # Student's t, 4 degrees of freedom, 97.5 %


def one_sided(x):
    """The share of all sign flips whose sum is at least the one seen."""
    sums = half_sums(x)
    return sum(v >= sum(x) - 1e-12 for v in sums) / len(sums)


def holm(p):
    order, most, out = sorted(range(len(p)), key=lambda i: p[i]), 0.0, [0.0] * len(p)
    for k, i in enumerate(order):
        most = max(most, min(1.0, (len(p) - k) * p[i]))
        out[i] = most
    return out


# ---------------------------------------------------------------- tables


def load(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def values(rows, study, arm, column="after", lr=None):
    return {int(r["seed"]): float(r[column]) for r in rows if r["study"] == study and r["arm"] == arm and (lr is None or float(r["lr"]) == lr)}


def compare(rows, study, arms):
    """{arm: (mean, difference, low, high, wins, p, Holm's p, pairs)} to GRPO, over the seeds that all arms have."""
    own = {a: values(rows, study, a) for a in arms}
    seeds = sorted(set.intersection(*(set(v) for v in own.values())))
    out, names = {}, [a for a in arms if a != "grpo"]
    gaps = {a: [own[a][s] - own["grpo"][s] for s in seeds] for a in names}
    p = [sign_flips(gaps[a]) for a in names]
    for a, raw, corrected in zip(names, p, holm(p)):
        low, high = interval(gaps[a])
        out[a] = (sum(own[a][s] for s in seeds) / len(seeds), sum(gaps[a]) / len(seeds), low, high, sum(g > 0 for g in gaps[a]), raw, corrected, len(seeds))
    out["grpo"] = (sum(own["grpo"][s] for s in seeds) / len(seeds), 0, 0, 0, 0, 1, 1, len(seeds))
    return out


ARMS = ["grpo", "rloo", "dr_grpo", "maxrl", "james_stein", "quantile", "bv_blend, exp", "bv_blend, reciprocal", "bv_blend, linear", "bv_beta", "eb_blend, none",
        "eb_blend, prompt", "eb_blend, cluster", "eb_blend, cluster, prior 0.2"]


def table(head, lines):
    return "\n".join(["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)] + ["| " + " | ".join(x) + " |" for x in lines])


def mark(p):
    return "\\*" if p < 0.05 else ""


def arms_of(rows, study):
    """The arms of a study, in their order; none when no seed has all of them yet."""
    arms = [a for a in ARMS if values(rows, study, a)]
    return arms if arms and set.intersection(*(set(values(rows, study, a)) for a in arms)) else []


def table_main(rows):
    studies = [s for s in ("format", "format-unclipped", "arithmetic", "rewrite", "bandit") if arms_of(rows, s)]
    by = {s: compare(rows, s, arms_of(rows, s)) for s in studies}
    lines = [["seeds"] + ["%d" % by[s]["grpo"][7] for s in studies], ["grpo: mean"] + ["%.3f" % by[s]["grpo"][0] for s in studies]]
    for arm in [a for a in ARMS[1:] if any(a in by[s] for s in studies)]:
        cells = []
        for s in studies:
            x = by[s].get(arm)
            cells.append("%+.3f [%+.3f, %+.3f]%s" % (x[1], x[2], x[3], mark(x[6])) if x else "-")
        lines.append([arm] + cells)
    return table(["less GRPO, by seed"] + studies, lines)


def table_one(rows, study):
    by = compare(rows, study, arms_of(rows, study))
    lines = []
    for arm in arms_of(rows, study):
        x = by[arm]
        some = ["baseline", "", "", "", ""] if arm == "grpo" else ["%+.4f" % x[1], "%+.4f to %+.4f" % (x[2], x[3]), "%d of %d" % (x[4], x[7]), "%.2g" % x[5], "%.2g" % x[6]]
        lines.append([arm, "%.4f" % x[0]] + some)
    return table(["arm", "mean", "difference", "95 % interval", "above GRPO", "p", "p (Holm)"], lines)


def table_why(rows, study):
    lines = []
    for arm in arms_of(rows, study):
        mean = lambda column: sum(values(rows, study, arm, column).values()) / len(values(rows, study, arm, column))
        largest = max(values(rows, study, arm, "advantage_max").values())
        lines.append([arm] + ["%.2f" % mean(c) for c in ("wrong_first", "wrong_last", "grad_norm", "clipped")] + ["%.3g" % largest])
    return table(["arm", "all wrong, first 10 steps", "last 20", "median gradient norm", "steps clipped", "largest advantage"], lines)


def table_kinds(rows, study):
    lines = []
    for arm in arms_of(rows, study):
        cells = [values(rows, study, arm, k) for k in KINDS]
        lines.append([arm] + ["%.2f" % (sum(c.values()) / len(c)) for c in cells])
    return table(["arm"] + KINDS, lines)


def table_control(rows, study):
    """Every arm, learning rate and clip of the study and its control, against the study's GRPO; seeds that the control has."""
    own = [r for r in rows if r["study"] == study + "-control" or (r["study"] == study and r["arm"] in ("grpo", "bv_blend, linear", "rloo"))]
    groups = {}
    for r in own:
        groups.setdefault((r["study"] != study, r["arm"], float(r["lr"]), float(r["clip"])), {})[int(r["seed"])] = float(r["after"])
    shared = set.intersection(*(set(g) for g in groups.values()))
    base = values(rows, study, "grpo")
    return table_against(groups, base, sorted(shared))


def table_against(groups, base, seeds):
    lines = []
    for key in sorted(groups):
        gaps = [groups[key][s] - base[s] for s in seeds]
        some = ["baseline", "", "", ""]
        if any(gaps):
            low, high = interval(gaps)
            some = ["%+.4f" % (sum(gaps) / len(gaps)), "%+.4f to %+.4f" % (low, high), "%d of %d" % (sum(g > 0 for g in gaps), len(gaps)), "%.2g" % sign_flips(gaps)]
        mean = sum(groups[key][s] for s in seeds) / len(seeds)
        lines.append([key[1], "%g" % key[2], "%g" % key[3], "%.4f" % mean] + some)
    return table(["arm", "learning rate", "clip", "mean", "difference", "95 % interval", "above GRPO", "p"], lines)


def table_contrasts(rows):
    """Differences that take GRPO, or BV-Blend, away from their clip of 1."""
    runs = {"BV-Blend": values(rows, "format", "bv_blend, linear"), "MaxRL": values(rows, "format", "maxrl")}
    runs["BV-Blend, steps of one length"] = values(rows, "format-control", "bv_blend, linear")
    runs["GRPO, steps of one length"] = values(rows, "format-control", "grpo", lr=5e-4)
    lines = []
    for a, b in (("BV-Blend", "GRPO, steps of one length"), ("BV-Blend, steps of one length", "GRPO, steps of one length"), ("MaxRL", "GRPO, steps of one length"),
                 ("BV-Blend", "MaxRL")):
        gaps = [runs[a][s] - runs[b][s] for s in sorted(set(runs[a]) & set(runs[b]))]
        low, high = interval(gaps)
        lines.append([a, b, "%+.4f" % (sum(gaps) / len(gaps)), "%+.4f to %+.4f" % (low, high), "%d of %d" % (sum(g > 0 for g in gaps), len(gaps)), "%.2g" % sign_flips(gaps)])
    return table(["arm", "less", "difference", "95 % interval", "above", "p"], lines)


def table_cold(rows):
    groups = {}
    for r in rows:
        if r["study"] == "cold":
            groups.setdefault((0, r["arm"], float(r["lr"]), float(r["clip"])), {})[int(r["seed"])] = float(r["after"])
    shared = set.intersection(*(set(g) for g in groups.values()))
    return table_against(groups, next(g for k, g in groups.items() if k[1] == "grpo" and k[3] == 1), sorted(shared))


def table_smollm2(rows):
    """Five seeds: intervals of Student's t, and the one planned test, one-sided, of the mean of MaxRL and BV-Blend against GRPO."""
    arms, base, before = arms_of(rows, "smollm2"), values(rows, "smollm2", "grpo"), values(rows, "smollm2", "grpo", "before")
    seeds = sorted(set.intersection(*(set(values(rows, "smollm2", a)) for a in arms)))
    own = {a: [values(rows, "smollm2", a)[s] for s in seeds] for a in arms}
    gain = [a for a in arms if a.startswith(("maxrl", "bv_blend"))]
    own["mean of %s and %s" % tuple(gain)] = [sum(own[a][i] for a in gain) / len(gain) for i in range(len(seeds))]
    lines = [["before training", "%.4f" % (sum(before[s] for s in seeds) / len(seeds)), "", "", "", ""]]
    for arm, x in own.items():
        mean, gaps = sum(x) / len(x), [v - base[s] for v, s in zip(x, seeds)]
        if arm == "grpo":
            lines.append([arm, "%.4f" % mean, "baseline", "", "", ""])
            continue
        gap, half = sum(gaps) / len(gaps), T_5 * (sum((g - sum(gaps) / len(gaps)) ** 2 for g in gaps) / (len(gaps) - 1) / len(gaps)) ** 0.5
        p = "%.2g" % one_sided(gaps) if arm.startswith("mean of") else ""
        lines.append([arm, "%.4f" % mean, "%+.4f" % gap, "%+.4f to %+.4f" % (gap - half, gap + half), "%d of %d" % (sum(g > 0 for g in gaps), len(gaps)), p])
    return table(["arm", "mean", "difference", "95 % interval (t)", "above GRPO", "p, one-sided"], lines)


def table_halves(rows):
    """The seeds that had been looked at before the others were run, and the others alone."""
    arms, base = arms_of(rows, "format"), values(rows, "format", "grpo")
    lines = []
    for arm in arms[1:]:
        own = values(rows, "format", arm)
        first, second = ([own[s] - base[s] for s in sorted(base) if (s > 110) == later] for later in (False, True))
        low, high = interval(second)
        above, p = "%d of %d" % (sum(g > 0 for g in second), len(second)), "%.2g" % sign_flips(second)
        lines.append([arm, "%+.4f" % (sum(first) / len(first)), "%+.4f" % (sum(second) / len(second)), "%+.4f to %+.4f" % (low, high), above, p])
    return table(["arm", "seeds 101 to 110", "seeds 111 to 120", "95 % interval", "above GRPO", "p"], lines)


def table_norms():
    return table(["run", "mean length of an update", "way from start to end"], [[r["run"], r["update"], r["way"]] for r in load(NORMS)])


SHOWN = [("grpo", "-"), ("rloo", "-"), ("maxrl", "-"), ("james_stein", "-"), ("quantile", "-"), ("bv_blend mapping=exp", "warmed"), ("bv_blend mapping=linear", "warmed"),
         ("bv_beta", "warmed"), ("eb_blend scale=none", "warmed"), ("eb_blend scale=prompt", "warmed"), ("eb_blend scale=cluster", "warmed"),
         ("eb_blend scale=cluster prior=0.2 floor=0.02", "warmed"), ("(mean reward)", "-"), ("(best constant)", "-")]


def measured_rows(rows):
    """(name, state): {step: row}"""
    out = {key: {} for key in SHOWN}
    for r in rows:
        if (r["estimator"], r["state"]) in out:
            out[r["estimator"], r["state"]][int(r["step"])] = r
    return out


def table_variance(rows):
    by, steps = measured_rows(rows), sorted({int(r["step"]) for r in rows})
    lines = []
    for key in SHOWN:
        cells = ["%s (%s)" % key if key[1] != "-" else key[0]]
        for step in steps:
            r = by[key][step]
            gap = "%+.3f" % float(r["ahead"])
            if r["ahead_low"]:
                gap += " [%+.3f, %+.3f]" % (float(r["ahead_low"]), float(r["ahead_high"]))
            cells.append("%.3f" % float(r["direction"]) if key[0] == "grpo" else gap)
        lines.append(cells)
    return table(["direction; less that of grpo"] + ["step %d" % s for s in steps], lines)


ARM_AT_WEIGHTS = dict(zip(["rloo", "maxrl", "james_stein", "quantile", "bv_blend, exp", "bv_blend, linear", "bv_beta", "eb_blend, none", "eb_blend, prompt", "eb_blend, cluster",
                           "eb_blend, cluster, prior 0.2"], SHOWN[1:]))


def tau(x, y):
    """Kendall's tau-b."""
    sign = lambda v: (v > 0) - (v < 0)
    pairs = [(sign(x[i] - x[j]), sign(y[i] - y[j])) for i in range(len(x)) for j in range(i)]
    both = sum(a * b for a, b in pairs)
    return both / (sum(a != 0 for a, b in pairs) * sum(b != 0 for a, b in pairs)) ** 0.5


def table_predicts(rows, at_weights):
    """Relates two measurements at fixed weights to the outcome: the lead in direction over the checkpoints,
    and the squared gradient outside of add1 at step 50."""
    by, outcome = measured_rows(at_weights), compare(rows, "format", arms_of(rows, "format"))
    lead, outside, gain = {"grpo": 0.0}, {"grpo": 1 - float(by["grpo", "-"][50]["square add1"])}, {"grpo": 0.0}
    for arm, key in ARM_AT_WEIGHTS.items():
        lead[arm] = sum(float(r["ahead"]) for r in by[key].values()) / len(by[key])
        outside[arm] = 1 - float(by[key][50]["square add1"])
        gain[arm] = outcome[arm][1]
    arms = sorted(gain, key=lambda a: gain[a])
    lines = [[a, "%+.3f" % lead[a], "%.2f" % outside[a], "%+.3f" % gain[a]] for a in arms]
    order = lambda x: "%+.2f" % tau([x[a] for a in arms], [gain[a] for a in arms])
    lines.append(["Kendall's tau with the last column", order(lead), order(outside), ""])
    return table(["arm", "lead in direction, mean of the checkpoints", "squared gradient outside of add1, step 50", "held-out reward less GRPO's"], lines)


def tables():
    rows, at_weights = load(RUNS), load(VARIANCE)
    made = {"main": table_main(rows), "norms": table_norms(), "variance": table_variance(at_weights), "predicts": table_predicts(rows, at_weights)}
    for study in sorted({r["study"] for r in rows}):
        if study == "cold":
            made["cold"] = table_cold(rows)
        elif study == "smollm2":
            made["smollm2"], made["why smollm2"] = table_smollm2(rows), table_why(rows, study)
        elif study.endswith("-control"):
            made["control"] = table_control(rows, study[: -len("-control")])
            made["contrasts"] = table_contrasts(rows)
        elif arms_of(rows, study):
            made["table " + study] = table_one(rows, study)
            made["why " + study] = table_why(rows, study)
            if study == "format":
                made["kinds"], made["halves"] = table_kinds(rows, study), table_halves(rows)
    return made


# ---------------------------------------------------------------- figure

LEFT, PANEL, GAP, TOP, ROW = 190, 170, 16, 46, 20  # pixels: names of the arms, width of a task, between tasks, above and height of an arm
LOW, HIGH = -0.14, 0.14  # the range of every axis
TASKS = [("format", None), ("arithmetic", -0.03), ("rewrite", -0.03), ("bandit", -0.03)]  # with the bound of the rule


def panel(by, arms, task, bound, x0):
    """SVG of one task: a dot and a line an arm, the mean difference and its interval."""
    at = lambda v: x0 + PANEL * (min(max(v, LOW), HIGH) - LOW) / (HIGH - LOW)
    bottom = TOP + ROW * len(arms)
    out = ['<text x="%.1f" y="20" text-anchor="middle" font-weight="bold">%s</text>' % (at(0), task),
           '<text x="%.1f" y="36" text-anchor="middle" fill="#555">%d seeds, GRPO %.3f</text>' % (at(0), by["grpo"][7], by["grpo"][0]),
           '<rect x="%.1f" y="%d" width="%d" height="%d" fill="none" stroke="#bbb"/>' % (x0, TOP, PANEL, ROW * len(arms)),
           '<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#555"/>' % (at(0), at(0), TOP, bottom)]
    if bound is not None:
        out.append('<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#b00" stroke-dasharray="4 3"/>' % (at(bound), at(bound), TOP, bottom))
    for v in (-0.1, 0, 0.1):
        out.append('<text x="%.1f" y="%d" text-anchor="middle" fill="#555">%s</text>' % (at(v), bottom + 16, "%+.1f" % v if v else "0"))
    for i, arm in enumerate(arms):
        y, (_, gap, low, high, _, _, corrected, _) = TOP + ROW * i + ROW / 2, by[arm]
        out.append('<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#1565c0" stroke-width="2"/>' % (at(low), at(high), y, y))
        fill = "#1565c0" if corrected < 0.05 else "#fff"
        out.append('<circle cx="%.1f" cy="%.1f" r="4" fill="%s" stroke="#1565c0" stroke-width="2"/>' % (at(gap), y, fill))
    return out


def figure(rows):
    tasks = [t for t in TASKS if arms_of(rows, t[0])]
    arms = [a for a in arms_of(rows, "format") if a != "grpo"]
    width, height = LEFT + (PANEL + GAP) * len(tasks), TOP + ROW * len(arms) + 26
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12">' % (width, height, width, height),
           "<title>Held-out reward less GRPO's, by estimator and task</title>", '<rect width="100%" height="100%" fill="#fff"/>']
    out += ['<text x="%d" y="%.1f" text-anchor="end">%s</text>' % (LEFT - 10, TOP + ROW * i + ROW / 2 + 4, a) for i, a in enumerate(arms)]
    for i, (task, bound) in enumerate(tasks):
        out += panel(compare(rows, task, arms_of(rows, task)), arms, task, bound, LEFT + (PANEL + GAP) * i)
    return "\n".join(out + ["</svg>"]) + "\n"


def page(check):
    made, used, drawn = tables(), [], figure(load(RUNS))
    text = open(PAGE, encoding="utf-8").read()

    def put(found):
        used.append(found.group(1))
        if found.group(1) not in made:
            sys.exit("which-estimator.md: there is no table '%s'; there are %s" % (found.group(1), ", ".join(sorted(made))))
        return "<!-- table: %s -->\n\n%s\n\n<!-- end -->" % (found.group(1), made[found.group(1)])

    new = re.sub(r"<!-- table: ([^>]*?) -->.*?<!-- end -->", put, text, flags=re.S)
    if not used:
        sys.exit("which-estimator.md: no table is marked")
    if check and new != text:
        sys.exit("which-estimator.md has other tables than its CSV files give; run configs/studies/which/tables.py")
    if check and (not os.path.exists(FIGURE) or open(FIGURE, encoding="utf-8").read() != drawn):
        sys.exit("which-estimator.svg is not what the CSV files give; run configs/studies/which/tables.py")
    if not check:
        open(PAGE, "w", encoding="utf-8").write(new)
        open(FIGURE, "w", encoding="utf-8").write(drawn)
    print("%d tables and a figure" % len(used))


if __name__ == "__main__":
    if sys.argv[1:2] == ["collect"] and len(sys.argv) == 3:
        collect(sys.argv[2])
    elif sys.argv[1:2] == ["norms"] and len(sys.argv) > 2:
        norms(sys.argv[2:])
    elif sys.argv[1:2] == ["measured"] and len(sys.argv) == 3:
        measured(sys.argv[2])
    elif sys.argv[1:] in ([], ["--check"]):
        page(bool(sys.argv[1:]))
    else:
        sys.exit(__doc__)
