"""Training step by step."""

import ctypes as c
import json
import math
import os
import weakref

from tare_sdk import TareError

from . import library
from .arrays import STRING, TEXT, TYPES, attribute, strings, texts, view
from .functions import Callbacks, named
from .handle import Handle, Pinned
from .rows import data_file

FUNCTION = "python_function"


class _Memory(Pinned):
    """A step's batch. Every view keeps it alive; it is freed with the last one."""

    def __init__(self, handle):
        self.handle = handle
        end = weakref.finalize(self, library.plain("batch_free"), handle)
        end.atexit = False

    def columns(self):
        columns = (library.Column * 64)()
        n = library.plain("batch_columns")(self.handle, columns, len(columns))
        return {attribute(x.name): (x.data, x.n, x.width, x.type) for x in columns[:n]}


class Step(Pinned):
    """A finished step. The columns of its batch are attributes: numbers as read-only arrays over
    the engine's memory, without a copy; texts as lists of str. A view stays valid as long as it
    is kept, also when the run has continued or is closed, since it keeps the memory of its step.
    number; metrics, a dict; columns, their names (component_verdict is the column
    "component.verdict"). M groups, N rollouts, T tokens: group_begin
    [M+1] has the first rollout of each group, token_begin [N+1] the first token of each rollout.
    """

    def __init__(self, handle):
        self._memory = _Memory(handle)
        self._columns = self._memory.columns()
        self._made = {}
        line = json.loads(library.plain("batch_metrics")(handle))
        self.number = line.pop("step")
        self.metrics = {key: math.nan if value is None else value for key, value in line.items()}

    @property
    def columns(self):
        return sorted(self._columns)

    def __getattr__(self, name):
        if name.startswith("_") or name not in self._columns:
            raise AttributeError("a step has no column %r; this one has %s" % (name, ", ".join(self.__dict__.get("_columns", ()))))
        if name not in self._made:
            self._made[name] = self._column(*self._columns[name])
        return self._made[name]

    def _column(self, address, n, width, type_):
        if type_ == TEXT:
            return texts(address, n)
        if type_ == STRING:
            return strings(address, n)
        return view(address, TYPES[type_], n, width, self._memory)

    def __dir__(self):
        return [*super().__dir__(), *self._columns]

    def __repr__(self):
        return "<step %d: %d rollouts of %d prompts>" % (self.number, len(self.reward), len(self.group_begin) - 1)


def _close(handle):
    library.plain("run_close")(handle, None)


def _named(key, value, what, wanted=FUNCTION):
    """Refuses a configuration that chooses another plugin, which would silently ignore the
    function.
    """
    if wanted not in " ".join(str(value).split()):
        raise ValueError("%s=%r leaves out the function given as %s; leave the key out, or name %s in it" % (key, value, what, wanted))


def _reward_functions(reward, weights):
    """Returns {name: function} and the entry of each in verifier.plugins, with its weight or without one."""
    many = isinstance(reward, (list, tuple))
    functions = list(reward) if many else [] if reward is None else [reward]
    for function in functions:
        if not callable(function):
            raise TypeError("reward: must be a function or a list of functions, not %s" % type(function).__name__)
    if many and not functions:
        raise ValueError("reward: the list has no function")
    if weights is not None and len(list(weights)) != len(functions):
        raise ValueError("reward_weights: %d weights for %d functions" % (len(list(weights)), len(functions)))
    by_name = named(functions)
    uses = ["%s as %s" % (FUNCTION, name) if many else FUNCTION for name in by_name]
    return by_name, uses, [""] * len(uses) if weights is None else [":%r" % float(w) for w in weights]


