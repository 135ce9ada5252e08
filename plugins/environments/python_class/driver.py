"""Plays episodes of a user's class for the environment plugin python_class: one JSON object a line in, one a line out.

argv: the file, the class, its arguments as JSON. The functions of user_file.py and schema.py precede this text (plugin.cmake).
In:  {"open": true}; {"close": id}; {"reset": id, "row": {...}, "seed": number, "max_turns": number};
     {"step": id, "text": "...", "calls": [{"id", "name", "arguments": JSON text}], "turn": number}
Out: {"ready": true} first, then {"session": id} for open, {} for close, and for reset and step
     {"say": [{"role", "text", "name", "call_id"}], "tools": text, "reward": number, "end": 0 to 2, "state": text, "note": text};
     or {"error": "..."}.
"""
import asyncio
import inspect
import json
import math
import os
import sys
import traceback

RUNNING, DONE, TRUNCATED = 0, 1, 2


def load(path, name):
    module = load_file(path, "environment_file")
    made = getattr(module, name, None)
    if not callable(made):
        found = [n for n, c in vars(module).items() if inspect.isclass(c) and c.__module__ == module.__name__]
        raise LookupError("no class named %s; there are %s" % (name, ", ".join(found) or "none"))
    return made


def where(error):
    """The error in one line, with the last line of the user's code in it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != "<string>"]
    at = " (%s:%d)" % (frames[-1].filename, frames[-1].lineno) if frames else ""
    return clean("%s: %s%s" % (type(error).__name__, " ".join(str(error).split()), at))


def result(value):
    return asyncio.run(value) if inspect.iscoroutine(value) else value


def taken(function, given):
    """The arguments of `given` that a function takes."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return given
    return {p.name: given[p.name] for p in parameters if p.name in given}


def finite(x, what):
    x = float(x)
    if not math.isfinite(x):
        raise ValueError("%s is %r" % (what, x))
    return x


class Tools:
    """An instance of a class as TRL's environment_factory takes it: its public methods are tools, an act without a call ends
    the episode, and get_reward() is asked once, at the end."""

    def __init__(self, instance):
        self.it, self.rewarded = instance, callable(getattr(instance, "get_reward", None))
        names = [n for n, _ in inspect.getmembers(type(instance), inspect.isfunction) if not n.startswith("_")]
        self.tools = {n: getattr(instance, n) for n in names if n not in ("reset", "get_reward", "state_key")}
        self.schemas = json.dumps([schema_of(f) for f in self.tools.values()]) if self.tools else ""

    def reset(self, row, seed, max_turns):
        self.max_turns = max_turns
        said = result(self.it.reset(**taken(self.it.reset, {"seed": seed, **row})))
        if said is not None and not isinstance(said, str):
            raise TypeError("reset returned %s; a text or None is expected" % type(said).__name__)
        return {"say": [{"role": "user", "text": said}] if said else [], "tools": self.schemas}

    def call(self, call):
        try:
            if call["name"] not in self.tools:
                raise ValueError("Tool %s not found." % call["name"])
            return str(result(self.tools[call["name"]](**json.loads(call["arguments"]))))
        except Exception as error:
            return str({"error": str(error)})

    def step(self, text, calls, turn):
        said = [{"role": "tool", "text": self.call(c), "name": c["name"], "call_id": c["id"]} for c in calls]
        end = DONE if not calls else TRUNCATED if self.max_turns and turn + 1 >= self.max_turns else RUNNING
        return {"say": said, "end": end, "reward": result(self.it.get_reward()) if end and self.rewarded else 0}


class Game:
    """An instance of a class with gymnasium's step: observation, reward, terminated, truncated, info = step(text)."""

    def __init__(self, instance):
        self.it = instance

    def reset(self, row, seed, max_turns):
        got = self.it.reset(**taken(self.it.reset, {"options": row, **row, "seed": seed}))
        return {"say": self.say(got[0] if isinstance(got, tuple) and len(got) == 2 else got)}

    @staticmethod
    def say(observation):
        if observation is not None and not isinstance(observation, str):
            raise TypeError("the observation is %s; a text is expected" % type(observation).__name__)
        return [{"role": "user", "text": observation}] if observation else []

    def step(self, text, calls, turn):
        got = self.it.step(text)
        if not isinstance(got, tuple) or len(got) != 5:
            raise TypeError("step returned %r; (observation, reward, terminated, truncated, info) is expected" % (got,))
        observation, reward, terminated, truncated, info = got
        note = json.dumps(info, default=str) if info else ""
        return {"say": self.say(observation), "reward": reward, "end": DONE if terminated else TRUNCATED if truncated else RUNNING, "note": note}


class Episodes:
    def __init__(self, make, given):
        self.make, self.given, self.sessions, self.last = make, given, {}, 0
        self.open_session()  # a class that cannot be made is reported before the run

    def open_session(self):
        instance = self.make(**self.given)
        if not callable(getattr(instance, "reset", None)):
            raise TypeError("%s has no method reset" % type(instance).__name__)
        is_game = callable(getattr(instance, "step", None))
        self.last += 1
        self.sessions[self.last] = Game(instance) if is_game else Tools(instance)
        return self.last

    def answer(self, q):
        if "open" in q:
            # the first one was made to try the class
            return {"session": 1 if q["open"] == "first" else self.open_session()}
        if "close" in q:
            self.sessions.pop(q["close"], None)
            return {}
        s = self.sessions[q.get("reset") or q["step"]]
        got = s.reset(q["row"], q["seed"], q["max_turns"]) if "reset" in q else s.step(q["text"], q["calls"], q["turn"])
        key = s.it.state_key() if callable(getattr(s.it, "state_key", None)) else ""
        for message in got["say"]:
            message["text"] = clean(message["text"])
        return {**got, "reward": finite(got.get("reward", 0), "the reward"), "end": got.get("end", RUNNING), "state": clean(str(key)),
                "note": clean(got.get("note", ""))}


def main():
    out, lines = pipes()

    def write(answer):
        print(json.dumps(answer), file=out, flush=True)

    try:
        episodes = Episodes(load(sys.argv[1], sys.argv[2]), json.loads(sys.argv[3]))
    except BaseException as error:  # a SystemExit at import is the user's mistake as well
        return write({"error": "%s: %s" % (sys.argv[1], where(error))})
    write({"ready": True})
    for line in lines:
        question = json.loads(line)
        try:
            answer = episodes.answer(question)
        except Exception as error:
            answer = {"error": "%s of %s: %s" % ("reset" if "reset" in question else "step" if "step" in question else "making", sys.argv[2], where(error))}
        write(answer)


try:
    main()
except BrokenPipeError:  # the environment was closed before it asked
    os._exit(0)
