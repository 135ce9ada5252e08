"""Objectives, the policy's loss by token (tare/objective.h)."""

import ctypes as c
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from . import abi
from .columns import Views, finite, fixed, fresh, plain
from .errors import TareError
from .estimator import add_parts
from .plugin import Opened


@dataclass
class TokenLoss:
    """The outputs of compute, arrays [n]: v and its derivatives; dkl is None for objectives without
    it.
    """

    value: Any
    dlogprob: Any
    dentropy: Any
    dkl: Any
    clipped: Any


class Objective(Opened):
    """An instance with its state. loss: values of [loss] by name (clip, clip_high, dual_clip,
    kl_coef, entropy_coef, shaping). minibatch() computes the loss of a minibatch and collects;
    apply(), once a step, changes the state.
    """

    kind = abi.KIND_OBJECTIVE
    table_type = abi.ObjectiveTable
    required = ("compute",)

    def __init__(self, name, loss=None, run_seed=0, instance=None, **parameters):
        given = dict({"clip": 0.2, "shaping": 0.1}, **(loss or {}))
        given.setdefault("clip_high", given["clip"])
        super().__init__(name, run_seed=run_seed, instance=instance, loss=abi.sized(abi.Loss, **given), **parameters)
        self._size, self.steps = self._sizes(), 0
        self._collected = (abi.f64 * max(self._size.collect, 1))()

    def _tokens(self, arrays, columns, n, begin=0, end=None, annotated=None, minibatch=None):
        """Makes a tare_tokens of the tokens from begin to end. minibatch: (token_begin, group_begin),
        in annotate.
        """
        end = n if end is None else end
        keep, raw = [], abi.sized(abi.Tokens, step=self.steps, n=end - begin)

        def put(member, type_, values):
            kept, pointer, _ = fixed(type_, values)
            keep.append(kept)
            setattr(raw, member, pointer)

        for name, (type_, values) in arrays.items():
            put(name, type_, values[begin:end])
        if annotated is not None:
            put("annotated", abi.f64, annotated[begin * self._size.prepare: end * self._size.prepare])
        if minibatch:
            tokens, groups = minibatch
            put("token_begin", abi.i64, tokens)
            put("group_begin", abi.i64, groups)
            raw.n_rollouts, raw.n_groups = len(tokens) - 1, len(groups) - 1
        cut = {name: values[begin:end] for name, values in columns.items() if values is not None}
        views = Views(self, cut, {abi.AXIS_TOKEN: end - begin})
        raw.column = views.array
        return raw, (keep, views)

    def minibatch(self, logprob, advantage, lengths, sizes=None, old_logprob=None, entropy=None, weight=None, **columns):
        """The loss of a minibatch: arrays over its sampled tokens; lengths: tokens of each rollout;
        sizes: rollouts of each group, 1 each without it. old_logprob: logprob without it; weight: 1/n
        without it. Columns by keyword (columns.py). Returns a TokenLoss.
        """
        n = len(logprob)
        sizes = [1] * len(lengths) if sizes is None else list(sizes)
        if sum(lengths) != n or sum(sizes) != len(lengths) or len(advantage) != n:
            raise TareError("%s: %d tokens with %d advantages, %d by lengths; %d rollouts, %d by sizes"
                            % (self.name, n, len(advantage), sum(lengths), len(lengths), sum(sizes)), 13)
        arrays = {"logprob": (abi.f32, logprob), "detached": (abi.f32, logprob), "old_logprob": (abi.f32, logprob if old_logprob is None else old_logprob),
                  "entropy": (abi.f32, [0] * n if entropy is None else entropy), "advantage": (abi.f64, advantage),
                  "weight": (abi.f64, [1 / n] * n if weight is None else weight)}
        begins = [0, *accumulate(lengths)]
        annotated = self._annotate(arrays, {k: v for k, v in columns.items() if k != "kl"}, n, begins, [0, *accumulate(sizes)])
        raw, _keep = self._tokens(arrays, columns, n, annotated=annotated)
        gives_dkl = bool(self._table.flags & abi.OBJECTIVE_GIVES_DKL)
        made = {"value": fresh(abi.f64, n, float("nan")), "dlogprob": fresh(abi.f64, n, float("nan")), "dentropy": fresh(abi.f64, n),
                "dkl": fresh(abi.f64, n) if gives_dkl else (None, None), "clipped": fresh(abi.u8, n)}
        self._call("compute", self._table.compute, self._self, c.byref(raw),
                   c.byref(abi.sized(abi.TokenLoss, **{name: pointer for name, (_, pointer) in made.items()})))
        out = TokenLoss(**{name: None if array is None else plain(array, n) for name, (array, _) in made.items()})
        for name in ("value", "dlogprob", "dentropy"):
            if not finite(getattr(out, name)):
                raise TareError("%s: compute: not every %s was written and is finite" % (self.name, name), 61)
        self._collect(arrays, columns, n, begins, annotated, out)
        return out

    def _annotate(self, arrays, columns, n, begins, groups):
        if not self._table.annotate or not self._size.prepare:
            return None
        ahead = bool(self._table.flags & abi.OBJECTIVE_LOOKS_AHEAD)
        seen = {name: x for name, x in arrays.items() if ahead or name not in ("logprob", "entropy", "detached")}
        raw, _keep = self._tokens(seen, columns, n, minibatch=(begins, groups))
        annotated = (abi.f64 * max(n * self._size.prepare, 1))()
        self._call("annotate", self._table.annotate, self._self, c.byref(raw), annotated)
        return annotated[: n * self._size.prepare]

    def _collect(self, arrays, columns, n, begins, annotated, out):
        """Adds each rollout's share, in their order, to those of the step."""
        def share(i, part):
            begin, end = begins[i], begins[i + 1]
            raw, _keep = self._tokens(arrays, columns, n, begin, end, annotated)
            outputs = {name: fixed(abi.u8 if name == "clipped" else abi.f64, x[begin:end]) for name, x in vars(out).items() if x is not None}
            loss = abi.sized(abi.TokenLoss, **{name: pointer for name, (_, pointer, _) in outputs.items()})
            self._call("collect", self._table.collect, self._self, c.byref(raw), c.byref(loss), part)

        total = add_parts(self, "collect", self._size.collect, len(begins) - 1 if self._table.collect else 0, share)
        for i, x in enumerate(total):
            self._collected[i] += x

    def apply(self, updates=1, skipped=0):
        """Ends the step: applies what its minibatches collected to the state."""
        if self._table.apply:
            update = abi.sized(abi.Update, step=self.steps, updates=updates, skipped=skipped, collected=self._collected)
            self._call("apply", self._table.apply, self._self, c.byref(update))
        self._collected = (abi.f64 * max(self._size.collect, 1))()
        self.steps += 1
        self.metrics.clear()
