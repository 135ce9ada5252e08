"""Runs a user's reward function for the verifier plugin python: one JSON object a line in, one a line out.

argv: the file, the function, whether texts go as chat messages ("true"). In: {"prompts": [...], "completions": [...], "answers": [...],
"rows": [{...}]}. Out: {"ready": true} first, then {"rewards": [number or null]} for each line; or {"error": "..."}.
The function is called as TRL calls reward functions: prompts, completions and one list for each field of the rows by keyword, and answers
beside them; what it does not take, and does not collect in **kwargs, is left out. A reward of None means that it does not judge the row.
Values arrive as JSON has them: the answer 42 of a row is an int, "42" is a str.
"""
import importlib.util
import inspect
import json
import math
import os
import sys
import traceback

ONLY_TRL = ("completion_ids", "trainer_state", "log_extra", "log_metric", "environments")


def fail(out, text):
    print(json.dumps({"error": text}), file=out, flush=True)


def load(path, name):
    folder = os.path.dirname(os.path.abspath(path))
    sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location("reward_file", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        found = [n for n, f in vars(module).items() if inspect.isfunction(f) and f.__module__ == "reward_file"]
        hint = "; set verifier.python.function = " + found[0] if len(found) == 1 else ""
        raise LookupError("no function named %s; there are %s%s" % (name, ", ".join(found) or "none", hint))
    return function


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


def taken(function, given):
    parameters = inspect.signature(function).parameters.values()
    for p in parameters:
        if p.name in given or p.default is not p.empty or p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
            continue
        if p.name in ONLY_TRL:
            raise TypeError("it takes '%s', which TRL hands over and tare does not; give it a default (%s=None)" % (p.name, p.name))
        raise TypeError("it takes '%s', and the rows have no such field; there are %s" % (p.name, ", ".join(sorted(given))))
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


def last_line(error):
    where = traceback.extract_tb(error.__traceback__)
    place = " (%s:%d)" % (os.path.basename(where[-1].filename), where[-1].lineno) if where else ""
    return "%s: %s%s" % (type(error).__name__, error, place)


def main():
    path, name, messages = sys.argv[1], sys.argv[2], sys.argv[3] == "true"
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    lines = os.fdopen(os.dup(0), "r", encoding="utf-8", newline="\n")
    os.dup2(2, 1)  # what the function prints must not reach the answers
    sys.stdin = open(os.devnull)
    try:
        function = load(path, name)
    except BaseException as error:  # a SystemExit at import is the user's mistake as well
        return fail(out, "%s: %s" % (path, last_line(error)))
    print('{"ready":true}', file=out, flush=True)
    for line in lines:
        try:
            print(json.dumps({"rewards": rewards(function, json.loads(line), messages)}), file=out, flush=True)
        except Exception as error:
            chat = "; does it read chat messages? Then set verifier.python.messages = true" if not messages and "string indices" in str(error) else ""
            fail(out, "%s in %s: %s%s" % (name, path, last_line(error), chat))


try:
    main()
except BrokenPipeError:  # the verifier was closed before it asked
    os._exit(0)
