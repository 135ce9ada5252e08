"""Compares the Python host with the engine: python3 -m unittest, with TARE (the program), TARE_PLUGIN_PATH, and SHARED (reference data, may be absent)."""

import atexit
import contextlib
import ctypes
import glob
import importlib.util
import json
import math
import os
import platform
import random
import re
import shutil
import struct
import subprocess
import tempfile
import types
import unittest
import unittest.mock

from tare_sdk import Codebook, Curriculum, Encoder, Environment, Estimator, Objective, TareError, Verifier, advantages

TARE = os.environ["TARE"]
DATA = os.path.join(os.environ.get("SHARED", ""), "data", "estimators")
FIXTURE = lambda name: os.path.join(os.environ["FIXTURES"], name + ".so")  # plugins of tests/plugin
FACTS = FIXTURE("facts")
RANDOM = ["5897618c", "c2a0b9fd", "70cfadff", "a5ec9de5", "9c1aefde", "738c42ca"]


def compiler():
    found = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if not found:
        raise unittest.SkipTest("no C compiler")
    return found


def compiled(name):
    """Compiles NAME.c of this folder; returns the file of the plugin."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    out = os.path.join(folder, name + ".so")
    subprocess.run([compiler(), "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-I", os.environ["SOURCE"] + "/sdk/include",
                    os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".c"), "-o", out], check=True)
    return out


def engine(estimator, parameters, clusters, steps, *options):
    """tare estimate over the steps: the engine's lines."""
    command = [TARE, "estimate", estimator, *options] + (["clusters=%d" % clusters] if clusters else [])
    command += ["%s=%s" % (key, str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, float) else value)
                for key, value in parameters.items()]
    hexadecimal = lambda group: dict(group, uid="%016x" % group["uid"]) if "uid" in group else group  # JSON has no whole numbers of 64 bits
    lines = "".join(json.dumps({"groups": [*map(hexadecimal, step)]}) + "\n" for step in steps)
    done = subprocess.run(command, input=lines, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def printed(values, none=None):
    """Returns numbers as tare estimate prints them. none: for NaN."""
    return [none if math.isnan(x) else x for x in values]


# keys of a group in tare estimate, and the columns
KEYS = {"uid": "prompt_uid", "lengths": "lengths", "components": "component", "entropy": "entropy", "logprob": "logprob", "ref_logprob": "ref_logprob",
        "verdicts": "verdict", "segments": "segment", "segment_rewards": "segment_reward"}


class Bits(unittest.TestCase):
    def same_tokens(self, out, line, step):
        """The engine prints a token's advantage with 9 digits, which identify the float."""
        self.assertEqual(out.token_advantage is None, "token_advantages" not in line)
        if out.token_advantage is None:
            return
        theirs = [row for group in line["token_advantages"] for row in group]
        single = lambda x: struct.pack("f", x + 0.0)  # JSON's -0 comes back as a whole number without a sign
        self.assertEqual([[single(x) for x in row] for row in out.token_advantage], [[single(x) for x in row] for row in theirs])
        self.assertEqual([len(row) for row in theirs], [n for g in step for n in g.get("lengths", [1] * len(g["rewards"]))])

    def compare(self, name, parameters, clusters, steps):
        expected = engine(name, parameters, clusters, steps)
        with Estimator(name, n_clusters=clusters, **{k: v for k, v in parameters.items() if k != "clusters"}) as estimator:
            for step, line in zip(steps, expected):
                columns = {name: [g[key] for g in step] for key, name in KEYS.items() if key in step[0]}
                if estimator.by_prompt and "prompt_uid" not in columns:
                    columns["prompt_uid"] = list(range(len(step)))  # as the engine takes it
                out = estimator.step([g["rewards"] for g in step], cluster=[g.get("cluster", -1) for g in step], **columns)
                self.assertEqual(out.advantage, line["advantages"])
                ones = [[1] * len(g["rewards"]) for g in step]
                self.assertEqual(out.rollout_weight, line.get("rollout_weight", ones))
                self.assertEqual(out.extra_groups, line.get("extra_groups", 0))
                self.same_tokens(out, line, step)
                self.assertEqual(printed(out.baseline), line["baseline"])
                self.assertEqual(printed(out.scale, 1), line["scale"])
                self.assertEqual(printed(out.confidence, 0), line["confidence"])  # none has no weight
                estimator.apply()
                self.assertEqual(estimator.describe(), line["state"])

    def test_reference_cases(self):
        if not os.path.isdir(DATA):
            self.skipTest("no reference data at " + DATA)
        cases = 0
        for file in sorted(os.listdir(DATA)):
            if not file.endswith(".jsonl"):
                continue
            with open(os.path.join(DATA, file)) as lines:
                for line in lines:
                    case = json.loads(line)
                    with self.subTest(case["id"]):
                        self.compare(case["estimator"], case["params"], case["clusters"], [s["groups"] for s in case["steps"]])
                    cases += 1
        print("%d reference cases, bit for bit" % cases)
        self.assertGreater(cases, 0)

    def full_steps(self, binary):
        """Steps with every column: prompts that come again, groups of several sizes, some of equal rewards, completions of several lengths."""
        rng, steps = random.Random(3), []
        for _ in range(6):
            groups = []
            for i in range(6):
                n = 4 if binary else rng.randint(2, 6)
                equal = rng.choice([0, 1]) if i == 5 else None
                lengths = [rng.randint(1, 5) for _ in range(n)]
                components = [[rng.choice([0, 1]) if equal is None else equal, 0 if binary else rng.choice([0, 0.25])] for _ in range(n)]
                tokens = lambda low, high: [[rng.uniform(low, high) for _ in range(k)] for k in lengths]
                segments = [sorted(rng.randint(1, k) for _ in range(k)) for k in lengths]
                ends = lambda row: [rng.uniform(-1, 1) if row[t:t + 2] != [row[t]] * 2 else 0 for t in range(len(row))]
                groups.append({"segments": segments, "segment_rewards": [ends(row) for row in segments], "cluster": rng.randint(-1, 2), "uid": rng.choice([5, 2**63 + 1, 77, 12, 9, 1]), "rewards": [sum(row) for row in components],
                               "lengths": lengths, "components": components, "entropy": tokens(0, 3), "logprob": tokens(-5, 0),
                               "ref_logprob": tokens(-5, 0)})
            steps.append(groups)
        return steps

    # a parameter set in addition to the defaults, for estimators that behave differently with it
    ALSO = {"grpo": [{"convention": "trl"}], "reinforce_pp": [{"gamma": 0.9}], "gpg": [{"convention": "paper"}], "spo": [{"rho": 0.9}],
            "bv_blend": [{"gamma": 0.5}], "rloo": [], "james_stein": [{"correction": False}], "quantile": [{"convention": "released"}],
            "rae": [{"convention": "prime-rl"}], "eb_blend": [{"scale": "prompt"}, {"scale": "none", "rho": 0.5}], "dapo": [{"filter": "correct"}]}

    def test_every_built_in(self):
        names = sorted(os.path.basename(f)[:-3] for f in glob.glob(os.path.join(os.environ["TARE_PLUGIN_PATH"].split(":")[0], "estimators", "*.so")))
        self.assertGreaterEqual(len(names), 20)
        for name in names:
            for parameters in [{}] + self.ALSO.get(name, []):
                with self.subTest(name, **parameters):
                    try:
                        steps = self.full_steps(False)
                        engine(name, parameters, 3, steps)
                    except AssertionError as error:  # made for rewards of 0 and 1, and says so
                        self.assertRegex(str(error), "0 (and|or|to) 1|binary")
                        steps = self.full_steps(True)
                    self.compare(name, parameters, 3, steps)
        print("%d built-in estimators, bit for bit: %s" % (len(names), " ".join(names)))


    def test_rollouts_without_a_verdict(self):
        """Those that crashed or ran out of time are not shown to the estimator, here as in the engine."""
        rng, names = random.Random(5), ("grpo", "bv_blend", "eb_blend", "james_stein", "reinforce_pp", "spo", "gdpo", "rl_zvp", "dapo")
        for name in names:
            steps = self.full_steps(name == "spo")
            for step in steps:
                for group in step:
                    group["verdicts"] = [rng.choice(["correct", "wrong", "wrong", "timeout", "crashed"]) for _ in group["rewards"]]
                step[0]["verdicts"] = ["crashed"] * len(step[0]["rewards"])
            with self.subTest(name):
                self.compare(name, {}, 3, steps)


class Fields(unittest.TestCase):
    """Fields of the data set's rows as numbers: the engine's bits, and the same refusals."""

    ROWS = [{"level": 3, "weight": 0.5}, {"level": None, "weight": True}, {"id": "x"}]
    STEP = [{"rewards": [1, 0.25], "row": ROWS[0]}, {"rewards": [2], "row": ROWS[1]}, {"rewards": [1, 3], "row": ROWS[2]}]

    def test_bits(self):
        for parameters in ({}, {"by": "weight"}):
            line, = engine(FIXTURE("columns"), parameters, 0, [self.STEP])
            for rows in (self.ROWS, [json.dumps(row) for row in self.ROWS]):
                with Estimator(FIXTURE("columns"), **parameters) as estimator:
                    self.assertEqual(estimator.row_fields, ["row.weight"] if parameters else ["row.level", "row.weight"])
                    out = estimator.step([g["rewards"] for g in self.STEP], row_json=rows)
                    self.assertEqual(out.advantage, line["advantages"])
                    estimator.apply()
                    self.assertEqual(estimator.describe(), line["state"])

    def test_unjudged_groups_leave_with_their_rows(self):
        step = [dict(g, verdicts=["correct"] * len(g["rewards"])) for g in self.STEP]
        step[0]["verdicts"] = ["timeout", "crashed"]
        line, = engine(FIXTURE("columns"), {}, 0, [step])
        with Estimator(FIXTURE("columns")) as estimator:
            out = estimator.step([g["rewards"] for g in step], row_json=self.ROWS, verdict=[g["verdicts"] for g in step])
            self.assertEqual(out.advantage, line["advantages"])

    def test_refusals(self):
        with Estimator(FIXTURE("columns")) as estimator:
            for rows, said in ((None, r"wants the column row.level, one entry for each group \(row_json=\)"), ([{}], "row_json: 1 entries where 3 are needed"),
                               ([{"level": "hard"}, {}, {}], "row 0: 'level' is 'hard'; it is read as a number")):
                with self.assertRaisesRegex(TareError, said):
                    estimator.step([g["rewards"] for g in self.STEP], row_json=rows)


class State(unittest.TestCase):
    """A state that one host saves is the other's, bit for bit."""

    CASES = (("bv_blend", {"gamma": 0.3, "v_prior": 1e-5, "n0": 12345678.5}), ("krpo", {"meas_var": 0.02}), ("spo", {"rho": 0.95}), ("grpo", {}),
             ("eb_blend", {"rho": 0.7}), ("rae", {"alpha": 0.3}))

    def steps(self, first, last):
        return [[{"cluster": (i + s) % 3, "uid": (i * 5 + s) % 7, "rewards": [((7 * i + 3 * j + s) % 5) / 4 for j in range(2 + i)]} for i in range(4)]
                for s in range(first, last)]

    def python(self, name, parameters):
        own = {"clusters": 3} if name == "bv_blend" else {}
        return Estimator(name, n_clusters=3, **own, **parameters)

    def run_steps(self, estimator, steps):
        lines = []
        for step in steps:
            out = estimator.step([g["rewards"] for g in step], cluster=[g["cluster"] for g in step], prompt_uid=[g["uid"] for g in step])
            estimator.apply()
            lines.append((out.advantage, estimator.describe()))
        return lines

    def test_both_directions(self):
        for name, parameters in self.CASES:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                ours, theirs, again = (os.path.join(folder, f) for f in ("python.state", "engine.state", "again.state"))
                one = self.python(name, parameters)
                self.run_steps(one, self.steps(0, 4))
                with open(ours, "wb") as file:
                    file.write(one.save())
                engine(name, parameters, 3, self.steps(0, 4), "--save", theirs)
                with open(theirs, "rb") as file:
                    saved = file.read()
                self.assertEqual(one.save(), saved)
                # each continues from the other's
                two = self.python(name, parameters).load(saved, steps=4)
                lines = self.run_steps(two, self.steps(4, 8))
                expected = engine(name, parameters, 3, self.steps(4, 8), "--load", ours, "--save", again)
                self.assertEqual(lines, [(line["advantages"], line["state"]) for line in expected])
                with open(again, "rb") as file:
                    self.assertEqual(two.save(), file.read())

    def test_the_engine_refuses_what_does_not_match(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "x.state")
            estimator = self.python("spo", {})
            self.run_steps(estimator, self.steps(0, 2))
            data = estimator.save()
            for damaged, part in ((data[:-1], "cut short"), (data[:60] + bytes([data[60] ^ 1]) + data[61:], "damaged"), (b"x" * 80, "not the saved")):
                with open(file, "wb") as out:
                    out.write(damaged)
                with self.assertRaisesRegex(AssertionError, part):
                    engine("spo", {}, 3, [], "--load", file)
            with open(file, "wb") as out:
                out.write(data)
            with self.assertRaisesRegex(AssertionError, "the state of estimator spo"):
                engine("grpo", {}, 3, [], "--load", file)
            with self.assertRaisesRegex(AssertionError, "codebook of 3 clusters, but this run's has 2"):
                engine("spo", {}, 2, [], "--load", file)
            with self.assertRaisesRegex(TareError, "the state of estimator spo"):
                Estimator("grpo", n_clusters=3).load(data)

    def test_random_numbers_are_the_engines(self):
        from tare_sdk import philox

        # core/base/rng.c: key (seed 7, plugin, estimator, "hostile"), stream 3, counter 5
        self.assertEqual(["%08x" % w for w in philox.words(7, 1, "hostile", 3, 5, 6)], RANDOM)


class Host(unittest.TestCase):
    def test_state_goes_on(self):
        rewards = [[1, 0, 0, 1], [0, 0, 1, 0]]
        one, two = (Estimator("bv_blend", n_clusters=2, gamma=0.5) for _ in range(2))
        one.step(rewards, cluster=[0, 1])
        one.apply()
        data = one.save()
        two.load(data, steps=1)
        self.assertEqual(two.steps, 1)
        self.assertEqual(one.step(rewards, cluster=[1, 0]), two.step(rewards, cluster=[1, 0]))
        self.assertNotEqual(one.step(rewards, cluster=[1, 0]).advantage, advantages("bv_blend", rewards, cluster=[1, 0], n_clusters=2))
        for damaged in (b"", data[:-1], *(data[:at] + bytes([data[at] ^ 1]) + data[at + 1:] for at in range(len(data))), data + b"x"):
            with self.assertRaises(TareError):
                two.load(damaged)
        with self.assertRaisesRegex(TareError, "n_clusters"):
            Estimator("bv_blend", n_clusters=3, gamma=0.5).load(data)

    def test_compute_leaves_the_state(self):
        with Estimator("bv_blend", n_clusters=2) as e:
            before = e.save()
            e.step([[1, 0]], cluster=[0])
            self.assertEqual(e.save(), before)
            e.apply()
            self.assertNotEqual(e.save(), before)
            with self.assertRaisesRegex(TareError, "without a step"):
                e.apply()

    def test_parameters(self):
        for parameters, part in (({"gama": 1}, "did you mean gamma"), ({"gamma": 2}, "out of range"), ({"gamma": "x"}, "not a finite number"),
                                 ({"mapping": "cube"}, "not one of exp")):
            with self.assertRaisesRegex(TareError, part):
                Estimator("bv_blend", n_clusters=1, **parameters)
        self.assertEqual(Estimator("grpo", ddof=0).parameters["ddof"], 0)

    def test_refusals(self):
        with self.assertRaisesRegex(TareError, "no estimator named"):
            Estimator("nothing_here")
        with self.assertRaisesRegex(TareError, "contains no verifier"):
            Verifier(Estimator("grpo").path)
        with self.assertRaisesRegex(TareError, "not a plugin"):
            Estimator(os.path.abspath(__file__) + "/../../pyproject.toml")
        with self.assertRaisesRegex(TareError, "finite"):
            Estimator("grpo").step([[1, math.nan]])
        with self.assertRaisesRegex(TareError, "clusters must be in"):
            Estimator("bv_blend", n_clusters=2).step([[1, 0]], cluster=[2])

    def test_a_name_is_found_beside_the_program_on_the_path(self):
        build = os.path.dirname(os.path.realpath(TARE))
        with unittest.mock.patch.dict(os.environ, {"PATH": build + os.pathsep + os.environ["PATH"]}):
            del os.environ["TARE_PLUGIN_PATH"]
            self.assertEqual(os.path.dirname(Estimator("grpo").path), os.path.join(build, "plugins", "estimators"))
            with self.assertRaisesRegex(TareError, r"no estimator named 'gpro' \(did you mean 'grpo'\?\)"):
                Estimator("gpro")

    def test_what_is_needed_and_missing_is_named(self):
        with self.assertRaisesRegex(TareError, r"bv_blend: wants the column cluster, one entry for each group \(cluster=\)"):
            Estimator("bv_blend", n_clusters=2).step([[1, 0]])
        with self.assertRaisesRegex(TareError, r"gdpo: wants the column component, one entry for each rollout \(component=\)"):
            Estimator("gdpo").step([[1, 0]])
        with self.assertRaisesRegex(TareError, r"rl_zvp: wants the column entropy, one entry for each token \(entropy=\)"):
            Estimator("rl_zvp").step([[1, 0]])
        with self.assertRaisesRegex(TareError, "spo: keeps its state by prompt"):
            Estimator("spo").step([[1, 0]])
        with self.assertRaisesRegex(TypeError, "there is no column lenghts; there are lengths, component_name"):
            Estimator("grpo").step([[1, 0]], lenghts=[[1, 1]])
        with self.assertRaisesRegex(TareError, "finish: 1 entries where 2 are needed"):
            Estimator(FACTS).step([[1, 0]], finish=[["stop"]])
        with self.assertRaisesRegex(TareError, "5 rewards are no groups of 2"):
            Estimator("grpo").step_flat([1, 0, 1, 0, 1], 2)

    def test_facts(self):
        columns = {"finish": [["stop", "length"]], "completion": [["it is 4", ""]], "row_json": [{"level": 3}], "token": [[[7, 8], [9]]],
                   "verdict": [["correct", "unparsable"]], "component_verdict": [[["correct", None], ["unparsable", "wrong"]]], "off_policy": [[0, 1]],
                   "policy_version": [[4, -1]]}
        out = Estimator(FACTS).step([[1, 0]], lengths=[[2, 1]], **columns)
        # the digits of tests/plugin/facts.c, as tests/unit/estimate has them; Python's JSON has a blank after the colon
        self.assertEqual(out.advantage, [[601 + 1e3 * (12 + 7) + 1e6 * 15 + 1e8, 12 + 100 + 1e3 * 12 + 1e6 * 9 + 1e8 * 6]])
        for name in columns:
            if name not in ("verdict", "off_policy"):
                with self.assertRaisesRegex(TareError, "facts: wants the column .*\\(%s=\\)" % name):
                    Estimator(FACTS).step([[1, 0]], lengths=[[2, 1]], **{k: v for k, v in columns.items() if k != name})

    def test_flat_arrays_are_the_same_bits(self):
        groups = [[1, 0, 0.5, 1], [0, 0.25, 1, 0], [0.125, 1, 0, 0]]
        flat = [r for g in groups for r in g]
        for name in ("bv_blend", "dapo", "reinforce_pp"):
            one, two = (Estimator(name, n_clusters=2) for _ in range(2))
            for _ in range(3):
                a, b = one.step(groups, cluster=[0, 1, 0], prompt_uid=[1, 2, 3]), two.step_flat(flat, 4, cluster=[0, 1, 0], prompt_uid=[1, 2, 3])
                self.assertEqual([x for g in a.advantage for x in g], list(b.advantage))
                self.assertEqual(printed(a.confidence), printed(b.confidence))
                one.apply(), two.apply()
            self.assertEqual(one.save(), two.save())

    @unittest.skipUnless(importlib.util.find_spec("numpy"), "NumPy is not installed")
    def test_numpy(self):
        import numpy

        reward = numpy.random.default_rng(1).random((500, 8))
        estimator = Estimator("grpo")
        out = estimator.step_flat(reward.reshape(-1), 8, lengths=numpy.full(4000, 3))
        self.assertIsInstance(out.advantage, numpy.ndarray)
        self.assertEqual(out.advantage.reshape(500, 8).tolist(), Estimator("grpo").step(reward.tolist()).advantage)
        wide = Estimator("gdpo").step_flat(reward.sum(axis=1), 4, component=reward)
        nested = reward.reshape(125, 4, 8)
        self.assertEqual(wide.advantage.reshape(125, 4).tolist(), Estimator("gdpo").step(nested.sum(axis=2).tolist(), component=nested.tolist()).advantage)

    def test_the_floating_point_mode_is_kept(self):
        tiny = 1e-310  # below the smallest normal number: 0 where they are flushed
        x86 = platform.machine() == "x86_64"
        with self.assertLogs("tare", "WARNING") if x86 else contextlib.nullcontext() as logs:
            Estimator(FIXTURE("flushes_at_load")).step([[1, 0]])
        if x86:
            self.assertIn("changed the floating-point mode while it was loaded", logs.output[0])
        self.assertGreater(tiny * 0.5, 0)
        Estimator(FIXTURE("changes_fp")).step([[1, 0]])
        self.assertGreater(tiny * 0.5, 0)
        self.assertEqual(float("1") + float("1e-20"), 1.0)  # rounded to nearest, not upward

    def test_outputs_are_checked(self):
        for name, part in (("nan_advantage", "advantage"), ("unwritten", "advantage"), ("bad_confidence", "confidence"), ("infinite_scale", "scale"),
                           ("negative_weight", "weight"), ("nan_sums", "sums"), ("unknown_want", "wants the column .*, which this host does not have"), ("null_member", "compute is missing"),
                           ("unknown_flags", "unknown flags 0x4 in the function table of estimator hostile .this host knows 0x1.")):
            with self.subTest(name), self.assertRaisesRegex(TareError, part):
                Estimator(FIXTURE(name)).step([[1, 0.5], [0.25, 0.75]])

    def test_empty_batch(self):
        self.assertEqual(Estimator("grpo").step([]).advantage, [])

    def test_process_rewards(self):
        with Verifier(FIXTURE("steps")) as v:  # tests/plugin/steps.c: a line is a step, worth its letters a; an umlaut has two bytes
            got = v.verify("a\u00e4\naab", "")
            self.assertEqual((got.reward, got.segments), (3, [(4, 1), (7, 2)]))
            self.assertEqual(v.verify("", "").segments, [])
            with self.assertRaisesRegex(TareError, r"steps: verify: the segments \[\(2, 1.0\), \(2, 1.0\)\] do not fit a completion of 5 bytes"):
                v.verify("!back", "")
            with self.assertRaisesRegex(TareError, "257 segments in a buffer of 256"):
                v.verify("!many", "")
        with self.assertRaisesRegex(TareError, r"grpo_process: wants the column segment"):
            Estimator("grpo_process").step([[1, 0]])

    def test_verifier(self):
        with Verifier("number") as v:
            right, wrong = v.verify("it is 42", "42"), v.verify("it is 41", "42", row={"question": "?"}, timeout=1)
        self.assertEqual((right.verdict, right.reward, right.extracted), ("correct", 1.0, "42"))
        self.assertEqual((wrong.verdict, wrong.reward), ("wrong", 0.0))
        with Verifier("command", command="while read -r line; do echo 0.5; done") as v:
            self.assertEqual(v.verify("x", "y").verdict, "partial")
        with self.assertRaisesRegex(TareError, "is missing and has no default"):
            Verifier("command")

    def test_what_a_verifier_uses_of_a_row(self):
        """An answer may be left out where the plugin says that it uses none (tests/plugin/answerless.c)."""
        from tare_sdk import trl

        with Verifier(FIXTURE("answerless"), least=3) as v:
            self.assertIs(v.uses_answer, False)
            self.assertEqual([v.verify("long").reward, v.verify("no").reward], [1, 0])
            self.assertEqual([x.reward for x in v.verify_all(["long", "no"])], [1, 0])
        with Verifier(FIXTURE("answerless"), compare=True) as v:
            self.assertIs(v.uses_answer, True)
            with self.assertRaisesRegex(TareError, "verifier answerless compares with the answer, which is missing"):
                v.verify("long")
        with Verifier("number") as v:  # says nothing
            self.assertIs(v.uses_answer, True)
        with Verifier("command", command="while read -r line; do echo 0.5; done") as v:
            self.assertIsNone(v.uses_answer)
            self.assertEqual(v.verify("x").reward, 0.5)
        with self.assertRaisesRegex(TareError, "uses returns the bits 0x100000"):
            Verifier(FIXTURE("unknown_uses"))
        follow = trl.reward_function("ifeval")
        columns = dict(instruction_id_list=[["punctuation:no_comma"]] * 2, kwargs=[[{}]] * 2, completion_ids=[[1], [2]], trainer_state=object())
        self.assertEqual(follow(["?"] * 2, ["no comma", "a, comma"], **columns), [1.0, 0.0])
        with self.assertRaisesRegex(TareError, 'no column "answer" .it has: text.; name it with answer='):
            trl.reward_function("number")(["?"], ["1"], text=["1"])

    def test_several_verdicts_at_a_time(self):
        """Where they stand does not depend on when they come; a plugin that does not wait gives the same (tests/plugin/hostile/waits.c)."""
        said = [str(k % 3) for k in range(20)]
        for name in (FIXTURE("waits"), "exact"):
            with Verifier(name) as v:
                self.assertEqual(v.waits, name != "exact")
                for at_once in (1, 3, 50):
                    got = v.verify_all(said, ["1"] * 20, timeout=60, at_once=at_once)
                    self.assertEqual([x.reward for x in got], [float(x == "1") for x in said])
                self.assertEqual(v.verify_all([], []), [])
                with self.assertRaisesRegex(TareError, "20 completions with 1 answers"):
                    v.verify_all(said, ["1"])
        with Verifier(FIXTURE("waits")) as v:
            with self.assertRaisesRegex(TareError, "verifier waits: take: the judge is out"):
                v.verify_all(["1", "broken", "1"], ["1"] * 3)
            self.assertEqual([x.reward for x in v.verify_all(["1"], ["1"])], [1])  # and the tickets of before are forgotten
            for seconds in (2, 60):  # a busy machine may be late with the other one, too
                late = [(x.verdict, x.judged) for x in v.verify_all(["never", "1"], ["1", "1"], timeout=seconds)]
                if late[1][1]:
                    break
            self.assertEqual(late, [("timeout", False), ("correct", True)])
        with Verifier("command", command="while read -r line; do echo 0.5; done") as v:
            self.assertEqual([x.reward for x in v.verify_all(["x"] * 5, ["y"] * 5, at_once=2)], [0.5] * 5)

    def test_what_is_not_judged_has_no_reward(self):
        """In the adapters of trainers too: a verifier that ran out of time has not said 0."""
        from tare_sdk import trl, verl

        for seconds in (2, 60):
            got = trl.reward_function(FIXTURE("waits"), timeout=seconds)(["?"] * 3, ["never", "1", "2"], answer=["1"] * 3)
            if None not in got[1:]:
                break
        self.assertEqual(got, [None, 1.0, 0.0])
        function, data = verl.AdvantageFunction(Estimator("grpo")), lambda *said: types.SimpleNamespace(non_tensor_batch={"verdict": said})
        self.assertEqual(function._unjudged(data("wrong", "timeout", "correct"), [2, 0, 1]), {"verdict": ["correct", "wrong", "timeout"]})
        self.assertEqual(function._unjudged(data("wrong", "correct"), [0, 1]), {})
        self.assertEqual(function._unjudged(types.SimpleNamespace(non_tensor_batch={}), [0]), {})


class Growth(unittest.TestCase):
    """Plugins of a later minor, whose structs have members behind those of this host, and plugins with
    bits that this host does not know.
    """

    def test_larger_structs(self):
        """tests/larger.c: every struct that a plugin gives is larger by 8 bytes, and it looks for members
        behind those that it gets.
        """
        larger = compiled("larger")
        with Estimator(larger, factor=3) as e:
            self.assertEqual(e.parameters, {"factor": 3.0, "offset": 0.5})
            self.assertEqual(e.wants, {"finish": True, "entropy": False})
            out = e.step([[1, 0]], finish=[["stop", "length"]])
            self.assertEqual(out.advantage, [[3 * 1 + 0.5 + 1, 0.5 + 2]])
        with Verifier(larger) as v:
            got = v.verify("yes", "yes")
            self.assertEqual((got.verdict, got.reward, got.extracted, got.note), ("correct", 1, "yes", "no member behind those of 1.0"))

    def test_texts_of_parameters(self):
        """A secret's value is that of an environment variable, a path is absolute, and an earlier name is
        still a name.
        """
        with unittest.mock.patch.dict(os.environ, TARE_TEST_KEY="sesame"), self.assertLogs("tare", "INFO") as logs:
            with Verifier(compiled("larger"), key="TARE_TEST_KEY", data="x.txt") as v:
                self.assertEqual(v.parameters, {"key": "TARE_TEST_KEY", "file": "x.txt"})
                self.assertTrue(v.verify("yes", "yes").note.endswith("; sesame; %s/x.txt" % os.getcwd()))
        self.assertIn("the parameter data is now called file", logs.output[0])
        with self.assertRaisesRegex(TareError, "names no environment variable"):
            Verifier(compiled("larger"), key="TARE_NO_SUCH_KEY")

    def test_what_a_plugin_gives_is_checked(self):
        """As in the engine (tests/unit/plugin/test_border.c)."""
        batch = {"rewards": [[1, 0]]}
        with unittest.mock.patch.dict(os.environ, TEXTS_TOKEN="open-sesame-47"):
            def made(name):
                return Estimator(FIXTURE(name), token="TEXTS_TOKEN")

            for name, part, call in (("identity_binary", "one line", lambda e: e.identity()), ("identity_with_secret", "secret", lambda e: e.identity()),
                                     ("describes_secret", "secret parameter token", lambda e: e.describe()),
                                     ("describes_in_words", "one JSON object", lambda e: e.describe()),
                                     ("describes_a_list", "one JSON object", lambda e: e.describe()), ("saves_secret", "secret parameter token", lambda e: e.save()), ("writes_null", "incomplete", lambda e: e.save()),
                                     ("writes_negative", "incomplete", lambda e: e.save()), ("reads_on", "not there", lambda e: e.load(e.save())),
                                     ("grows_at_load", "1000 after load, but was 1", lambda e: e.load(e.save())),
                                     ("fails_with_secret", r"log in as \*+$", lambda e: e.step(**batch))):
                with self.subTest(name), self.assertRaisesRegex(TareError, part):
                    call(made(name))
            for name in ("old_key_is_a_key", "old_key_of_two", "old_key_twice"):
                with self.subTest(name), self.assertRaisesRegex(TareError, "old_keys, which is also a name"):
                    made(name)
            with self.assertLogs("tare", "WARNING") as logs:
                e = made("measures_oddly")
                e.step(**batch)
                made("logs_secret")
            self.assertEqual(list(e.metrics), ["good/name-1.5_x"])
            self.assertEqual(len(logs.output), 2)
            self.assertTrue(logs.output[1].endswith(": **************"))
        with self.assertRaisesRegex(TareError, "must be the name of an environment variable") as refused:
            Estimator(FIXTURE("plain_texts"), token="sk-4711")
        self.assertNotIn("4711", str(refused.exception))

    def test_locked_text_of_two_lines(self):
        e = Estimator(FIXTURE("plain_texts"), label="a\nrate=7\\n")
        Estimator(FIXTURE("plain_texts"), label="a\nrate=7\\n").load(e.save())
        with self.assertRaisesRegex(TareError, "fixed for a run"):
            Estimator(FIXTURE("plain_texts"), label="a").load(e.save())

    def test_locked_parameter_with_an_earlier_key(self):
        state = Estimator(FIXTURE("good"), factor=2).save()
        Estimator(FIXTURE("renamed_locked"), weight=2).load(state)
        with self.assertRaisesRegex(TareError, "saved with weight=2"):
            Estimator(FIXTURE("renamed_locked")).load(state)

    def test_columns_have_the_shape_of_the_rewards(self):
        with Estimator(compiled("larger")) as e:
            for finish, entropy in (([0, 0], None), ([[0, 0]], [0.5, 0.5]), ([[0, 0]], [[0.5, 0.5]])):
                with self.subTest((finish, entropy)), self.assertRaisesRegex(TareError, "must be .groups..rollouts."):
                    e.step([[1, 0]], finish=finish, entropy=entropy)

    def test_metrics(self):
        """Values of a metric in one step become one, as the plugin says."""
        from tare_sdk import abi
        from tare_sdk.plugin import Metrics

        for how, expected in ((abi.METRIC_LAST, 2), (abi.METRIC_SUM, 7), (abi.METRIC_MEAN, 7 / 3), (abi.METRIC_MIN, 1), (abi.METRIC_MAX, 4), (99, 2)):
            metrics = Metrics()
            for x in (1, 4, 2):
                metrics.add("x", x, how)
            self.assertAlmostEqual(metrics["x"], expected)

    def test_unknown_bits_and_numbers(self):
        for name, part in (("unknown_bits", "unknown flags 0x100000 in the parameter .* of estimator hostile"), ("unknown_flags", "function table"),
                           ("newer_minor", "needs ABI 1\\."), ("wants_twice", "twice"), ("wants_axis", "wants the column"),
                           ("short_descriptor", "lacks members of ABI 1.0"), ("param_stride", "a table of .* rows")):
            with self.subTest(name), self.assertRaisesRegex(TareError, part):
                Estimator(FIXTURE(name))
        for name in ("grown_descriptor", "unknown_kind_beside"):
            Estimator(FIXTURE(name)).close()
        with Verifier(FIXTURE("unknown_state")) as v:
            with self.assertRaisesRegex(TareError, "poll: unknown states"):
                v.verify_all(["1"], ["1"])

    def test_every_struct_has_its_size(self):
        """The ctypes have the sizes of the headers, and the registry those of core/plugin/columns.h."""
        from tare_sdk import abi, columns

        tables = "estimator verifier encoder codebook objective curriculum environment".split()
        structs = {name: getattr(abi, name) for name in dir(abi) if isinstance(getattr(abi, name), type) and hasattr(getattr(abi, name), "_fields_")}
        c_names = {name: re.sub("(?<!^)(?=[A-Z])", "_", name).lower() for name in structs}
        c_names = {name: c[: -len("_table")] if c.endswith("_table") else c for name, c in c_names.items()}
        self.assertTrue(set(tables) <= set(c_names.values()))
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "sizes.c")
            with open(source, "w") as file:
                file.write("#include <tare/plugin.h>\n")
                for name, type_ in structs.items():
                    file.write("_Static_assert(sizeof(tare_%s) == %d, \"%s\");\n" % (c_names[name], ctypes.sizeof(type_), name))
                    for field, _ in type_._fields_ if issubclass(type_, ctypes.Structure) else ():
                        file.write("_Static_assert(offsetof(tare_%s, %s) == %d, \"%s.%s\");\n" % (c_names[name], field, getattr(type_, field).offset, name, field))
            subprocess.run([compiler(), "-fsyntax-only", "-I", os.environ["SOURCE"] + "/sdk/include", source], check=True)
        with open(os.environ["SOURCE"] + "/core/plugin/columns.h") as file:
            rows = re.findall(r'COLUMN\(\w+,\s+(\w+),\s+"([\w.]+)",\s+(\w+),\s+(\w+),\s+(\d),', file.read())
        number = {kind.upper(): n for n, kind in abi.KINDS.items()}
        theirs = {(number[kind], name, getattr(abi, "AXIS_" + axis)): (getattr(abi, type_), int(width)) for kind, name, axis, type_, width in rows}
        self.assertEqual(columns.REGISTRY, theirs)


