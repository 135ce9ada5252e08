"""Estimators turn rewards into advantages, phase by phase (tare/estimator.h)."""

import ctypes as c
import math
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, List, Optional

from . import abi
from .columns import AXES, Batch, finite, fresh, judged, plain
from .errors import TareError
from .plugin import Opened


@dataclass
class Step:
    """The outputs of compute: advantage and rollout_weight as one list for each group, baseline,
    scale and confidence as one number for each group, NaN where there is none.
    """

    advantage: List[List[float]]
    rollout_weight: List[List[float]]
    baseline: List[float]
    scale: List[float]
    confidence: List[float]
    token_advantage: Optional[List[List[float]]]
    extra_groups: int


@dataclass
class FlatStep:
    """The outputs of compute as arrays over all groups: advantage and rollout_weight [N],
    token_advantage [T] or None, the others [M]. NumPy arrays where NumPy is installed.
    """

    advantage: Any
    rollout_weight: Any
    baseline: Any
    scale: Any
    confidence: Any
    token_advantage: Any
    extra_groups: int


def _flat(groups):
    return [x for group in groups for x in group]


def _cut(flat, sizes):
    flat = list(flat) if isinstance(flat, list) else flat.tolist()
    return [flat[b - s: b] for s, b in zip(sizes, accumulate(sizes))]


def add_parts(plugin, phase, size, n, make):
    """Adds n parts of `size` doubles from zeros, in their order: bit-identical to the engine.
    make(i, part) fills a part.
    """
    total = (abi.f64 * max(size, 1))()
    for i in range(n if size else 0):
        part = (abi.f64 * size)()
        make(i, part)
        for k, x in enumerate(part):
            if not math.isfinite(x):
                raise TareError("%s: %s: number %d of part %d's sums is %r" % (plugin.name, phase, k, i, x), 61)
            total[k] += x
    return total


