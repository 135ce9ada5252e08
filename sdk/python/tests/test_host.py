"""The Python host against the engine: python3 -m unittest, with TARE (the program), TARE_PLUGIN_PATH, and SHARED (reference data, may be absent)."""

import json
import math
import os
import subprocess
import tempfile
import unittest

from tare_sdk import Estimator, TareError, Verifier, advantages

TARE = os.environ["TARE"]
DATA = os.path.join(os.environ.get("SHARED", ""), "data", "estimators")
RANDOM = ["5897618c", "c2a0b9fd", "70cfadff", "a5ec9de5", "9c1aefde", "738c42ca"]


def engine(estimator, parameters, clusters, steps, *options):
    """tare estimate over the steps: the engine's lines."""
    command = [TARE, "estimate", estimator, *options] + (["clusters=%d" % clusters] if clusters else [])
    command += ["%s=%s" % (key, str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, float) else value)
                for key, value in parameters.items()]
    lines = "".join(json.dumps({"groups": step}) + "\n" for step in steps)
    done = subprocess.run(command, input=lines, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def printed(scale):
    """tare estimate prints 1 where nothing is divided by."""
    return 1 if math.isnan(scale) else scale


class Bits(unittest.TestCase):
    def compare(self, name, parameters, clusters, steps):
        expected = engine(name, parameters, clusters, steps)
        with Estimator(name, n_clusters=clusters, **{k: v for k, v in parameters.items() if k != "clusters"}) as estimator:
            for step, line in zip(steps, expected):
                out = estimator.step([g["rewards"] for g in step], cluster=[g.get("cluster", -1) for g in step])
                self.assertEqual(out.advantage, line["advantages"])
                self.assertEqual(out.baseline, line["baseline"])
                self.assertEqual([*map(printed, out.scale)], line["scale"])
                self.assertEqual(out.confidence, line["weight"])
                estimator.apply()
                self.assertEqual(estimator.state(), line["state"])

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

    def test_without_reference_data(self):
        steps = [[{"cluster": (i + s) % 3, "rewards": [((7 * i + 3 * j + s) % 5) / 4 for j in range(2 + i)]} for i in range(5)] for s in range(6)]
        for name in ("bv_blend", "grpo", "rloo", "dr_grpo", "opo", "maxrl", "reinforce_pp", "krpo", "n_eff", "spo"):
            with self.subTest(name):
                self.compare(name, {}, 3, steps)


class State(unittest.TestCase):
    """A state that one host saves is the other's, bit for bit."""

    CASES = (("bv_blend", {"gamma": 0.3, "v_prior": 1e-5, "n0": 12345678.5}), ("krpo", {"meas_var": 0.02}), ("spo", {"rho": 0.95}), ("grpo", {}))

    def steps(self, first, last):
        return [[{"cluster": (i + s) % 3, "uid": (i * 5 + s) % 7, "rewards": [((7 * i + 3 * j + s) % 5) / 4 for j in range(2 + i)]} for i in range(4)]
                for s in range(first, last)]

    def python(self, name, parameters):
        own = {"clusters": 3} if name == "bv_blend" else {}
        return Estimator(name, n_clusters=3, **own, **parameters)

    def run_steps(self, estimator, steps):
        lines = []
        for step in steps:
            out = estimator.step([g["rewards"] for g in step], cluster=[g["cluster"] for g in step], uid=[g["uid"] for g in step])
            estimator.apply()
            lines.append((out.advantage, estimator.state()))
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
                # each goes on from the other's
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
            with self.assertRaisesRegex(AssertionError, "codebook has 3 clusters, this one's has 2"):
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
        for damaged in (b"", data[:-1], data[:40] + bytes([data[40] ^ 1]) + data[41:], data + b"x"):
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
        with self.assertRaisesRegex(TareError, "holds no verifier"):
            Verifier(Estimator("grpo").path)
        with self.assertRaisesRegex(TareError, "not a plugin"):
            Estimator(os.path.abspath(__file__) + "/../../pyproject.toml")
        with self.assertRaisesRegex(TareError, "finite"):
            Estimator("grpo").step([[1, math.nan]])
        with self.assertRaisesRegex(TareError, "clusters in"):
            Estimator("bv_blend", n_clusters=2).step([[1, 0]], cluster=[2])

    def test_empty_batch(self):
        self.assertEqual(Estimator("grpo").step([]).advantage, [])

    def test_verifier(self):
        with Verifier("number") as v:
            right, wrong = v.verify("it is 42", "42"), v.verify("it is 41", "42", row={"question": "?"}, timeout=1)
        self.assertEqual((right.verdict, right.reward, right.extracted), ("correct", 1.0, "42"))
        self.assertEqual((wrong.verdict, wrong.reward), ("wrong", 0.0))
        with Verifier("command", command="while read -r line; do echo 0.5; done") as v:
            self.assertEqual(v.verify("x", "y").verdict, "partial")
        with self.assertRaisesRegex(TareError, "has to be given"):
            Verifier("command")


if __name__ == "__main__":
    unittest.main()
