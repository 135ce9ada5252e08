"""Estimators turn rewards into advantages, phase by phase (tare/estimator.h)."""

import ctypes as c
import json
import math
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, List, Optional

from . import abi
from . import frame
from .columns import COLUMNS, GROUP, ROLLOUT, TOKEN, Columns, finite, fresh, judged, plain
from .plugin import Opened, TareError


@dataclass
class Step:
    """The outputs of compute: advantage and rollout_weight as one list for each group, the others
    as one number for each group.
    """

    advantage: List[List[float]]
    rollout_weight: List[List[float]]
    baseline: List[float]
    scale: List[float]
    confidence: List[float]
    token_advantage: Optional[List[List[float]]]
    refill_groups: int


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
    refill_groups: int


def _flat(groups):
    return [x for group in groups for x in group]


def _cut(flat, sizes):
    flat = list(flat) if isinstance(flat, list) else flat.tolist()
    return [flat[b - s: b] for s, b in zip(sizes, accumulate(sizes))]


class Estimator(Opened):
    """An instance with its state.

    step() runs prepare, compute and collect from the state before; apply() makes the change of state that the last step() collected for.
    n_clusters: K of the codebook, 0 without one. run_seed: the run's, for plugins that draw random numbers. Parameters by keyword, checked
    against the plugin's table. Not for several threads.
    """

    kind = abi.ESTIMATOR
    table_type = abi.EstimatorTable
    required = ("create", "destroy", "compute")

    def __init__(self, name, n_clusters=0, run_seed=0, **parameters):
        super().__init__(name, run_seed=run_seed, **parameters)
        if self.needs & ~abi.KNOWN_NEEDS:
            raise TareError("%s: needs unknown columns (needs 0x%x); update tare_sdk" % (self.name, self.needs), 40)
        self.n_clusters, self.steps, self._collected, self._records = n_clusters, 0, None, None
        self._call("create", self._table.create, c.byref(self._host), self._values, n_clusters, c.byref(self._self))
        self._made = True
        self.fields = self._asked_fields()
        self._declared = self.needs
        if self.fields:
            self.needs |= abi.NEED_ROW  # adapters hand the rows on; the plugin sees its fields of them
        self._prepare_size = self._table.prepare_size(self._self) if self._table.prepare_size else 0
        self._collect_size = self._table.collect_size(self._self) if self._table.collect_size else 0
        self._record_size = self._table.record_size(self._self) if self._table.record_size else 0
        if self._prepare_size < 0 or self._collect_size < 0 or self._record_size < 0:
            raise TareError("%s: its sums have a negative size" % self.name, 80)

    def _asked_fields(self):
        """The fields of rows that the plugin reads as numbers."""
        names, fields = self._table.columns(self._self) if self._table.columns else None, []
        while names and len(fields) <= 64:
            name = c.c_char_p.from_address(names + len(fields) * c.sizeof(c.c_char_p)).value
            if name is None:
                break
            fields.append(name.decode())
        if len(fields) > 64 or "" in fields or len(set(fields)) < len(fields):
            raise TareError("%s: columns gives more than 64 names, an empty one, or one twice" % self.name, 80)
        return fields

    @property
    def by_prompt(self):
        """True if the state is kept by prompt: every step must then identify its prompts (uid)."""
        return bool(self._table.record)

    def _sum(self, phase, function, batch, size):
        """Adds each group's vector, from zeros, in the order of the groups: bit-identical to the
        engine.
        """
        total = (abi.f64 * max(size, 1))()
        for m in range(batch.n_groups if function and size else 0):
            part = (abi.f64 * size)()
            self._call(phase, function, self._self, c.byref(batch), m, part)
            for i, x in enumerate(part):
                if not math.isfinite(x):
                    raise TareError("%s: %s: number %d of group %d's sums is %r" % (self.name, phase, i, m, x), 61)
                total[i] += x
        return total

    def _take_records(self, batch):
        """Makes a record of each group: (prompts, records, groups) as apply_records takes them."""
        if not self._table.record:
            return None
        n, size = batch.n_groups, self._record_size
        uids, records = (abi.u64 * max(n, 1))(*batch.prompt_uid[:n]), (abi.f64 * max(n * size, 1))()
        for m in range(n):
            part = (abi.f64 * max(size, 1))()
            self._call("record", self._table.record, self._self, c.byref(batch), m, part)
            if not all(map(math.isfinite, part)):
                raise TareError("%s: record: the record of group %d is not finite" % (self.name, m), 61)
            records[m * size: (m + 1) * size] = part[:size]
        return uids, records, n

    def _check_outputs(self, out):
        """Checks outputs like the engine: written, finite, in range."""
        scale, confidence = list(out.scale), list(out.confidence)
        for what, values in (("advantage", out.advantage), ("weight of a rollout", out.rollout_weight), ("baseline", out.baseline),
                             ("token's advantage", out.token_advantage)):
            if values is not None and not finite(values):
                raise TareError("%s: compute: not every %s was written and is finite" % (self.name, what), 61)
        if len(out.rollout_weight) and min(out.rollout_weight) < 0:
            raise TareError("%s: compute: a weight of a rollout is below 0" % self.name, 61)
        if any(math.isinf(s) or s < 0 for s in scale):
            raise TareError("%s: compute: a scale must be finite and at least 0, or NaN for none" % self.name, 61)
        if not all(0 <= w <= 1 for w in confidence):
            raise TareError("%s: compute: a confidence was not written, or is not in [0, 1]" % self.name, 61)
        if out.refill_groups < 0:
            raise TareError("%s: compute: asks for %d more groups" % (self.name, out.refill_groups), 80)

    def step_flat(self, reward, sizes, lengths=None, **columns):
        """One step on flat arrays: reward [N]; sizes: rollouts of each group, in order, or one number for all; lengths [N]: tokens of each rollout,
        1 without it. Columns by keyword, flat: cluster, uid [M]; verdicts, finish, completions, off_policy, policy_version [N]; components,
        component_verdicts [N, C]; entropy, logprob, ref_logprob, token_ids [T]; rows [M]. Returns a FlatStep; nothing of the state changes
        before apply(). prepare, collect and record, where the plugin has them, are called once per group. Rollouts whose verdict is timeout or
        crashed are not shown to the plugin; their advantage and weight are 0."""
        if self.by_prompt and columns.get("uid") is None:
            raise TareError("%s: keeps its state by prompt; pass the identifiers of the prompts (uid)" % self.name, 13)
        part = judged(reward, sizes, lengths, columns)
        if part is None:
            return self._step(reward, sizes, lengths, columns)
        *chosen, rollouts, groups, tokens, full = part
        return self._spread(self._step(*chosen), {GROUP: groups, ROLLOUT: rollouts, TOKEN: tokens}, full)

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

        return FlatStep(whole(out.advantage, ROLLOUT, 0), whole(out.rollout_weight, ROLLOUT, 0), whole(out.baseline, GROUP, 0),
                        whole(out.scale, GROUP, math.nan), whole(out.confidence, GROUP, 0), whole(out.token_advantage, TOKEN, 0, abi.f32),
                        out.refill_groups)

    def _step(self, reward, sizes, lengths, columns):
        x = Columns(self.name, self._declared, self.n_clusters, self.steps, reward, sizes, lengths, fields=self.fields, **columns)
        n, m, t = x.batch.n_rollouts, x.batch.n_groups, x.batch.n_tokens
        prepared = self._sum("prepare", self._table.prepare, x.batch, self._prepare_size)
        made = [fresh(abi.f64, k, fill) for k, fill in ((n, math.nan), (n, 1.0), (m, math.nan), (m, math.nan), (m, math.nan))]
        tokens = fresh(abi.f32, t, math.nan) if self.needs & abi.GIVES_TOKENS else (None, None)
        raw = abi.Advantages(c.sizeof(abi.Advantages), 0, *[pointer for _, pointer in made], tokens[1], 0)
        self._call("compute", self._table.compute, self._self, c.byref(x.batch), prepared, c.byref(raw))
        out = FlatStep(*[plain(array, k) for (array, _), k in zip(made, (n, n, m, m, m))],
                       plain(tokens[0], t) if tokens[1] is not None else None, raw.refill_groups)
        self._check_outputs(out)
        self._collected = self._sum("collect", self._table.collect, x.batch, self._collect_size)
        self._records = self._take_records(x.batch)
        return out

    def step(self, rewards, lengths=None, **columns):
        """Like step_flat on lists by group: rewards [groups][rollouts]; columns of rollouts in the
        same shape, of tokens [groups][rollouts][tokens], of groups [groups]. Returns a Step.
        """
        rewards = [[float(r) for r in group] for group in rewards]
        sizes = [len(group) for group in rewards]
        lengths = None if lengths is None else [int(x) for x in _flat(lengths)]
        flat = {}
        for name, values in columns.items():
            axis = COLUMNS[name][2] if name in COLUMNS else GROUP
            if values is not None and axis == TOKEN and lengths is not None:
                self._same_lengths(name, _flat(values), lengths)
            flat[name] = values if values is None or axis == GROUP else _flat(_flat(values)) if axis == TOKEN else _flat(values)
        out = self.step_flat(_flat(rewards), sizes, lengths, **flat)
        lengths = [1] * sum(sizes) if lengths is None else lengths
        groups = [list(x) if isinstance(x, list) else x.tolist() for x in (out.baseline, out.scale, out.confidence)]
        tokens = None if out.token_advantage is None else _cut(out.token_advantage, lengths)
        return Step(_cut(out.advantage, sizes), _cut(out.rollout_weight, sizes), *groups, tokens, out.refill_groups)

    def _same_lengths(self, name, rows, lengths):
        for i, (row, length) in enumerate(zip(rows, lengths)):
            if len(row) != length:
                raise TareError("%s: %s has %d entries for rollout %d, whose length is %d" % (self.name, name, len(row), i, length), 13)

    def apply(self):
        """Applies, once after the policy step, the sums that the last step() collected to the
        state.
        """
        if self._collected is None:
            raise TareError("%s: apply without a step before it" % self.name, 60)
        if self._table.apply_records:
            self._call("apply", self._table.apply_records, self._self, self.steps, self._collected, *self._records)
        elif self._table.apply:
            self._call("apply", self._table.apply, self._self, self.steps, self._collected)
        self._collected = None
        self.steps += 1

    @property
    def pending(self):
        """True if a step was computed but not applied yet."""
        return self._collected is not None

    def state(self):
        """Returns the state as the plugin describes it, for display."""
        if not self._table.describe:
            return {}
        stream, got = self._stream()
        self._call("describe", self._table.describe, self._self, c.byref(stream))
        return json.loads(got["out"].decode())

    def _locked(self):
        """Returns lines "key=value" of the parameters that a resumed run must not change, as the
        engine writes them.
        """
        return "".join("%s=%s\n" % (key, frame.value_text(param, self.parameters[key]))
                       for key, param in ((p.key.decode(), p) for p in self.table) if param.flags & abi.LOCKED_ON_RESUME)

    def _locked_defaults(self):
        locked = {p.key.decode(): p for p in self.table if p.flags & abi.LOCKED_ON_RESUME and p.fallback is not None}
        return {key: frame.value_text(param, self._set(abi.Value(), param, key, param.fallback.decode())) for key, param in locked.items()}

    def save(self):
        """Returns the state as bytes: the frame that the engine writes into its checkpoints, bit
        for bit. It does not contain the number of applied steps: store `steps` separately if you
        need it.
        """
        stream, got = self._stream()
        if self._table.save:
            self._call("save", self._table.save, self._self, c.byref(stream))
        return frame.write(self.kind, self.name, self.version, self._locked(), self.n_clusters, bytes(got["out"]))

    def load(self, data, steps=0):
        """Continues from the result of save(), here or in the engine. Refuses damaged bytes, and
        states of another plugin, version, K or locked parameter.
        """
        raw, version = frame.read(data, self.kind, self.name, self.version, self._locked(), self._locked_defaults(), self.n_clusters)
        if raw and not self._table.load:
            raise TareError("%s: %d bytes of state for a plugin without any" % (self.name, len(raw)), abi.E_CORRUPT)
        stream, got = self._stream(raw, version)
        if self._table.load:
            self._call("load", self._table.load, self._self, c.byref(stream))
        if got["at"] != len(raw):
            raise TareError("%s: load left %d bytes" % (self.name, len(raw) - got["at"]), abi.E_CORRUPT)
        self.steps, self._collected, self._records = steps, None, None
        return self


def advantages(name, rewards, cluster=None, n_clusters=0, **parameters):
    """Computes the advantages of a fresh instance in one call on lists or arrays; returns one list
    for each group.
    """
    with Estimator(name, n_clusters=n_clusters, **parameters) as estimator:
        return estimator.step(rewards, cluster=cluster).advantage
