"""Rewards and advantages by functions of the caller."""

import ctypes as c
import json
import math
import re

from tare_sdk import abi
from tare_sdk.reward_call import Log, last_line, rewards

from . import library
from .arrays import TEXT, TYPES, attribute, copied, numpy, string, texts

CANCELLED, FAILED, METRIC_MEAN = 51, 1, 2
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


def named(functions):
    """Returns {name: function}, with names as verifier.plugins allows them."""
    out = {}
    for function in functions:
        name = re.sub(r"[^a-z0-9_]+", "_", _name(function).lower()).strip("_") or "function"
        name = name if name[0].isalpha() else "f_" + name
        name, n = name[:48], 1
        base = name
        while name in out:
            n += 1
            name = "%s_%d" % (base, n)
        out[name] = function
    return out


class Callbacks:
    """Wraps the reward functions, a dictionary by the names of their verifiers, and the advantage
    function for calls from C. An exception is stored in `failure`, and the step then ends.
    place: returns finished and all steps.
    """

    def __init__(self, reward, advantage, messages, place):
        self._reward, self._advantage, self._messages, self._place, self.failure = reward, advantage, messages, place, None
        self._unrewarded = set()
        self.reward = library.REWARD(self._guarded(self._rewards, lambda asked, _: self._of(asked))) if reward else library.REWARD()
        self.advantage = library.ADVANTAGE(self._guarded(self._advantages, lambda *_: self._advantage)) if advantage else library.ADVANTAGE()

    def _of(self, asked):
        """Returns the function of this verifier; one that has no name of its own is the only one."""
        names = list(self._reward)
        return self._reward.get(asked.contents.instance.decode(), self._reward[names[0]])

    def _guarded(self, run, which):
        def call(_ctx, *arguments):
            function = None
            try:
                function = which(*arguments)
                run(*arguments)
                return 0
            except BaseException as why:  # no exception may propagate through C
                self.failure = why
                text = "%s: %s" % (_name(function), _said(why, function))
                arguments[-1].contents.message = text.encode("utf-8", "replace")[:503]
                return FAILED if isinstance(why, Exception) else CANCELLED

        return call

    def _rewards(self, asked, _error):
        asked = asked.contents
        function, log, host = self._of(c.pointer(asked)), Log(asked.n), asked.host.contents
        batch = _completions(asked.completion, asked.n)
        batch["step"], batch["steps"] = self._place()
        got = rewards(function, batch, self._messages, log)
        self._check_none(function, {i for i, reward in enumerate(got) if reward is None})
        for i, reward in enumerate(got):
            asked.reward[i] = math.nan if reward is None else reward
        for name, value in log.metrics:
            host.metric(host.ctx, name.encode("utf-8", "replace"), value, METRIC_MEAN)
        if log.extra:
            for i in range(asked.n):
                note, text = asked.verdict[i].contents.note, log.note(i).encode("utf-8", "replace")
                if note:
                    note.contents.write(note.contents.ctx, text, len(text))

    def _check_none(self, function, none):
        """Refuses a completion that no function rewards. One of several may abstain, and then adds 0, as in TRL."""
        functions = list(self._reward.values())
        self._unrewarded = none if function is functions[0] else self._unrewarded & none
        if function is functions[-1] and self._unrewarded:
            raise ValueError("no reward (None) for completion %d; %s" % (
                min(self._unrewarded), "every completion needs a number here" if len(functions) == 1 else "none of the functions gives one"))

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
