"""Estimators: rewards to advantages, phase by phase (tare/estimator.h)."""

import ctypes as c
import json
import math
from dataclasses import dataclass
from itertools import accumulate
from typing import List, Optional

from . import abi
from . import frame
from .plugin import Opened, TareError


@dataclass
class Step:
    """What compute gave: advantage and row_weight one list a group, the others one number a group."""

    advantage: List[List[float]]
    row_weight: List[List[float]]
    baseline: List[float]
    scale: List[float]
    confidence: List[float]
    token_advantage: Optional[List[List[float]]]
    refill_groups: int


def _array(type_, values):
    return (type_ * max(len(values), 1))(*values)


def _flat(groups):
    return [x for group in groups for x in group]


class Estimator(Opened):
    """An instance with its state.

    step() runs prepare, compute and collect from the state before; apply() makes the change of state that the last step() collected for.
    n_clusters: K of the codebook, 0 without one. run_seed: the run's, for plugins that draw random numbers. Parameters by keyword, checked
    against the plugin's table. Not for several threads.
    """

    kind = abi.ESTIMATOR
    table_type = abi.EstimatorTable

    def __init__(self, name, n_clusters=0, run_seed=0, **parameters):
        super().__init__(name, run_seed=run_seed, **parameters)
        self.n_clusters, self.steps, self._collected, self._records = n_clusters, 0, None, None
        self._call("create", self._table.create, c.byref(self._host), self._values, n_clusters, c.byref(self._self))
        self._made = True
        self._prepare_size = self._table.prepare_size(self._self) if self._table.prepare_size else 0
        self._collect_size = self._table.collect_size(self._self) if self._table.collect_size else 0
        self._record_size = self._table.record_size(self._self) if self._table.record_size else 0
        if self._prepare_size < 0 or self._collect_size < 0 or self._record_size < 0:
            raise TareError("%s: its sums have a negative size" % self.name, 80)

    def _batch(self, rewards, cluster, uid, lengths, components, entropy, logprob, ref_logprob):
        groups = [[float(r) for r in g] for g in rewards]
        n, flat = len(groups), _flat(groups)
        if not all(groups) or not all(map(math.isfinite, flat)):
            raise TareError("%s: every group needs rollouts, and every reward has to be finite" % self.name, 61)
        cluster = [-1] * n if cluster is None else [int(k) for k in cluster]
        uid = list(range(n)) if uid is None else [int(u) & (2**64 - 1) for u in uid]
        if len(cluster) != n or len(uid) != n or any(not -1 <= k < max(self.n_clusters, 0) for k in cluster):
            raise TareError("%s: cluster and uid need one entry a group, clusters in [0, %d) or -1" % (self.name, self.n_clusters), 13)
        lengths = [1] * len(flat) if lengths is None else [int(x) for x in _flat(lengths)]
        tokens = {"entropy": entropy, "logprob": logprob, "ref_logprob": ref_logprob}
        needed = {"entropy": abi.NEED_ENTROPY, "logprob": abi.NEED_LOGPROB, "ref_logprob": abi.NEED_REF_LOGPROB}
        keep = [_array(abi.i64, [0, *accumulate(map(len, groups))]), _array(abi.u64, uid), _array(abi.i32, cluster), _array(abi.f64, flat),
                _array(abi.i32, [1 if r > 0 else 2 for r in flat]), _array(abi.i64, [0, *accumulate(lengths)])]
        batch = abi.Batch(c.sizeof(abi.Batch), 0, self.steps, n, len(flat), sum(lengths), 0, self.n_clusters, keep[0], keep[1], keep[2],
                          keep[3], None, keep[4], keep[5])
        if len(lengths) != len(flat):
            raise TareError("%s: lengths need one entry a rollout" % self.name, 13)
        if components is not None:
            rows = [[float(x) for x in row] for row in _flat(components)]
            batch.n_components = len(rows[0]) if rows else 0
            if len(rows) != len(flat) or any(len(row) != batch.n_components for row in rows):
                raise TareError("%s: components need one row a rollout, all of one length" % self.name, 13)
            keep.append(_array(abi.f64, _flat(rows)))
            batch.component = keep[-1]
        elif self.needs & abi.NEED_COMPONENTS:
            raise TareError("%s: needs the reward's components" % self.name, 13)
        for name, column in tokens.items():
            if column is None and self.needs & needed[name]:
                raise TareError("%s: needs the tokens' %s" % (self.name, name), 13)
            if column is not None and (self.needs & needed[name] or (name == "logprob" and self.needs & abi.WANTS_LOGPROB)):
                values = [float(x) for group in column for row in group for x in row]
                if len(values) != batch.n_tokens:
                    raise TareError("%s: %s has %d tokens, lengths say %d" % (self.name, name, len(values), batch.n_tokens), 13)
                keep.append(_array(abi.f32, values))
                setattr(batch, "token_" + name, keep[-1])
        batch._keep = keep
        return batch, groups, lengths

    def _sum(self, phase, function, batch, size):
        """Each group's vector from zeros, added in the order of the groups: the engine's bits."""
        total = (abi.f64 * max(size, 1))()
        for m in range(batch.n_groups if function and size else 0):
            part = (abi.f64 * size)()
            self._call(phase, function, self._self, c.byref(batch), m, part)
            for i, x in enumerate(part):
                if x != 0:
                    if not math.isfinite(x):
                        raise TareError("%s: %s: number %d of group %d's sums is %r" % (self.name, phase, i, m, x), 61)
                    total[i] += x
        return total

    def _take_records(self, batch):
        """A record of each group: (prompts, records, groups) as apply_records takes them."""
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

    def step(self, rewards, cluster=None, uid=None, lengths=None, components=None, entropy=None, logprob=None, ref_logprob=None):
        """rewards: one list a group. cluster, uid: [groups]; lengths, and token columns [groups][rollouts][tokens]; components
        [groups][rollouts][C]. Returns a Step; nothing of the state changes before apply()."""
        batch, groups, lengths = self._batch(rewards, cluster, uid, lengths, components, entropy, logprob, ref_logprob)
        n, m, t = batch.n_rollouts, batch.n_groups, batch.n_tokens
        prepared = self._sum("prepare", self._table.prepare, batch, self._prepare_size)
        buffers = [(abi.f64 * max(k, 1))(*([fill] * k)) for k, fill in ((n, math.nan), (n, 1.0), (m, math.nan), (m, math.nan), (m, math.nan))]
        tokens = (abi.f32 * max(t, 1))(*([math.nan] * t)) if self.needs & abi.GIVES_TOKENS else None
        out = abi.Advantages(c.sizeof(abi.Advantages), 0, *buffers, tokens, 0)
        self._call("compute", self._table.compute, self._self, c.byref(batch), prepared, c.byref(out))
        advantage, weight, baseline, scale, confidence = ([*b][:k] for b, k in zip(buffers, (n, n, m, m, m)))
        if not all(map(math.isfinite, advantage)) or not all(w >= 0 and math.isfinite(w) for w in weight):
            raise TareError("%s: compute: an advantage or a weight is not finite" % self.name, 61)
        self._collected = self._sum("collect", self._table.collect, batch, self._collect_size)
        self._records = self._take_records(batch)
        cut = lambda flat, sizes: [flat[b - s: b] for s, b in zip(sizes, accumulate(sizes))]
        sizes = [len(g) for g in groups]
        return Step(cut(advantage, sizes), cut(weight, sizes), baseline, scale, confidence,
                    cut([*tokens][:t], lengths) if tokens is not None else None, out.refill_groups)

    def apply(self):
        """Once after the policy step: the state takes in what the last step() collected."""
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
        """A step was computed, and not yet applied."""
        return self._collected is not None

    def state(self):
        """The state as the plugin describes it, for people."""
        if not self._table.describe:
            return {}
        stream, got = self._stream()
        self._call("describe", self._table.describe, self._self, c.byref(stream))
        return json.loads(got["out"].decode())

    def _locked(self):
        """Lines "key=value" of the parameters that a resumed run must not change, as the engine writes them."""
        return "".join("%s=%s\n" % (key, frame.value_text(param, self.parameters[key]))
                       for key, param in ((p.key.decode(), p) for p in self.table) if param.flags & abi.LOCKED_ON_RESUME)

    def _locked_defaults(self):
        locked = {p.key.decode(): p for p in self.table if p.flags & abi.LOCKED_ON_RESUME and p.fallback is not None}
        return {key: frame.value_text(param, self._set(abi.Value(), param, key, param.fallback.decode())) for key, param in locked.items()}

    def save(self):
        """The state as bytes: the same frame, bit for bit, as the engine writes into its checkpoints. How many steps were applied is not in
        it: keep `steps` beside it where that matters to you."""
        stream, got = self._stream()
        if self._table.save:
            self._call("save", self._table.save, self._self, c.byref(stream))
        return frame.write(self.kind, self.name, self.version, self._locked(), self.n_clusters, bytes(got["out"]))

    def load(self, data, steps=0):
        """Goes on from what save() gave, here or in the engine; refuses what is damaged or of another plugin, version, K or locked parameter."""
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
    """One call on lists or arrays: the advantages of a fresh instance, one list a group."""
    with Estimator(name, n_clusters=n_clusters, **parameters) as estimator:
        return estimator.step(rewards, cluster=cluster).advantage