class Estimator(Opened):
    """An instance with its state.

    step() runs prepare, compute, collect and record from the state before; apply() makes the change of state that the last step() collected
    for. n_clusters: K of the codebook, 0 without one. The column "updated_logprob" is not available: collect and record are called before
    the policy step.
    """

    kind = abi.KIND_ESTIMATOR
    table_type = abi.EstimatorTable
    required = ("compute",)

    def __init__(self, name, n_clusters=0, run_seed=0, instance=None, **parameters):
        super().__init__(name, run_seed=run_seed, instance=instance, n_clusters=n_clusters, **parameters)
        self.lacks(["updated_logprob"], "this host")
        self.steps, self._collected, self._records, self._size = 0, None, None, self._sizes()
        self.gives_tokens = bool(self._table.flags & abi.ESTIMATOR_GIVES_TOKENS)

    @property
    def by_prompt(self):
        """True if the state is kept by prompt: every step must then identify its prompts
        (prompt_uid).
        """
        return bool(self._table.record)

    def _sum(self, phase, function, batch, size):
        return add_parts(self, phase, size, batch.n_groups if function else 0,
                         lambda m, part: self._call(phase, function, self._self, c.byref(batch), m, part))

    def _take_records(self, batch):
        """Makes a record of each group: (groups, prompts, records) as in tare_update."""
        n, size = batch.n_groups, self._size.record
        uids, records = (abi.u64 * max(n, 1))(*batch.prompt_uid[:n]), (abi.f64 * max(n * size, 1))()
        for m in range(n if self._table.record else 0):
            part = (abi.f64 * max(size, 1))()
            self._call("record", self._table.record, self._self, c.byref(batch), m, part)
            if not all(map(math.isfinite, part)):
                raise TareError("%s: record: the record of group %d is not finite" % (self.name, m), 61)
            records[m * size: (m + 1) * size] = part[:size]
        return n, uids, records

    def _check_outputs(self, out):
        """Checks outputs like the engine: written, finite, in range. NaN is none."""
        for what, values in (("advantage", out.advantage), ("weight of a rollout", out.rollout_weight), ("token's advantage", out.token_advantage)):
            if values is not None and not finite(values):
                raise TareError("%s: compute: not every %s was written and is finite" % (self.name, what), 61)
        if len(out.rollout_weight) and min(out.rollout_weight) < 0:
            raise TareError("%s: compute: a weight of a rollout is below 0" % self.name, 61)
        if any(map(math.isinf, out.baseline)):
            raise TareError("%s: compute: a baseline must be finite, or NaN for none" % self.name, 61)
        if any(math.isinf(s) or s < 0 for s in out.scale):
            raise TareError("%s: compute: a scale must be finite and at least 0, or NaN for none" % self.name, 61)
        if any(w < 0 or w > 1 for w in out.confidence):
            raise TareError("%s: compute: a confidence must be in [0, 1], or NaN for none" % self.name, 61)
        if out.extra_groups < 0:
            raise TareError("%s: compute: asks for %d more groups" % (self.name, out.extra_groups), 80)

    def step_flat(self, reward, sizes, lengths=None, **columns):
        """One step on flat arrays: reward [N]; sizes: rollouts of each group, in order, or one number for all; lengths [N]: tokens of each
        rollout, context included, 1 without it; sampled [T], turns [N]: see columns.Batch. Columns by keyword, flat (columns.py has their
        names): prompt_uid, cluster, row_json [M]; verdict, finish, completion, off_policy, policy_version [N]; component,
        component_verdict [N, C]; turn_reward, turn_state, turn_finish [U]; entropy, logprob, ref_logprob, token, segment, segment_reward [T].
        Returns a FlatStep; nothing of the state changes before apply(). prepare, collect and record, where the plugin has them, are called
        once per group. Rollouts whose verdict is timeout or crashed are not shown to the plugin; their advantage and weight are 0."""
        self.metrics.clear()
        if self.by_prompt and columns.get("prompt_uid") is None:
            raise TareError("%s: keeps its state by prompt; pass the identifiers of the prompts (prompt_uid)" % self.name, 13)
        part = judged(reward, sizes, lengths, columns)
        if part is None:
            return self._step(reward, sizes, lengths, columns)
        *chosen, places, full = part
        return self._spread(self._step(*chosen), places, full)

    @staticmethod
    def _spread(out, places, full):
        """Spreads the outputs for a part of the rollouts to all of them."""
        def whole(values, axis, fill, type_=abi.f64):
            if values is None:
                return None
            array, _ = fresh(type_, full[axis], fill)
            for at, x in zip(places[axis], values):
                array[at] = x
            return plain(array, full[axis])

        return FlatStep(whole(out.advantage, abi.AXIS_ROLLOUT, 0), whole(out.rollout_weight, abi.AXIS_ROLLOUT, 0),
                        *[whole(x, abi.AXIS_GROUP, math.nan) for x in (out.baseline, out.scale, out.confidence)],
                        whole(out.token_advantage, abi.AXIS_TOKEN, 0, abi.f32), out.extra_groups)

    def _step(self, reward, sizes, lengths, columns):
        x = Batch(self, self.steps, reward, sizes, lengths, **columns)
        b = x.raw
        self._check_clusters(columns.get("cluster"))
        n, m, t = b.n_rollouts, b.n_groups, b.n_tokens
        prepared = self._sum("prepare", self._table.prepare, b, self._size.prepare)
        (advantage, pa), (weight, pw), *facts = [fresh(abi.f64, k, fill) for k, fill in
                                                 ((n, math.nan), (n, 1.0), (m, math.nan), (m, math.nan), (m, math.nan))]
        tokens = fresh(abi.f32, t, math.nan) if self.gives_tokens else (None, None)
        raw = abi.sized(abi.Advantages, advantage=pa, rollout_weight=pw, token_advantage=tokens[1], baseline=facts[0][1], scale=facts[1][1],
                        confidence=facts[2][1])
        self._call("compute", self._table.compute, self._self, c.byref(b), prepared, c.byref(raw))
        out = FlatStep(plain(advantage, n), plain(weight, n), *[plain(array, m) for array, _ in facts],
                       plain(tokens[0], t) if self.gives_tokens else None, raw.extra_groups)
        for i in x.context if self.gives_tokens else ():
            out.token_advantage[i] = 0  # not read
        self._check_outputs(out)
        self._collected = self._sum("collect", self._table.collect, b, self._size.collect)
        self._records = self._take_records(b)
        return out

    def _check_clusters(self, clusters):
        if "cluster" in self.wants and clusters is not None and any(not -1 <= k < max(self.n_clusters, 0) for k in clusters):
            raise TareError("%s: clusters must be in [0, %d), or -1 for none" % (self.name, self.n_clusters), 13)

    def step(self, rewards, lengths=None, **columns):
        """Like step_flat on lists by group: rewards [groups][rollouts]; columns of rollouts in the
        same shape, of tokens and turns [groups][rollouts][entries], of groups [groups]. Returns a
        Step.
        """
        rewards = [[float(r) for r in group] for group in rewards]
        sizes = [len(group) for group in rewards]
        lengths = None if lengths is None else [int(x) for x in _flat(lengths)]
        flat = {}
        for name, values in columns.items():
            axis = AXES.get(name, abi.AXIS_GROUP)
            if values is not None and axis not in (abi.AXIS_GROUP, abi.AXIS_ONE):
                self._check_nesting(name, values, axis != abi.AXIS_ROLLOUT)
            if values is not None and axis == abi.AXIS_TOKEN and lengths is not None:
                self._same_lengths(name, _flat(values), lengths)
            if values is None or axis in (abi.AXIS_GROUP, abi.AXIS_ONE):
                flat[name] = values
            else:
                flat[name] = _flat(values) if axis == abi.AXIS_ROLLOUT else _flat(_flat(values))
        out = self.step_flat(_flat(rewards), sizes, lengths, **flat)
        lengths = [1] * sum(sizes) if lengths is None else lengths
        groups = [list(x) if isinstance(x, list) else x.tolist() for x in (out.baseline, out.scale, out.confidence)]
        tokens = None if out.token_advantage is None else _cut(out.token_advantage, lengths)
        return Step(_cut(out.advantage, sizes), _cut(out.rollout_weight, sizes), *groups, tokens, out.extra_groups)

    def _check_nesting(self, name, values, lists):
        """Checks that a column is [groups][rollouts], of lists where a rollout has several entries."""
        def is_list(x):
            return hasattr(x, "__len__") and not isinstance(x, (str, bytes, dict))

        if not all(is_list(group) for group in values) or (lists and not all(is_list(x) for group in values for x in group)):
            raise TareError("%s: %s must be [groups][rollouts]%s, nested as the rewards are" % (self.name, name, "[entries]" if lists else ""), 13)

    def _same_lengths(self, name, rows, lengths):
        for i, (row, length) in enumerate(zip(rows, lengths)):
            if len(row) != length:
                raise TareError("%s: %s has %d entries for rollout %d, whose length is %d" % (self.name, name, len(row), i, length), 13)

    def apply(self, updates=1, skipped=0):
        """Applies, once after the policy step, what the last step() collected to the state. updates,
        skipped: optimizer steps, and those of them that were skipped.
        """
        if self._collected is None:
            raise TareError("%s: apply without a step before it" % self.name, 60)
        n, uids, records = self._records
        update = abi.sized(abi.Update, step=self.steps, updates=updates, skipped=skipped, collected=self._collected, n_groups=n, prompt_uid=uids,
                           record=records)
        if self._table.apply:
            self._call("apply", self._table.apply, self._self, c.byref(update))
        self._collected = None
        self.steps += 1

    @property
    def pending(self):
        """True if a step was computed but not applied yet."""
        return self._collected is not None

    def load(self, data, steps=0):
        """Continues from the result of save(), here or in the engine. steps: applied steps, which a
        state does not contain; store `steps` separately if you need it.
        """
        super().load(data)
        self.steps, self._collected, self._records = steps, None, None
        return self


def advantages(name, rewards, cluster=None, n_clusters=0, **parameters):
    """Computes the advantages of a fresh instance in one call on lists or arrays; returns one list
    for each group.
    """
    with Estimator(name, n_clusters=n_clusters, **parameters) as estimator:
        return estimator.step(rewards, cluster=cluster).advantage
