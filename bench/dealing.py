#!/usr/bin/env python3
"""Simulates how an update's rollouts are dealt to ranks: whole groups, single rollouts, or a mixture.

    bench/dealing.py [RUN/rollouts] [--minibatch 64] [--shards 8] [--micro-tokens 16384] ...

Prints the share of the ranks' time that is used, and the rows that are computed more than once,
for each number of ranks. With a folder, lengths are those of a run's dumps, in the dumps' order
(prompts: characters / --chars). Without, they are log-normal: standard deviation 0.7 within a
group and 0.5 between groups, cut off at --most, for several means; the seed is fixed.

    groups     as core/update/microbatch.c does: groups, the costliest first, to the shard with the
               least rows; a shard's rollouts in order into micro-batches of --micro-tokens rows
    rollouts   rollouts, the longest first, to the micro-batch that is shortest with them; one that
               does not have the group's prompt adds it
    moved      whole groups, the costliest first, to the shortest micro-batch; then rollouts of the
               longest micro-batch to others, while that makes it shorter

The last two make as many micro-batches as --shards times the lowest number of rounds in which all
rollouts fit. Micro-batch i goes to rank i mod R. Ranks exchange gradients layer by layer, so R
consecutive ones take as long as the longest. A micro-batch costs its rows and --pair rows per query
and key: 4.5e-5 is Qwen2.5-7B's 0.40 MFLOP of attention against 15.2 GFLOP of products, at 0.6 of
their speed.
"""
import argparse
import collections
import glob
import json
import os
import random

Rollout = collections.namedtuple("Rollout", "group prompt rows")