class Turns(unittest.TestCase):
    """Tokens of the environment between turns are context: they move no advantage."""

    def test_context(self):
        for name, column in (("rl_zvp", "entropy"), ("entropy_top", "entropy"), ("reinforce_pp", "logprob"), ("opd", "logprob")):
            plain = {"lengths": [[3, 2], [2, 4]]}
            tokens = [[[0.1, 0.2, 0.3], [0.4, 0.5]], [[0.6, 0.7], [0.8, 0.9, 1.0, 1.1]]]
            with_context = [[[*row[:1], 1e6, -1e6, *row[1:]] for row in group] for group in tokens]
            sampled = [[[1, 0, 0] + [1] * (len(row) - 1) for row in group] for group in tokens]
            longer = {"lengths": [[n + 2 for n in group] for group in plain["lengths"]], "sampled": sampled}
            turns = [[[(0, 1), (3, len(row) + 2)] for row in group] for group in tokens]
            rewards = [[1, 0], [1, 0.5]] if name != "rl_zvp" else [[1, 0], [1, 0]]
            ours = {column: tokens, "ref_logprob": tokens}
            theirs = {column: with_context, "ref_logprob": with_context}
            expected = Estimator(name).step(rewards, **plain, **ours)
            for more in ({}, {"turns": turns}):
                got = Estimator(name).step(rewards, **longer, **theirs, **more)
                self.assertEqual(got.advantage, expected.advantage)
                if got.token_advantage:
                    self.assertEqual([[a for a, s in zip(row, mask) if s] for row, mask in zip(got.token_advantage, [m for g in sampled for m in g])],
                                     expected.token_advantage)
            with self.assertRaisesRegex(TareError, "turns: those of rollout 0 are"):
                Estimator(name).step(rewards, **longer, **theirs, turns=[[[(3, 1)] for _ in group] for group in tokens])


