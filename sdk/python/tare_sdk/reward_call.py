"""Calls a user's reward function as TRL calls its own. Used by `import tare` and, in front of its
driver, by the verifier plugin python.

batch: {"prompts": [...], "completions": [...], "answers": [...], "rows": [{...}]}, and "step" and
"steps" where they are known. The function is called with prompts, completions, answers, one list
for each field of the rows, and TRL's trainer_state, log_metric and log_extra, by keyword.
Arguments that it neither takes nor collects in **kwargs are left out. A reward of None means
that it gives no verdict for the row. Values arrive as JSON has them: the answer 42 of a row is
an int, "42" is a str.
"""
import inspect
import math
import os
import threading
import traceback

ONLY_TRL = ("completion_ids", "environments")


class TrainerState:
    """The fields of transformers.TrainerState that a run has. global_step: finished steps."""

    def __init__(self, step, steps):
        self.global_step, self.max_steps = step, steps

    def __repr__(self):
        return "TrainerState(global_step=%r, max_steps=%r)" % (self.global_step, self.max_steps)


class Log:
    """Collects what one call logs. metrics: [(name, value)]; extra: {column: a value for each completion}."""

    def __init__(self, n):
        self.n, self.metrics, self.extra = n, [], {}

    def metric(self, name, value):
        value = float(value)
        if not isinstance(name, str) or not name:
            raise TypeError("log_metric: the name is %r; a text is expected" % (name,))
        if not math.isfinite(value):
            raise ValueError("log_metric: the value of %s is %r" % (name, value))
        self.metrics.append((name, value))

    def column(self, name, values):
        values = list(values)
        if len(values) != self.n:
            raise ValueError("log_extra: %d values of %s for %d completions" % (len(values), name, self.n))
        self.extra[str(name)] = values

    def note(self, i):
        """Returns the logged values of completion i as one line; "" without any."""
        return "; ".join("%s: %s" % (name, values[i]) for name, values in self.extra.items())


def arguments(batch, messages, log):
    prompts, completions = batch["prompts"], batch["completions"]
    if messages:
        prompts = [[{"role": "user", "content": p}] for p in prompts]
        completions = [[{"role": "assistant", "content": c}] for c in completions]
    given = {}
    for row in batch["rows"]:
        for key in row:
            given.setdefault(key, [r.get(key) for r in batch["rows"]])
    given.update(prompts=prompts, completions=completions, answers=batch["answers"], log_metric=log.metric, log_extra=log.column,
                 trainer_state=TrainerState(batch.get("step"), batch.get("steps")))
    given.setdefault("answer", batch["answers"])
    return given


def taken(function, given, rows="the rows"):
    parameters = inspect.signature(function).parameters.values()
    for p in parameters:
        if p.name in given or p.default is not p.empty or p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
            continue
        if p.name in ONLY_TRL:
            raise TypeError("it takes '%s', which TRL hands over and tare does not; give it a default (%s=None)" % (p.name, p.name))
        there = ", ".join(sorted(name for name in given if name not in ("log_metric", "log_extra", "trainer_state")))
        raise TypeError("it takes '%s', and %s have no such field; there are %s" % (p.name, rows, there))
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return given
    return {p.name: given[p.name] for p in parameters if p.name in given}


class Waiter:
    """An event loop in a thread, for functions that are asynchronous. It is kept, since clients that
    a function opens belong to one loop, and it works where the caller's thread runs a loop (notebooks).
    """

    def __init__(self):
        self._loop, self._pid = None, 0

    def wait(self, work):
        import asyncio

        if self._pid != os.getpid():  # the thread does not exist in a child of fork
            self._loop, self._pid = asyncio.new_event_loop(), os.getpid()
            threading.Thread(target=self._loop.run_forever, daemon=True).start()
        result = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return result.result()
        except BaseException:
            result.cancel()
            raise


WAITER = Waiter()


async def _gathered(got):
    """Awaits a result, the parts of an asynchronous generator, and those of a list of awaitables."""
    import asyncio

    if inspect.isawaitable(got):
        got = await got
    if hasattr(got, "__aiter__"):
        got = [x async for x in got]
    if isinstance(got, (list, tuple)):
        got = await asyncio.gather(*[x if inspect.isawaitable(x) else _itself(x) for x in got])
    return got


async def _itself(value):
    return value


def _awaited(got):
    waits = inspect.isawaitable(got) or hasattr(got, "__aiter__") or (isinstance(got, (list, tuple)) and any(map(inspect.isawaitable, got)))
    return WAITER.wait(_gathered(got)) if waits else got


def rewards(function, batch, messages, log=None):
    """Returns a number or None for each completion. log: a Log, which is filled."""
    log = log or Log(len(batch["completions"]))
    got = _awaited(function(**taken(function, arguments(batch, messages, log))))
    if isinstance(got, (dict, set, frozenset, str, bytes)):
        raise TypeError("it returned a %s; a list of numbers, one for each completion, is expected" % type(got).__name__)
    got = [None if x is None else float(x) for x in got]
    if len(got) != len(batch["completions"]):
        raise ValueError("%d rewards for %d completions" % (len(got), len(batch["completions"])))
    for x in got:
        if x is not None and not math.isfinite(x):
            raise ValueError("a reward of %r" % x)
    return got


def _code(function):
    function = inspect.unwrap(getattr(function, "func", function))  # of a partial, of a decorated one
    return getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)


def last_line(error, function=None, own=()):
    """Returns the error and its location: the last line of the function's own file, or outside of
    it the last line that was run. An error found after the function has returned (in this file,
    or one of `own`) comes from its result, so the first line of the function is named.
    """
    own = {last_line.__code__.co_filename, *own}
    code = _code(function) if function is not None else None
    where = [(f.filename, f.lineno) for f in traceback.extract_tb(error.__traceback__)]
    mine = [f for f in where if code and f[0] == code.co_filename]
    others = [f for f in where[-1:] if f[0] not in own]
    place = (mine or others or ([(code.co_filename, code.co_firstlineno)] if code else []))[-1:]
    return "%s: %s%s" % (type(error).__name__, error, "".join(" (%s:%d)" % (os.path.basename(f), line) for f, line in place))
