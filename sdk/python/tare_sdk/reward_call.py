"""Calls a user's reward function as TRL calls its own. Used by `import tare` and, in front of its
driver, by the verifier plugin python.

batch: {"prompts": [...], "completions": [...], "answers": [...], "rows": [{...}]}. The function
is called with prompts, completions, answers, and one list for each field of the rows by keyword.
Arguments that it neither takes nor collects in **kwargs are left out. A reward of None means
that it gives no verdict for the row. Values arrive as JSON has them: the answer 42 of a row is
an int, "42" is a str.
"""
import inspect
import math
import os
import traceback

ONLY_TRL = ("completion_ids", "trainer_state", "log_extra", "log_metric", "environments")


def arguments(batch, messages):
    prompts, completions = batch["prompts"], batch["completions"]
    if messages:
        prompts = [[{"role": "user", "content": p}] for p in prompts]
        completions = [[{"role": "assistant", "content": c}] for c in completions]
    given = {}
    for row in batch["rows"]:
        for key in row:
            given.setdefault(key, [r.get(key) for r in batch["rows"]])
    given.update(prompts=prompts, completions=completions, answers=batch["answers"])
    given.setdefault("answer", batch["answers"])
    return given


def taken(function, given, rows="the rows"):
    parameters = inspect.signature(function).parameters.values()
    for p in parameters:
        if p.name in given or p.default is not p.empty or p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
            continue
        if p.name in ONLY_TRL:
            raise TypeError("it takes '%s', which TRL hands over and tare does not; give it a default (%s=None)" % (p.name, p.name))
        raise TypeError("it takes '%s', and %s have no such field; there are %s" % (p.name, rows, ", ".join(sorted(given))))
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return given
    return {p.name: given[p.name] for p in parameters if p.name in given}


def rewards(function, batch, messages):
    got = function(**taken(function, arguments(batch, messages)))
    if inspect.isawaitable(got):
        raise TypeError("an async function; give a plain one")
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
