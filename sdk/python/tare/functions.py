"""Rewards and advantages by functions of the caller."""

import ctypes as c
import json
import math

from tare_sdk import abi
from tare_sdk.reward_call import last_line, rewards

from . import library
from .arrays import TYPES, copied, numpy

CANCELLED, FAILED = 51, 1
U8, I32, I64, U64, F32, F64 = (TYPES[k] for k in range(1, 7))


def _string(text):
    return c.string_at(text.data, text.size).decode("utf-8", "replace") if text.size else ""


class _Views(c.Structure):
    """A tare_answer with texts as addresses, since they may contain NUL."""


class _Text(c.Structure):
    _fields_ = [("data", c.c_void_p), ("size", c.c_int64)]


_Views._fields_ = [(name, _Text if type_ is abi.Text else type_) for name, type_ in abi.Answer._fields_]


def _answers(pointers, n):
    """The arguments of a reward function."""
    found = [_Views.from_address(c.addressof(pointers[i].contents)) for i in range(n)]
    rows = {}  # rollouts of a prompt share their row
    for a in found:
        if a.row.data not in rows:
            rows[a.row.data] = json.loads(_string(a.row)) if a.row.size else {}
    return {"prompts": [_string(a.prompt) for a in found], "completions": [_string(a.completion) for a in found],
            "answers": [_string(a.answer) for a in found], "rows": [rows[a.row.data] for a in found]}


class Batch:
    """A step as an advantage function sees it: copies, which the function may keep. M groups, N
    rollouts, T completion tokens.

    step; rewards [N]; groups [N], the number of each rollout's group; components [N, C] or None;
    lengths [N]; completions [N]; rows [M]; finish [N], 0 stop, 1 length; group_begin [M+1];
    token_begin [N+1]; ids, entropy, logprob [T].
    """

    def __init__(self, raw):
        self.step, m, n, t = raw.step, raw.n_groups, raw.n_rollouts, raw.n_tokens

        def get(pointer, type_, count, width=1):
            return copied(c.cast(pointer, c.c_void_p).value, type_, count, width) if pointer else None

        self.group_begin, self.token_begin = get(raw.group_begin, I64, m + 1), get(raw.token_begin, I64, n + 1)
        self.rewards, self.prompt_uid = get(raw.reward, F64, n), get(raw.prompt_uid, U64, m)
        self.components = get(raw.component, F64, n, raw.n_components)
        self.verdicts, self.finish = get(raw.verdict, I32, n), get(raw.finish, U8, n)
        self.ids, self.entropy, self.logprob = get(raw.token_id, I32, t), get(raw.token_entropy, F32, t), get(raw.token_logprob, F32, t)
        groups = [g for g in range(m) for _ in range(int(self.group_begin[g + 1]) - int(self.group_begin[g]))]
        lengths = [int(b) - int(a) for a, b in zip(self.token_begin, self.token_begin[1:])]
        self.groups, self.lengths = (numpy.array(groups, dtype=I64), numpy.array(lengths, dtype=I64)) if numpy else (groups, lengths)
        self.completions = self._texts(raw.completion, n)
        self.rows = [json.loads(text) if text else {} for text in self._texts(raw.row, m)]

    @staticmethod
    def _texts(pointer, n):
        if not pointer or not n:
            return []
        return [_string(t) for t in (_Text * n).from_address(c.addressof(pointer.contents))]


def _said(why, function):
    try:
        return last_line(why, function, (_said.__code__.co_filename,))
    except Exception:  # an exception whose text cannot be formatted
        return type(why).__name__


def _name(function):
    return getattr(function, "__name__", type(function).__name__)


class Callbacks:
    """Wraps the reward and advantage functions for calls from C. An exception is stored in `failure`, and the step
    then ends.
    """

    def __init__(self, reward, advantage, messages):
        self._reward, self._advantage, self._messages, self.failure = reward, advantage, messages, None
        self.reward = library.REWARD(self._guarded(self._rewards, reward)) if reward else library.REWARD()
        self.advantage = library.ADVANTAGE(self._guarded(self._advantages, advantage)) if advantage else library.ADVANTAGE()

    def _guarded(self, run, function):
        def call(_ctx, *arguments):
            try:
                run(*arguments)
                return 0
            except BaseException as why:  # no exception may propagate through C
                self.failure = why
                text = "%s: %s" % (_name(function), _said(why, function))
                arguments[-1].contents.message = text.encode("utf-8", "replace")[:503]
                return FAILED if isinstance(why, Exception) else CANCELLED

        return call

    def _rewards(self, answers, n, out, _error):
        got = rewards(self._reward, _answers(answers, n), self._messages)
        for i, reward in enumerate(got):
            if reward is None:
                raise ValueError("no reward (None) for completion %d; every completion needs a number here" % i)
            out[i] = reward

    def _advantages(self, batch, out, _error):
        batch = Batch(batch.contents)
        got = self._advantage(batch)
        if isinstance(got, (dict, set, frozenset, str, bytes)) or not hasattr(got, "__len__"):
            raise TypeError("it returned a %s; a number for each of the %d rollouts is expected" % (type(got).__name__, len(batch.lengths)))
        values = [float(x) for x in got]
        if len(values) != len(batch.lengths):
            raise ValueError("%d advantages for %d rollouts" % (len(values), len(batch.lengths)))
        for i, advantage in enumerate(values):
            if not math.isfinite(advantage):
                raise ValueError("the advantage of rollout %d is %r" % (i, advantage))
            out[i] = advantage