class Kinds(unittest.TestCase):
    """The kinds that a trainer does not call: each is created, called, saved and loaded."""

    def test_objective(self):
        logprob, advantage, lengths = [-0.5, -1.0, -2.0, -0.1], [1.0, 1.0, -1.0, -1.0], [2, 2]
        with Objective("ppo", loss={"clip": 0.2}) as ppo:
            out = ppo.minibatch(logprob, advantage, lengths)
            self.assertEqual([round(x, 6) for x in out.value], [-1, -1, 1, 1])  # the ratio is 1
            self.assertEqual([round(x, 6) for x in out.dlogprob], [-1, -1, 1, 1])
            ppo.apply()
            ppo.load(ppo.save())
        with Objective(FIXTURE("good_objective")) as good:
            good.minibatch(logprob, advantage, lengths, sizes=[2], entropy=[1.0] * 4, kl=[0.1] * 4, ref_logprob=logprob, off_policy=[0] * 4, turn=[0] * 4,
                           sampler_logprob=logprob)
            good.apply()
            other = Objective(FIXTURE("good_objective")).load(good.save())
            self.assertEqual(other.save(), good.save())

    def test_curriculum(self):
        rows = [{"level": i % 3} for i in range(6)]
        with Curriculum("dapo_filter", rows, prompts_per_step=2, group_size=2) as filter_:
            chosen = filter_.next(2)
            self.assertEqual(chosen, [(0, 2), (1, 2)])
            rewards = [[1, 0], [1, 1]]
            fate, extra = filter_.keep([0, 1], rewards)
            self.assertEqual((fate[0], set(fate[1])), (["kept", "kept"], {"left_out"}))
            self.assertEqual(extra, 1)
            filter_.apply([0, 1], rewards, fate)
        with Curriculum(FIXTURE("good_curriculum"), rows, prompts_per_step=2, group_size=2) as good:
            self.assertEqual(len(good.next(2)), 2)
            fate, _ = good.keep([0, 1], [[1, 0], [0, 0]])
            good.apply([0, 1], [[1, 0], [0, 0]], fate)
            again = Curriculum(FIXTURE("good_curriculum"), rows, prompts_per_step=2, group_size=2).load(good.save())
            self.assertEqual(again.save(), good.save())

    def test_encoder_and_codebook(self):
        with Encoder("hashed") as encoder:
            encoder.fit(["one two", "two three"])
            vectors = encoder.encode(["one two", "three", ""])
            self.assertEqual((len(vectors), len(vectors[0])), (3, encoder.dim))
            self.assertEqual([list(v) for v in Encoder("hashed").load(encoder.save()).encode(["three"])], [list(vectors[1])])
        rows = [{"subject": "a"}, {"subject": "b"}, {"subject": "a"}]
        with Codebook("field", field="subject") as codebook:
            codebook.fit(rows=rows)
            cluster, _ = codebook.assign(rows=rows)
            self.assertEqual(list(cluster), [0, 1, 0])
            self.assertEqual((codebook.clusters, codebook.cluster_name(1)), (2, "b"))

    def test_suggested_acts(self):
        """The built-in guess: legal acts, equal for equal draws, and the whole game by hand."""
        with Environment("guess", highest=5) as e, e.session() as s:
            self.assertEqual(s.reset({"number": 4}).messages[0]["text"], "g:")
            acts = [s.suggest(draw) for draw in range(200)]
            self.assertEqual(set(acts), set("12345"))
            self.assertEqual(s.suggest(7 | 3 << 64), s.suggest(7 | 3 << 64))
            self.assertEqual((s.step("2").messages[0]["text"], s.step("4").reward), (">", 1))

    def test_environment(self):
        """tests/echo.c: says the row's greeting, answers each turn, and ends after three."""
        with Environment(compiled("echo"), turns=2) as e:
            self.assertEqual(e.card(), {"game": "echo"})
            with e.session() as s:
                begun = s.reset({"greeting": "hello"}, seed=5)
                self.assertEqual([(m["role"], m["text"]) for m in begun.messages], [("user", 'the row is {"greeting": "hello"}')])
                self.assertEqual((begun.tools, begun.stop, begun.end), ([], ["</s>"], "running"))
                first, saved = s.step("one"), s.save()
                self.assertEqual((first.messages[0]["text"], first.end, first.reward, first.state_key), ("one", "running", 0, "1"))
                last = s.step("two", calls=[{"name": "look", "arguments": {"at": 1}}])
                self.assertEqual((last.end, last.reward, last.verdict), ("done", 1, "correct"))
                self.assertEqual(last.messages[-1], {"role": "tool", "text": '{"at": 1}', "name": "look", "call_id": ""})
                s.load(saved)
                self.assertEqual(s.step("two").end, "done")