def log_normal(mean, args):
    """Minibatches of groups, each [Rollout]."""
    rng, within, between = random.Random(1), 0.7, 0.5
    shift = -(within**2 + between**2) / 2
    for _ in range(args.batches):
        groups = []
        for g in range(args.minibatch // args.group):
            level = mean * pow(2.718281828459045, shift + rng.gauss(0, between))
            lengths = [level * pow(2.718281828459045, rng.gauss(0, within)) for _ in range(args.group)]
            groups.append([Rollout(g, args.prompt, max(1, min(args.most, int(n)))) for n in lengths])
        yield groups


def dumped(folder, args):
    """The same from a run's dumps; an incomplete last minibatch of a step is left out."""
    for path in sorted(glob.glob(os.path.join(folder, "step-*.jsonl"))):
        groups, prompt = collections.OrderedDict(), {}
        with open(path) as f:
            for line in f:
                row = json.loads(line)
                if "prompt" in row:
                    prompt[row["group"]] = max(1, round(len(row["prompt"]) / args.chars))
                groups.setdefault(row["group"], []).append(Rollout(row["group"], prompt[row["group"]], max(1, row["length"] - 1)))
        groups = list(groups.values())
        step = max(1, args.minibatch // len(groups[0]))
        for first in range(0, len(groups) - step + 1, step):
            yield groups[first : first + step]


def cost_of(group):
    return group[0].prompt + sum(r.rows for r in group)


def deal_groups(groups, args):
    """Micro-batches [rollouts] in the order in which ranks take them."""
    load, where = [0] * args.shards, {}
    for k in sorted(range(len(groups)), key=lambda k: (-cost_of(groups[k]), k)):
        where[k] = min(range(args.shards), key=lambda s: (load[s], s))
        load[where[k]] += cost_of(groups[k])
    shards = []
    for s in range(args.shards):
        micros, rows, group = [], 0, None
        for r in (r for k in range(len(groups)) if where[k] == s for r in groups[k]):
            new = 0 if group == r.group else r.prompt
            if not micros or rows + new + r.rows > args.micro_tokens:
                micros.append([])
                rows, new = 0, r.prompt
            micros[-1].append(r)
            rows += new + r.rows
            group = r.group
        shards.append(micros)
    return [m[i] for i in range(max(map(len, shards))) for m in shards if i < len(m)]


class Bin:
    """A micro-batch while rollouts are dealt: rows, and the number of rollouts of each group."""

    def __init__(self):
        self.rows, self.items, self.groups = 0, [], collections.Counter()

    def after(self, r):
        return self.rows + r.rows + (0 if self.groups[r.group] else r.prompt)

    def without(self, r):
        return self.rows - r.rows - (r.prompt if self.groups[r.group] == 1 else 0)

    def add(self, r):
        self.rows = self.after(r)
        self.items.append(r)
        self.groups[r.group] += 1

    def remove(self, r):
        self.rows = self.without(r)
        self.items.remove(r)
        self.groups[r.group] -= 1


def bins_to_micros(bins):
    """The longest micro-batches first, so that those of a round are about equally long."""
    return [sorted(b.items) for b in sorted(bins, key=lambda b: -b.rows) if b.items]


def fill(groups, n, args):
    """Rollouts, the longest first, into n micro-batches; None if one does not fit."""
    bins = [Bin() for _ in range(n)]
    for r in sorted((r for group in groups for r in group), key=lambda r: (-r.rows, r.group)):
        best = min(range(n), key=lambda b: (bins[b].after(r), b))
        if bins[best].items and bins[best].after(r) > args.micro_tokens:
            return None
        bins[best].add(r)
    return bins


def move(groups, n, args):
    """Whole groups into n micro-batches, the costliest first; then, while the longest micro-batch
    gets shorter, one of its rollouts to another one."""
    bins = [Bin() for _ in range(n)]
    for group in sorted(groups, key=lambda group: (-cost_of(group), group[0].group)):
        to = min(bins, key=lambda b: b.rows)
        for r in group:
            to.add(r)
    most = args.rows_most * sum(b.rows for b in bins)
    while True:
        longest, rows = max(bins, key=lambda b: b.rows), sum(b.rows for b in bins)
        allowed = most if longest.rows <= args.micro_tokens else float("inf")
        pairs = [(max(longest.without(r), b.after(r)), longest.without(r) + b.after(r), i, k)
                 for k, r in enumerate(longest.items) for i, b in enumerate(bins)
                 if b is not longest and rows - longest.rows - b.rows + longest.without(r) + b.after(r) <= allowed]
        best = min(pairs, default=None)
        if not best or best[0] >= longest.rows or longest.rows * n <= args.near * rows:
            break
        r = longest.items[best[3]]
        longest.remove(r)
        bins[best[2]].add(r)
    return None if any(b.rows > args.micro_tokens and len(b.items) > 1 for b in bins) else bins


def deal_with(how):
    def deal(groups, args):
        rounds = max(1, -(-sum(map(cost_of, groups)) // (args.shards * args.micro_tokens)))
        while True:
            bins = how(groups, rounds * args.shards, args)
            if bins:
                return bins_to_micros(bins)
            rounds += 1

    return deal


def micro_cost(micro, args):
    rows = pairs = 0
    group = None
    for r in micro:
        if group != r.group:
            rows, pairs, group = rows + r.prompt, pairs + r.prompt**2 / 2, r.group
        rows, pairs = rows + r.rows, pairs + r.rows * (r.prompt + r.rows / 2)
    return rows, rows + args.pair * pairs


def simulate(batches, deal, ranks, args):
    """(share of the ranks' time used, time in rows, rows computed)"""
    used = time = rows = 0
    for groups in batches:
        costs = [micro_cost(m, args) for m in deal(groups, args)]
        rows += sum(c[0] for c in costs)
        used += sum(c[1] for c in costs)
        time += sum(max(c[1] for c in costs[i : i + ranks]) for i in range(0, len(costs), ranks))
    return used / (ranks * time), time, rows


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", nargs="?", help="a run's rollouts folder")
    for name, value in (("minibatch", 64), ("group", 8), ("shards", 8), ("micro-tokens", 16384), ("most", 8192), ("prompt", 200), ("batches", 60)):
        p.add_argument(f"--{name}", type=int, default=value)
    p.add_argument("--chars", type=float, default=1, help="characters of a token of a prompt")
    p.add_argument("--near", type=float, default=1.05, help="moved: stop at this ratio of the longest micro-batch to the mean")
    p.add_argument("--rows-most", type=float, default=1.1, help="moved: at most this ratio of rows to those of whole groups")
    p.add_argument("--pair", type=float, default=4.5e-5)
    p.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4, 8])
    args = p.parse_args()
    cases = [("dump", list(dumped(args.folder, args)))] if args.folder else [(f"mean {m}", list(log_normal(m, args))) for m in (800, 1500, 2500)]
    if not all(batches for _, batches in cases):
        p.error(f"{args.folder}: no step-*.jsonl with a minibatch of {args.minibatch} rollouts")
    ways = (deal_groups, deal_with(fill), deal_with(move))
    print("| lengths | ranks | used: groups | rollouts | moved | time / groups': rollouts | moved | rows / groups': rollouts | moved |\n|---|" + "---:|" * 8)
    for name, batches in cases:
        for ranks in args.ranks:
            a, *rest = (simulate(batches, deal, ranks, args) for deal in ways)
            cells = [f"{100 * x[0]:.0f} %" for x in (a, *rest)] + [f"{x[1] / a[1]:.2f}" for x in rest] + [f"{x[2] / a[2]:.3f}" for x in rest]
            print(f"| {name} | {ranks} | {' | '.join(cells)} |")


main()
