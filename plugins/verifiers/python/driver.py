"""Runs a user's reward function for the verifier plugin python: one JSON object a line in, one a line out.

argv: the file, the function, whether texts go as chat messages ("true"), the fields of the rows ({"data.train": ["id", ...]}; {} where
they are not known), which have to cover the function's parameters. In: {"prompts": [...], "completions": [...], "answers": [...],
"rows": [{...}]}. Out: {"ready": true} first, then {"rewards": [number or null], "notes": [text], "metrics": [[name, number]]} for each
line; or {"error": "..."}.
The functions of user_file.py and of sdk/python/tare_sdk/reward_call.py precede this text (plugin.cmake): rewards() calls the function.
"""
import inspect
import json
import os
import sys


def fail(out, text):
    print(json.dumps({"error": clean(text)}), file=out, flush=True)


def load(path, name):
    module = load_file(path, "reward_file")
    function = getattr(module, name, None)
    if not callable(function):
        found = [n for n, f in vars(module).items() if inspect.isfunction(f) and f.__module__ == module.__name__]
        hint = "; set verifier.python.function = " + found[0] if len(found) == 1 else ""
        raise LookupError("no function named %s; there are %s%s" % (name, ", ".join(found) or "none", hint))
    return function


def check_fields(function, fields):
    for rows, names in fields.items():
        given = arguments({"prompts": [], "completions": [], "answers": [], "rows": [dict.fromkeys(names)]}, False, Log(0))
        taken(function, given, "the rows of " + rows)


def answer(function, batch, messages):
    log = Log(len(batch["completions"]))
    got = rewards(function, batch, messages, log)
    return {"rewards": got, "notes": [log.note(i) for i in range(log.n)] if log.extra else [], "metrics": log.metrics}


def main():
    path, name, messages = sys.argv[1], sys.argv[2], sys.argv[3] == "true"
    out, lines = pipes()
    try:
        function = load(path, name)
    except BaseException as error:  # a SystemExit at import is the user's mistake as well
        return fail(out, "%s: %s" % (path, last_line(error)))
    try:
        check_fields(function, json.loads(sys.argv[4]))
    except Exception as error:
        return fail(out, "%s in %s: %s" % (name, path, last_line(error, function)))
    print('{"ready":true}', file=out, flush=True)
    for line in lines:
        try:
            print(json.dumps(answer(function, json.loads(line), messages)), file=out, flush=True)
        except Exception as error:
            chat = "; does it read chat messages? Then set verifier.python.messages = true" if not messages and "string indices" in str(error) else ""
            fail(out, "%s in %s: %s%s" % (name, path, last_line(error, function), chat))


try:
    main()
except BrokenPipeError:  # the verifier was closed before it asked
    os._exit(0)