class Run(Handle):
    """A training run: `for step in tare.Run("config.ini", **{"train.steps": 20}):` runs its steps
    one after the other, bit-identical to `tare train`.

    config: a file, builtin:NAME, or with resume=True the folder of a run. Keys of the
    configuration are keywords, with the section joined by a dot or two underscores:
    train__steps=20; with a dictionary, use **. data.train and data.eval may also be rows: a list of
    dictionaries, a datasets.Dataset, a DataFrame. reward: a function with the signature of TRL's
    reward functions, which replaces verifier.plugins, or a list of them, whose rewards are added
    with the weights of reward_weights (1 each without). advantage: a function from a Batch to one
    number for each rollout, which replaces estimator.plugin. messages: the reward function gets
    chat messages.

    An exception in one of them ends the step with a TareError, and nothing of the step is kept:
    next(run) repeats it. Ctrl-C saves a checkpoint and raises KeyboardInterrupt; the run is
    still open, and next(run) returns the step that was finished meanwhile. close(), the end of a
    `with` and the end of the program save a checkpoint if steps remain.
    """

    _what = "run"

    def __init__(self, config, *, resume=False, allow_change=False, reward=None, reward_weights=None, advantage=None, messages=False,
                 **overrides):
        super().__init__()
        self._made = None
        if not isinstance(config, (str, bytes, os.PathLike)):
            raise TypeError("config: must be a file, builtin:NAME or the folder of a run, not %s; keys are given as keywords, or with ** from a dictionary: "
                            "tare.Run('config.ini', **{'train.steps': 20})" % type(config).__name__)
        if advantage is not None and not callable(advantage):
            raise TypeError("advantage: must be a function, not %s" % type(advantage).__name__)
        functions, uses, weights = _reward_functions(reward, reward_weights)
        self._callbacks = Callbacks(functions, advantage, messages, self._progress)
        keys = {key if "." in key else key.replace("__", ".", 1): value for key, value in overrides.items()}
        if functions:
            if reward_weights is not None and "verifier.plugins" in keys:
                raise ValueError("reward_weights and verifier.plugins: give the weights in one of them")
            plugins = keys.setdefault("verifier.plugins", " ".join(use + weight for use, weight in zip(uses, weights)))
            for use in uses:
                _named("verifier.plugins", plugins, "reward", use)
        if advantage:
            _named("estimator.plugin", keys.setdefault("estimator.plugin", FUNCTION), "advantage")
        if os.path.isdir(config):  # a run's own keys
            keys = {"run.dir": os.fspath(config), **keys}
            config = os.path.join(config, "config.ini")
        for key in ("data.train", "data.eval"):
            if key in keys:
                keys[key] = data_file(key, keys[key], keys.get("run.dir"))
        array, n = library.settings(keys)
        options = library.RunOptions(c.sizeof(library.RunOptions), bool(resume), bool(allow_change), library.path("config", config), array, n, None,
                                     self._callbacks.reward, self._callbacks.advantage)
        made = c.c_void_p()
        try:
            self._call("run_open", c.byref(options), c.byref(made))
        except KeyboardInterrupt:
            if made.value:
                library.plain("run_close")(made.value, None)
            raise
        self._held.handle = made.value
        self._end = weakref.finalize(self, self._held.end, _close)
        place = self._place()
        self.dir, self.steps = place.dir.decode("utf-8", "surrogateescape"), place.steps

    def _call(self, name, *arguments):
        self._callbacks.failure = None
        try:
            library.call(name, *arguments)
        except TareError as why:
            cause, self._callbacks.failure = self._callbacks.failure, None
            if cause is not None and not isinstance(cause, Exception):
                raise cause  # KeyboardInterrupt, SystemExit
            raise why from cause

    def _place(self):
        place = library.Place()
        library.call("run_place", self._held.handle, c.byref(place))
        return place

    def _progress(self):
        """Returns the numbers of finished and of all steps; None while the run is being opened."""
        if not self._held.handle:
            return None, None
        place = self._place()
        return place.step, place.steps

    @property
    def number(self):
        """Number of finished steps."""
        with self._use():
            return self._place().step

    def __iter__(self):
        return self

    def __next__(self):
        made = c.c_void_p()
        with self._use() as handle:
            if self._made is not None:
                step, self._made = self._made, None
                return step
            try:
                self._call("run_step", handle, c.byref(made))
            except KeyboardInterrupt:
                if made.value:
                    self._made = Step(made.value)  # it is done, and the next call hands it over
                library.call("run_save", handle)
                raise
        if not made.value:
            raise StopIteration
        return Step(made.value)

    def save(self):
        """Saves a checkpoint of the last step, from which `tare train RUN --resume` or Run(dir,
        resume=True) continue.
        """
        with self._use() as handle:
            library.call("run_save", handle)

    def close(self):
        """Closes the run. If steps remain it is saved, as `tare train` does on Ctrl-C."""
        if not self._held.handle or self._held.pid != os.getpid():
            return
        with self._use() as handle:
            self._held.handle = self._made = None
            self._end.detach()
            library.call("run_close", handle)

    @property
    def metrics(self):
        """Returns the metrics of all steps so far, including those before a resumption: a pandas
        DataFrame with the step as its index, or without pandas a list of dicts.
        """
        lines = []
        with open(os.path.join(self.dir, "metrics.jsonl"), encoding="utf-8") as file:
            for line in file:
                lines.append({key: math.nan if value is None else value for key, value in json.loads(line).items()})
        try:
            import pandas
        except ImportError:
            return lines
        return pandas.DataFrame(lines).set_index("step") if lines else pandas.DataFrame()
