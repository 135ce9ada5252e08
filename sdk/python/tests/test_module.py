"""Compares `import tare` with the program. TARE, TARE_LIBRARY and SOURCE are set; the folder holds tiny.ini and its model `base` (tests/e2e/common.inc)."""

import contextlib
import copy
import gc
import glob
import hashlib
import json
import math
import os
import pickle
import re
import resource
import signal
import subprocess
import sys
import threading
import unittest
import unittest.mock

import tare
from tare import arrays, library

PROGRAM = os.environ["TARE"]
EVEN = {"verifier.plugins": "regex", "verifier.regex.pattern": "[02468]$", "estimator.plugin": "dr_grpo", "codebook.plugin": "none",
        "train.steps": 4, "checkpoint.every": 100, "eval.before": False, "eval.after": False}


def program(*arguments, text=None):
    done = subprocess.run([PROGRAM, "-q", *arguments], input=text, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def read(path):
    with open(path, "rb") as file:
        return file.read()


def weights(folder):
    return hashlib.sha256(read(folder + "/model.safetensors")).hexdigest()


def digest(run, step=4):
    """Digest of the weights at a step."""
    return weights("%s/checkpoints/step-%06d" % (run, step))


def even(completions, **_):
    return [float(text[-1:] in tuple("02468")) for text in completions]


def centred(batch):
    """R - mean of the group, as dr_grpo."""
    out = []
    for begin, end in zip(batch.group_begin, batch.group_begin[1:]):
        group = [float(r) for r in batch.reward[begin:end]]
        out += [r - sum(group) / len(group) for r in group]
    return out


def run(name, **more):
    return tare.Run("tiny.ini", **{**EVEN, "run.dir": name, **more})


def whole():
    """The digest of the program's own four steps."""
    if not os.path.exists("program"):
        program("train", "tiny.ini", "run.dir=program", *["%s=%s" % (k, str(v).lower() if isinstance(v, bool) else v) for k, v in EVEN.items()])
    return digest("program")


class Training(unittest.TestCase):
    def test_same_bits_as_the_program(self):
        seen = []
        with run("same") as r:
            for step in r:
                seen.append(step.number)
                self.assertEqual(len(step.reward), 32)
                self.assertEqual([len(step.group_begin), step.group_begin[8], len(step.completion)], [9, 32, 32])
                self.assertAlmostEqual(step.metrics["reward/mean"], sum(step.reward) / 32)
        self.assertEqual(seen, [1, 2, 3, 4])
        self.assertEqual(digest("same"), whole())
        self.assertNotEqual(digest("same"), weights("base"))  # something was learnt
        done = subprocess.run([PROGRAM, "reproduce", "same"], capture_output=True, text=True)  # the program makes the steps again
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_resumed_by_either(self):
        with run("there") as r:
            next(r), next(r)
        self.assertEqual(sorted(os.listdir("there/checkpoints")), ["step-000002"])
        program("train", "there", "--resume")
        self.assertEqual(digest("there"), whole())
        program("train", "tiny.ini", "--until", "2", "run.dir=back", *["%s=%s" % (k, str(v).lower() if isinstance(v, bool) else v) for k, v in EVEN.items()])
        with tare.Run("back", resume=True) as r:
            self.assertEqual([step.number for step in r], [3, 4])
            self.assertEqual(r.number, 4)
        self.assertEqual(digest("back"), whole())

    def test_views_outlive_their_step(self):
        r = run("views")
        first = next(r)
        names = [n for n in first.columns if first._columns[n][3] < arrays.TEXT]
        kept = {n: getattr(first, n) for n in names}
        copies = {n: bytes(memoryview(kept[n]).cast("B")) if len(kept[n]) else b"" for n in names}
        texts = (list(first.completion), list(first.row_json))
        later = next(r)
        del first
        self.assertEqual(len(later.reward), 32)
        list(r)
        r.close()
        del r, later
        gc.collect()
        for n in names:
            self.assertEqual(bytes(memoryview(kept[n]).cast("B")) if len(kept[n]) else b"", copies[n], n)
            self.assertTrue(memoryview(kept[n]).readonly)
        self.assertTrue(all(json.loads(row)["question"] for row in texts[1]))
        self.assertIn("token", names)
        self.assertIn("prompt_ids", names)

    def test_no_copies(self):
        with run("nocopy") as r:
            step = next(r)
            address = step._columns["advantage"][0]
            if arrays.numpy:
                self.assertEqual(step.advantage.ctypes.data, address)
                self.assertEqual((step.advantage.dtype, step.token.dtype, step.component.shape), ("float64", "int32", (32,)))
                for array in (step.advantage, step.token, step.advantage[1:]):
                    with self.assertRaises(ValueError):
                        array.flags.writeable = True
                    with self.assertRaises(ValueError):
                        array[0] = 1
            else:
                self.assertEqual((step.advantage.format, step.token.format), ("d", "i"))
            self.assertIs(step.advantage, step.advantage)
            with self.assertRaisesRegex(AttributeError, "no column 'advantages'.*advantage"):
                step.advantages

    def test_metrics_of_the_run(self):
        with run("metrics") as r:
            lines = [step.metrics for step in r]
            frame = r.metrics
        if isinstance(frame, list):
            self.assertEqual([f["step"] for f in frame], [1, 2, 3, 4])
            self.assertEqual([f["grad_norm"] for f in frame], [x["grad_norm"] for x in lines])
        else:
            self.assertEqual(list(frame.index), [1, 2, 3, 4])
            self.assertEqual(list(frame["grad_norm"]), [x["grad_norm"] for x in lines])

    def test_two_runs_at_a_time(self):
        with run("one") as one, run("other") as other:
            for a, b in zip(one, other):
                self.assertEqual(list(a.advantage), list(b.advantage))
        self.assertEqual([digest("one"), digest("other")], [whole(), whole()])

    def test_folder_in_use(self):
        with run("mine") as r:
            next(r)
            with self.assertRaisesRegex(tare.TareError, "mine: this process writes this run already"):
                run("mine", resume=True)
            next(r)

    def test_messages_name_the_arguments(self):
        with run("named", **{"train.steps": 1}) as r:
            next(r)
        with self.assertRaisesRegex(tare.TareError, r"--resume .*\(in Python: tare\.Run\(\.\.\., resume=True\)\)"):
            run("named", **{"train.steps": 1})
        with self.assertRaisesRegex(tare.TareError, r"--allow-change.*resume=True, allow_change=True\)"):
            run("named", resume=True, **{"train.steps": 2, "train.lr": 1e-5})

    def test_what_is_full_is_told(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        with run("full") as r:
            next(r)
            resource.setrlimit(resource.RLIMIT_FSIZE, (50000, hard))  # as a disk that is full
            try:
                with self.assertRaisesRegex(tare.TareError, r"full/checkpoints/.*/model\.safetensors: cannot be written: File too large"):
                    r.save()
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            self.assertEqual(glob.glob("full/checkpoints/*"), [])
            r.save()

    def test_every_column_is_explained(self):
        table = read(os.environ["SOURCE"] + "/core/batch/batch.h").decode()
        page = read(os.environ["SOURCE"] + "/docs/python.md").decode()
        columns = [name for name, kind in re.findall(r"X\([A-Z]+,\s+(\w+),\s+[^,]+,\s*\w+,\s*(\w+),", table) if kind != "LOCAL"]
        self.assertGreater(len(columns), 30)
        shown = {"ids": "token", "reason": "note"}
        self.assertEqual([name for name in columns if "`%s`" % shown.get(name, name) not in page], [])

    def test_a_child_of_fork_holds_no_lock(self):
        r = run("left")
        next(r)
        child = os.fork()
        if not child:
            signal.pause()
            os._exit(0)
        r.close()
        run("left", resume=True).close()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    def test_no_copies_of_memory(self):
        with run("copies") as r, tare.Model("base") as model:
            step = next(r)
            for what in (step, r, model):
                for copied in (copy.copy, copy.deepcopy, pickle.dumps):
                    self.assertRaisesRegex(TypeError, "cannot be copied", copied, what)
        self.assertRaises(TypeError, tare.Run, "tiny.ini", {"train.steps": 2})  # a dictionary is given by **
        self.assertRaisesRegex(TypeError, r"must be a file, builtin:NAME or the folder of a run, not dict; .*\*\*", tare.Run, {"train.steps": 2})

    def test_the_first_error_is_seen(self):
        with self.assertRaisesRegex(tare.TareError, "gradient's norm"):
            with run("first-error", **{"estimator.plugin": "python_function"}, advantage=lambda b: [1e39] * len(b.reward)) as r:
                next(r)


class Functions(unittest.TestCase):
    def test_reward_and_advantage(self):
        shown = []

        def advantage(batch):
            shown.append(batch)
            return centred(batch)

        with run("functions", **{"verifier.plugins": "python_function", "estimator.plugin": "python_function"}, reward=even, advantage=advantage) as r:
            steps = list(r)
        self.assertEqual(digest("functions"), whole())  # the rewards of `regex`, the advantages of dr_grpo
        for step, batch in zip(steps, shown):
            self.assertEqual(list(step.reward), list(batch.reward))
            self.assertEqual(step.completion, batch.completion)
            self.assertEqual(list(step.token), list(batch.token))
            self.assertEqual([json.loads(x) for x in step.row_json], batch.row)
            self.assertEqual(step.row_json, batch.row_json)
            self.assertEqual([int(x) for x in batch.length], [b - a for a, b in zip(step.token_begin, list(step.token_begin)[1:])])
            self.assertEqual([int(g) for g in batch.group], [g for g in range(8) for _ in range(4)])
        with self.assertRaisesRegex(AssertionError, "is a function of a Python program"):
            program("train", "functions", "--resume", "train.steps=5", "--allow-change")

    def test_several_rewards(self):
        def brief(completions, trainer_state, log_metric, log_extra, **_):
            log_metric("finished", trainer_state.global_step)
            log_extra("size", list(map(len, completions)))
            return [None if text[-1:] == "0" else 0.5 for text in completions]

        async def Brief(completions, **_):
            return [float(len(text)) for text in completions]

        options = {key: value for key, value in EVEN.items() if not key.startswith("verifier.")}
        functions = [brief, even, Brief, lambda completions, **_: [0.0] * len(completions)]
        with tare.Run("tiny.ini", run__dir="several", reward=functions, reward_weights=[0.25, 1, 2, 0.5], **options) as r:
            for i, step in enumerate(r):
                self.assertEqual(step.metrics["verifier.brief/finished"], i)
                self.assertTrue({"reward/brief", "reward/even", "reward/brief_2", "reward/lambda"} <= set(step.metrics), step.metrics)
                component = list(zip(*[iter(memoryview(step.component).cast("B").cast("d"))] * 4))
                for text, total, parts, note in zip(step.completion, step.reward, component, step.note):
                    wanted = [0.25 * (0 if text[-1:] == "0" else 0.5), even([text])[0], 2.0 * len(text), 0]
                    self.assertEqual([float(x) for x in parts], wanted)
                    self.assertAlmostEqual(float(total), sum(wanted))
                    self.assertEqual(note, "size: %d" % len(text))
        with self.assertRaisesRegex(tare.TareError, r"no reward \(None\) for completion 0; none of the functions gives one"):
            next(tare.Run("tiny.ini", run__dir="unrewarded", reward=[lambda completions, **_: [None] * len(completions)] * 2, **options))
        for wrong, kind, message in ((dict(reward=[]), ValueError, "no function"), (dict(reward=[even, 3]), TypeError, "not int"),
                                     (dict(reward=[even], reward_weights=[1, 2]), ValueError, "2 weights for 1 functions"),
                                     (dict(reward_weights=[1]), ValueError, "1 weights for 0 functions"),
                                     (dict(reward=[even], verifier__plugins="python_function"), ValueError, "name python_function as even in it"),
                                     (dict(reward=even, reward_weights=[2], verifier__plugins="python_function:2"), ValueError, "in one of them")):
            with self.assertRaisesRegex(kind, message):
                tare.Run("tiny.ini", run__dir="wrong-rewards", **wrong)

    def test_rows_as_objects(self):
        rows = [{"question": "%d+%d=" % (i, i), "answer": str(2 * i), "level": i} for i in range(40)]
        seen = []

        def reward(completions, level, **_):
            seen.append(list(level))
            return even(completions)

        class Table:  # as a datasets.Dataset: an iterable of dictionaries with a length
            def __len__(self):
                return len(rows)

            def __iter__(self):
                return iter(rows)

        options = {key: value for key, value in EVEN.items() if not key.startswith("verifier.")}
        for name, given in (("list", rows), ("table", Table()), ("generated", (dict(row) for row in rows))):
            with tare.Run("tiny.ini", run__dir="rows-" + name, data__train=given, data__eval=rows[:4], reward=reward, **options) as r:
                next(r)
            with tare.Run("rows-" + name, resume=True, data__train=rows, reward=reward) as r:
                self.assertEqual([step.number for step in r], [2, 3, 4])
            self.assertEqual(digest("rows-" + name), digest("rows-list"))
        self.assertTrue(seen and set(seen[0]) <= set(range(40)))
        for wrong, kind, message in (([], ValueError, "data.train: no rows"), ([1], TypeError, "row 0 must be a dictionary, not int"),
                                     ({"train": rows}, TypeError, r"choose one: data\['train'\]"), (3, TypeError, "must be a file or rows, not int"),
                                     ([{"answer": math.nan}], ValueError, "row 0"), ([{"answer": object()}], TypeError, "row 0: a value of the type object")):
            with self.assertRaisesRegex(kind, message):
                tare.Run("tiny.ini", run__dir="wrong-rows", data__train=wrong, reward=reward)
        self.assertRaisesRegex(ValueError, "set run__dir", tare.Run, "tiny.ini", data__train=rows)

    def test_another_working_directory(self):
        here = os.getcwd()
        try:
            with run("moved") as r:
                next(r)
                os.makedirs("elsewhere", exist_ok=True)
                os.chdir("elsewhere")
                self.assertEqual([step.number for step in r], [2, 3, 4])
                self.assertEqual(len(r.metrics), 4)
            self.assertEqual(os.listdir("."), [])
        finally:
            os.chdir(here)
        self.assertEqual(digest("moved"), whole())

    def test_names_are_set_by_themselves(self):
        with tare.Run("tiny.ini", run__dir="plain", train__steps=1, eval__before=False, eval__after=False, reward=lambda completions, question, **_: [1.0] * len(question)) as r:
            self.assertEqual(list(next(r).reward), [1.0] * 32)

    def test_errors_end_the_step_and_nothing_else(self):
        wrong = {
            "raises": (lambda **_: 1 / 0, "ZeroDivisionError"), "none": (lambda completions, **_: [None] * len(completions), "no reward"),
            "short": (lambda **_: [1.0], "1 rewards for 32"), "nan": (lambda completions, **_: [math.nan] * len(completions), "a reward of nan"),
            "text": (lambda **_: "high", "returned a str"), "field": (lambda nosuch, **_: [], "nosuch"), "exit": (lambda **_: sys.exit(3), "SystemExit"),
        }
        for name, (function, message) in wrong.items():
            with run("wrong-" + name, **{"verifier.plugins": "python_function"}, reward=even) as r:
                next(r), next(r)
                r._callbacks._reward = {"even": function}
                before = read("wrong-%s/metrics.jsonl" % name)
                with self.assertRaises(SystemExit if name == "exit" else tare.TareError) as caught:
                    next(r)
                if name != "exit":
                    self.assertIn(message, str(caught.exception))
                    self.assertIsInstance(caught.exception.__cause__, Exception)
                self.assertEqual(read("wrong-%s/metrics.jsonl" % name), before)
                self.assertEqual(r.number, 2)
                r._callbacks._reward = {"even": even}
                self.assertEqual([step.number for step in r], [3, 4])  # made again
            self.assertEqual(digest("wrong-" + name), whole(), name)

    def test_wrong_advantages(self):
        for name, function, message in (("short", lambda b: [1.0], "1 advantages for 32"), ("inf", lambda b: [math.inf] * 32, "rollout 0 is inf"),
                                        ("one", lambda b: 3.0, "returned a float"), ("raises", lambda b: b.nosuch, "nosuch")):
            with run("bad-" + name, **{"estimator.plugin": "python_function"}, advantage=function) as r:
                with self.assertRaisesRegex(tare.TareError, message):
                    next(r)
            self.assertEqual(read("bad-%s/metrics.jsonl" % name), b"")

    def test_a_mistake_is_told_with_a_line_of_the_function(self):
        def short(completions, **_):
            return [1.0]

        def deeper(completions, **_):
            return json.loads("no JSON")

        def brief(batch):
            return [1.0]

        begins = {f.__name__: f.__code__.co_firstlineno for f in (short, deeper, brief)}
        cases = (("reward", short, "short: ValueError: 1 rewards for 32 completions", begins["short"]),
                 ("reward", deeper, "deeper: JSONDecodeError: .*", begins["deeper"] + 1),
                 ("advantage", brief, "brief: ValueError: 1 advantages for 32 rollouts", begins["brief"]))
        for what, function, message, line in cases:
            key = {"reward": "verifier.plugins", "advantage": "estimator.plugin"}[what]
            with run("line-" + function.__name__, **{key: "python_function", what: function}) as r:
                with self.assertRaisesRegex(tare.TareError, r"%s \(test_module\.py:%d\)" % (message, line)):
                    next(r)

    def test_interrupted_in_a_function(self):
        at = [0]

        def reward(completions, **_):
            at[0] += 1
            if at[0] == 3:
                raise KeyboardInterrupt
            return even(completions)

        with run("interrupted", **{"verifier.plugins": "python_function"}, reward=reward) as r:
            next(r), next(r)
            self.assertEqual(glob.glob("interrupted/checkpoints/*"), [])
            self.assertRaises(KeyboardInterrupt, next, r)
            self.assertEqual(glob.glob("interrupted/checkpoints/*"), ["interrupted/checkpoints/step-000002"])
            self.assertEqual([step.number for step in r], [3, 4])
        self.assertEqual(digest("interrupted"), whole())

    def test_interrupted_between_steps(self):
        with run("between") as r:
            next(r)
            real = r._call

            def interrupted(*arguments):
                real(*arguments)
                raise KeyboardInterrupt  # as Python raises it where the signal came while C was at work

            with unittest.mock.patch.object(r, "_call", interrupted):
                self.assertRaises(KeyboardInterrupt, next, r)
            self.assertEqual(glob.glob("between/checkpoints/*"), ["between/checkpoints/step-000002"])
            self.assertEqual([step.number for step in r], [2, 3, 4])
        self.assertEqual(digest("between"), whole())

    def test_interrupted_in_the_last_step(self):
        with run("last") as r:
            next(r), next(r), next(r)
            real = r._call

            def interrupted(*arguments):
                real(*arguments)
                raise KeyboardInterrupt

            with unittest.mock.patch.object(r, "_call", interrupted):
                self.assertRaises(KeyboardInterrupt, next, r)
            self.assertEqual([step.number for step in r], [4])
            self.assertEqual(list(r), [])
        self.assertEqual(digest("last"), whole())

    def test_a_step_at_work_is_left_alone(self):
        said = []

        def reward(completions, **_):
            def other():
                for what in (r.save, r.close, lambda: next(r)):
                    try:
                        what()
                        said.append("done")
                    except tare.TareError as why:
                        said.append(str(why))

            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            other()  # in the call itself
            return even(completions)

        with run("busy", **{"verifier.plugins": "python_function", "train.steps": 1}, reward=reward) as r:
            next(r)
        self.assertEqual(len(said), 6)
        self.assertTrue(all("at work" in text for text in said), said)


class Asked(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = tare.Model("base", dtype="f32", prompt="plain")

    def test_generate(self):
        rows = [{"id": "a", "question": "1+1="}, {"id": "b", "text": "23-4="}, {"id": "c", "ids": [49, 43, 49]}]
        options = {"group_size": 3, "max_new_tokens": 5, "seed": 7, "temperature": 0.9}
        theirs = program("generate", "base", "dtype=f32", "prompt=plain", *["%s=%s" % x for x in options.items()], text="".join(json.dumps(x) + "\n" for x in rows))
        self.assertEqual(self.model.generate(rows, **options), theirs)
        self.assertEqual(len(theirs), 9)
        self.assertEqual(self.model.generate(rows, **options), theirs)  # the same again
        self.assertEqual(len(self.model.generate(["1+1=", [49, 43]], max_new_tokens=2)), 2 * len(self.model.generate(["1+1="], max_new_tokens=2)))
        self.assertEqual(self.model.generate([]), [])
        for wrong, message in ((dict(temprature=1), "nearest is 'temperature'"), (dict(temperature=-1), "temperature"), (dict(threads=2), "no key 'threads'")):
            with self.assertRaisesRegex(tare.TareError, message):
                self.model.generate(["1"], **wrong)
        self.assertEqual([x["sample"] for x in self.model.generate(["1+1=", "2+2="], temperature=0, max_new_tokens=2)], [0, 0])  # greedy ones are equal
        self.assertEqual(len(self.model.generate(["1+1="], temperature=0, group_size=2, max_new_tokens=2)), 2)
        self.assertEqual(len(program("generate", "base", "prompt=plain", "temperature=0", "max_new_tokens=2", text='{"id":1,"question":"1+1="}\n')), 1)
        self.assertEqual(self.model.generate(rows, **options), theirs)
        for wrong in ("1+1=", {"question": "1"}, [3], [[1.5]], [None], [{"id": "x"}]):
            with self.assertRaises((TypeError, ValueError, tare.TareError), msg=repr(wrong)):
                self.model.generate(wrong)

    def test_score(self):
        lines = [[49, 43, 49, 61, 50], [50], [51, 52, 53]]
        theirs = program("score", "base", "temperature=0.8", text="".join(json.dumps({"ids": x}) + "\n" for x in lines))
        single = lambda xs: [math.fsum([x]) for x in xs]
        for (logprob, entropy), line in zip(self.model.score(lines, temperature=0.8), theirs):
            self.assertEqual(["%.9g" % x for x in single(logprob)], ["%.9g" % x for x in line["logprobs"]])
            self.assertEqual(["%.9g" % x for x in single(entropy)], ["%.9g" % x for x in line["entropy"]])
        self.assertEqual(list(self.model.score(["1+1=2"])[0][0]), list(self.model.score([self.model.encode("1+1=2")])[0][0]))
        self.assertEqual(self.model.score([]), [])
        for wrong in ([[]], [[99999]], [[-1]], [[1.5]], "text", [["a"]], [[1] * 400], [2 ** 40]):
            with self.assertRaises((TypeError, ValueError, OverflowError, tare.TareError), msg=repr(wrong)):
                self.model.score(wrong)
        self.assertRaises(tare.TareError, self.model.score, [[1, 2]], temperature=0)

    def test_embed_encode_decode(self):
        texts = ["1+1=", "12*12=", "1+1="]
        got = [list(x) for x in self.model.embed(texts)]
        self.assertEqual([len(x) for x in got], [self.model.hidden] * 3)
        self.assertEqual(got[0], got[2])
        self.assertNotEqual(got[0], got[1])
        ids = self.model.encode("12*é")
        self.assertEqual(ids, program("tokenize", "base", text=json.dumps({"text": "12*é"}) + "\n")[0]["ids"])
        self.assertEqual(self.model.decode(ids), "12*é")
        self.assertEqual((self.model.encode(""), self.model.decode([])), ([], ""))
        self.assertRaises(tare.TareError, self.model.decode, [-1])
        self.assertRaises(TypeError, self.model.encode, 3)
        self.assertRaises(tare.TareError, self.model.encode, "\ud800")

    def test_opening(self):
        with self.assertRaisesRegex(tare.TareError, "nosuch"):
            tare.Model("nosuch")
        with self.assertRaisesRegex(tare.TareError, "nearest is 'dtype'"):
            tare.Model("base", dtyp="f32")
        self.assertRaises(TypeError, tare.Model, "base", dtype=None)
        self.assertRaises(ValueError, tare.Model, "base\0x")
        with tare.Model("base") as m, tare.Model("base", dtype="f32") as other:
            self.assertEqual(m.vocab, other.vocab)
        with self.assertRaisesRegex(tare.TareError, "closed"):
            m.generate(["1"])
        m.close()

    def test_forked(self):
        for what in (lambda: self.model.encode("1"), lambda: library.call("encode", self.model._held.handle, tare.model._text("1", "x"), *_two())):
            child = os.fork()
            if not child:
                code = 1
                with contextlib.suppress(BaseException):
                    try:
                        what()
                    except tare.TareError as why:
                        code = 0 if "in this child" in str(why) else 2
                os._exit(code)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(self.model.encode("1"), [49])


def _two():
    import ctypes
    return ctypes.byref(ctypes.c_void_p()), ctypes.byref(ctypes.c_int64())


class Plugins(unittest.TestCase):
    def test_estimate(self):
        rewards = [1, 0, 0, 1, 0, 0, 0.5, 1]
        theirs = program("estimate", "grpo", text=json.dumps({"groups": [{"rewards": rewards[:4]}, {"rewards": rewards[4:]}]}) + "\n")[0]
        flat = [x for group in theirs["advantages"] for x in group]
        self.assertEqual(list(tare.estimate("grpo", rewards, 4)), flat)
        self.assertEqual(list(tare.estimate("grpo", rewards, [7, 7, 7, 7, 2, 2, 2, 2])), flat)
        if arrays.numpy:
            got = tare.estimate("grpo", arrays.numpy.array(rewards), arrays.numpy.repeat([0, 1], 4))
            self.assertEqual((type(got).__name__, got.tolist()), ("ndarray", flat))
        with tare.Estimator("bv_blend", n_clusters=2) as one:
            first = list(tare.estimate(one, rewards, 4, columns={"cluster": [0, 1]}))
            one.apply()
            self.assertNotEqual(first, list(tare.estimate(one, rewards, 4, columns={"cluster": [0, 1]})))
        for groups in (3, 0, [0, 1], [0, 0, 1, 1, 0, 0, 1, 1], [0.1] * 4 + [0.6] * 4 if arrays.numpy else 3):
            self.assertRaises(ValueError, tare.estimate, "grpo", rewards, groups)
        self.assertRaises(TypeError, tare.estimate, "grpo", ["a"], 1)
        self.assertRaises(tare.TareError, tare.estimate, "gpro", rewards, 4)
        self.assertRaises(tare.TareError, tare.estimate, "grpo", [math.nan] * 4, 4)

    def test_verify(self):
        got = tare.verify("number", ["it is 42", "43", ""], ["42"] * 3)
        theirs = program("verify", "number", text="".join(json.dumps({"completion": c, "answer": "42"}) + "\n" for c in ["it is 42", "43", ""]))
        self.assertEqual([(v.reward, v.verdict, v.extracted) for v in got], [(v["reward"], v["verdict"], v["extracted"]) for v in theirs])
        self.assertRaises(tare.TareError, tare.verify, "number", ["1"], [])
        self.assertRaises(TypeError, tare.verify, "number", "1", "1")


class Library(unittest.TestCase):
    def test_opening_a_run(self):
        for arguments, kind, message in (((dict(config="nosuch.ini")), tare.TareError, "nosuch.ini"),
                                         (dict(config="tiny.ini", train__stepps=3), tare.TareError, "did you mean"),
                                         (dict(config="tiny.ini", dist__ranks=2, run__dir="ranks"), tare.TareError, "dist.ranks"),
                                         (dict(config="tiny.ini", reward=3), TypeError, "reward"),
                                         (dict(config="tiny.ini", reward=even, verifier__plugins="number"), ValueError, "leaves out the function"),
                                         (dict(config="tiny.ini", advantage=centred, estimator__plugin="rloo"), ValueError, "leaves out the function"),
                                         (dict(config="tiny.ini", train__steps=[1]), TypeError, "train.steps"),
                                         (dict(config="tiny.ini", verifier__plugins="python_function", run__dir="without"), tare.TareError, "missing reward function")):
            with self.assertRaisesRegex(kind, message):
                next(tare.Run(**arguments))

    def test_nothing_is_printed(self):
        script = "import tare\nwith tare.Run('tiny.ini', run__dir='quiet', train__steps=1) as r: list(r)\ntare.Model('base').generate(['1'])"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        done = subprocess.run([sys.executable, "-c", "import tare\ntare.log_level('info')\n" + script.replace("quiet", "loud")], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertIn("tare: ", done.stderr)

    def test_the_end_of_the_program_saves(self):
        script = "import tare\nr = tare.Run('tiny.ini', run__dir='%s', train__steps=4, eval__before=False, checkpoint__every=100)\nnext(r)\n%s"
        for name, end in (("ends", ""), ("raises", "1 / 0"), ("interrupted-body", "raise KeyboardInterrupt"), ("forks", "import os\nif not os.fork(): raise SystemExit\nos.wait()\n")):
            subprocess.run([sys.executable, "-c", script % (name, end)], capture_output=True)
            self.assertEqual(os.listdir(name + "/checkpoints"), ["step-000001"], name)

    def test_the_end_of_the_program_waits_for_a_thread(self):
        script = ("import tare, threading, time\nr = tare.Run('tiny.ini', run__dir='thread', train__steps=200, eval__before=False, checkpoint__every=1000)\n"
                  "next(r)\nthreading.Thread(target=lambda: list(r), daemon=True).start()\nwhile r_number() < 3: time.sleep(0.001)\n")
        script = script.replace("r_number()", "len(open('thread/metrics.jsonl').readlines())")
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        (last,) = os.listdir("thread/checkpoints")
        with open("thread/metrics.jsonl") as file:
            self.assertEqual([json.loads(line)["step"] for line in file], list(range(1, int(last[-6:]) + 1)))

    def test_versions(self):
        self.assertEqual(library.LIBRARY.tare_api_version(), library.VERSION)
        self.assertIn(tare.__version__, subprocess.run([PROGRAM, "--version"], capture_output=True, text=True).stdout)


if __name__ == "__main__":
    unittest.main()