class Slime(unittest.TestCase):
    """slime's two functions with samples as slime makes them (slime/utils/types.py)."""

    class Sample:
        def __init__(self, group, index, reward, length, truncated=False):
            self.group_index, self.index, self.prompt, self.label = group, index, "prompt %d" % group, "4"
            self.tokens, self.response_length, self.response, self.reward = list(range(length + 2)), length, "x" * length, reward
            self.metadata, self.rollout_log_probs, self.remove_sample = {"cluster": group % 2}, None, False
            self.status = "Status.TRUNCATED" if truncated else "Status.COMPLETED"

        def get_reward_value(self, _args):
            return self.reward

    def samples(self, step):
        # two rollouts of each group, then two more of each: groups are distinguished by
        # group_index, not by position
        return [self.Sample(g, 4 * g + k, float((g * k + step) % 3 == 0), 1 + k, k == 3) for half in (0, 2) for g in range(3) for k in (half, half + 1)]

    def test_advantages_and_state(self):
        from tare_sdk.slime import RewardPostProcess

        with tempfile.TemporaryDirectory() as folder:
            args = types.SimpleNamespace(save=folder, normalize_advantages=False, start_rollout_id=0)
            hook, other = RewardPostProcess(Estimator("bv_blend", n_clusters=2)), Estimator("bv_blend", n_clusters=2)
            for step in range(3):
                samples = self.samples(step)
                raw, rewards = hook(args, samples)
                groups = [[i for i, s in enumerate(samples) if s.group_index == g] for g in range(3)]
                out = other.step([[samples[i].reward for i in g] for g in groups], cluster=[0, 1, 0])
                other.apply()
                self.assertEqual([[rewards[i] for i in g] for g in groups], out.advantage)
                self.assertEqual(raw, [s.reward for s in samples])
            # a run that continues after rollout 2 has the state from before it
            again = RewardPostProcess(Estimator("bv_blend", n_clusters=2))
            args.start_rollout_id = 2
            self.assertEqual(again(args, self.samples(2)), (raw, rewards))
            args.start_rollout_id = 9
            with self.assertRaisesRegex(TareError, "the state of bv_blend from before it is missing"):
                RewardPostProcess(Estimator("bv_blend", n_clusters=2))(args, self.samples(2))

    def test_dropped_and_refused(self):
        from tare_sdk.slime import RewardPostProcess, advantages as spread

        args = types.SimpleNamespace(save=None, normalize_advantages=False)
        samples = self.samples(0)
        for s in samples[:2]:
            s.reward = 1.0
        for s in samples:
            if s.group_index == 0:
                s.reward = 1.0  # dapo drops a group of equal rewards
        RewardPostProcess(Estimator("dapo"))(args, samples)
        self.assertEqual({s.group_index for s in samples if s.remove_sample}, {0})
        for name, part in (("gdpo", "component"), ("rl_zvp", "entropy")):
            with self.assertRaisesRegex(TareError, "%s: wants the column %s, which slime does not have" % (name, part)):
                RewardPostProcess(Estimator(name))
        args.normalize_advantages = True
        with self.assertRaisesRegex(TareError, "normalize-advantages"):
            RewardPostProcess(Estimator("grpo"))(args, samples)
        with self.assertRaisesRegex(TareError, "set both"):
            spread(types.SimpleNamespace(), {})

    def test_one_number_a_sample(self):
        from tare_sdk.slime import RewardPostProcess

        try:
            RewardPostProcess(Estimator("reinforce_pp", gamma=0.9))
        except TareError as error:
            self.assertIn("every token an advantage of its own", str(error))


if __name__ == "__main__":
    unittest.main()
