"""Runs a user's reward function for the verifier plugin python: one JSON object a line in, one a line out.

argv: the file, the function, whether texts go as chat messages ("true"), the fields of the rows ({"data.train": ["id", ...]}; {} where
they are not known), which have to cover the function's parameters. In: {"prompts": [...], "completions": [...], "answers": [...],
"rows": [{...}]}. Out: {"ready": true} first, then {"rewards": [number or null], "notes": [text], "metrics": [[name, number]]} for each
line; or {"error": "..."}.
The functions of sdk/python/tare_sdk/reward_call.py precede this text (plugin.cmake): rewards() calls the function.
"""
import importlib.machinery
import importlib.util
import inspect
import json
import os
import sys


def fail(out, text):
    # a lone surrogate and NUL have no place in the JSON that is read
    text = text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")
    print(json.dumps({"error": text}), file=out, flush=True)


def module_name(path):
    """Returns the name under which the file can be imported, so that other processes find what it defines."""
    name = os.path.splitext(os.path.basename(path))[0]
    return name if name.isidentifier() and name not in sys.modules and name not in getattr(sys, "stdlib_module_names", ()) else "reward_file"


def load(path, name):
    folder = os.path.dirname(os.path.abspath(path))
    sys.path[:0] = [folder, *HERE]
    path = os.path.abspath(path)
    module = module_name(path)
    spec = importlib.util.spec_from_file_location(module, path, loader=importlib.machinery.SourceFileLoader(module, path))  # whatever its ending
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # pickle, dataclasses, inspect and process pools look there
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        found = [n for n, f in vars(module).items() if inspect.isfunction(f) and f.__module__ == spec.name]
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
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    lines = os.fdopen(os.dup(0), "r", encoding="utf-8", newline="\n")
    os.dup2(2, 1)  # what the function prints must not reach the answers
    sys.stdin = open(os.devnull)
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
