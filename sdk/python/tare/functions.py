"""Rewards and advantages by functions of the caller."""

import ctypes as c
import json
import math

from tare_sdk import abi
from tare_sdk.reward_call import last_line, rewards

from . import library
from .arrays import TEXT, TYPES, attribute, copied, numpy, string, texts

CANCELLED, FAILED = 51, 1
I64, U64, F64 = abi.i64, abi.u64, abi.f64


def _completions(pointers, n):
    """The arguments of a reward function."""
    found = [pointers[i].contents for i in range(n)]
    rows = {}  # rollouts of a prompt share their row

    def read(text):
        return string(text.read())

    def row(completion):
        data = completion.row.read()
        if data not in rows:
            rows[data] = json.loads(string(data)) if data else {}
        return rows[data]

    return {"prompts": [read(x.prompt) for x in found], "completions": [read(x.text) for x in found], "answers": [read(x.answer) for x in found],
            "rows": [row(x) for x in found]}


class Batch:
    """A step as an advantage function sees it: copies, which the function may keep, under the names
    that they have in a Step. M groups, N rollouts, T tokens.

    step; reward, verdict, finish, completion, length [N]; component, component_verdict [N, C];
    group [N], the number of each rollout's group; row_json [M], texts; row [M], the same as
    dictionaries; prompt_uid [M]; group_begin [M+1]; token_begin [N+1]; token, entropy, logprob [T].
    """

    def __init__(self, view):
        raw = view.batch.contents
        self.step, m, n = raw.step, raw.n_groups, raw.n_rollouts

        def get(pointer, type_, count):
            return copied(c.cast(pointer, c.c_void_p).value, type_, count)

        self.group_begin, self.token_begin = get(raw.group_begin, I64, m + 1), get(raw.token_begin, I64, n + 1)
        self.reward, self.prompt_uid, self.length = get(raw.reward, F64, n), get(raw.prompt_uid, U64, m), get(raw.length, I64, n)
        for column in view.column[: view.n_columns]:
            values = texts(column.data, column.n * column.width) if column.type == TEXT else copied(column.data, TYPES[column.type], column.n, column.width)
            setattr(self, attribute(column.name), values)
        group = [g for g in range(m) for _ in range(int(self.group_begin[g + 1]) - int(self.group_begin[g]))]
        self.group = numpy.array(group, dtype=I64) if numpy else group
        self.row = [json.loads(text) if text else {} for text in self.row_json]


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

    def _rewards(self, completions, n, out, _error):
        got = rewards(self._reward, _completions(completions, n), self._messages)
        for i, reward in enumerate(got):
            if reward is None:
                raise ValueError("no reward (None) for completion %d; every completion needs a number here" % i)
            out[i] = reward

    def _advantages(self, view, out, _error):
        batch = Batch(view.contents)
        got = self._advantage(batch)
        if isinstance(got, (dict, set, frozenset, str, bytes)) or not hasattr(got, "__len__"):
            raise TypeError("it returned a %s; a number for each of the %d rollouts is expected" % (type(got).__name__, len(batch.reward)))
        values = [float(x) for x in got]
        if len(values) != len(batch.reward):
            raise ValueError("%d advantages for %d rollouts" % (len(values), len(batch.reward)))
        for i, advantage in enumerate(values):
            if not math.isfinite(advantage):
                raise ValueError("the advantage of rollout %d is %r" % (i, advantage))
            out[i] = advantage
