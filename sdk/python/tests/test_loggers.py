"""Tests tare_sdk.loggers with stand-ins for the services' clients, and with --real with the clients themselves, where they are installed.

  test_loggers.py RUN                        stand-ins; RUN: the folder of a finished run, which is copied
  test_loggers.py RUN --real [SERVICE ...]   the clients of the environment that runs this: wandb, SwanLab and Comet (offline), trackio, MLflow
                                             (MLFLOW_TRACKING_URI, or a store in a folder); with SERVICE only those
"""
import contextlib
import importlib.util
import io
import json
import os
import shutil
import sys
import tempfile
import types

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from tare_sdk import loggers

RUN, REAL = sys.argv[1], "--real" in sys.argv


def lines():
    with open(os.path.join(RUN, "metrics.jsonl")) as f:
        return f.readlines()


def copy(folder, n):
    """The run as it was after n steps."""
    shutil.copytree(RUN, folder, dirs_exist_ok=True)
    cut(folder, n)


def cut(folder, n, half=""):
    with open(os.path.join(folder, "metrics.jsonl"), "w") as f:
        f.write("".join(lines()[:n]) + half)


def numbers(line):
    return {k: v for k, v in json.loads(line).items() if k != "step" and loggers.is_number(v)}


def stand_in(calls, fails_at=None):
    """A module that records its calls; it raises at step fails_at."""
    module = types.ModuleType("wandb")

    class Run:
        def log(self, values, step):
            if step == fails_at:
                raise ConnectionError("no way to the service")
            calls.append((step, values))

        def finish(self):
            calls.append("finished")

    def init(**what):
        calls.append(what["id"])
        assert what["resume"] == "allow" and what["config"]["run.seed"] == "1", what
        return Run()

    module.init = init
    return module


def once_in_order_and_resumed():
    calls = []
    sys.modules["wandb"] = stand_in(calls)
    with tempfile.TemporaryDirectory() as folder:
        copy(folder, 3)
        assert loggers.export(folder, ["wandb"]) == []
        cut(folder, 2, lines()[2][:20])  # a run that was resumed from step 2 writes step 3 again, and has not finished the line
        assert loggers.export(folder, ["wandb"]) == []
        cut(folder, len(lines()))
        assert loggers.export(folder, ["wandb"], follow=True) == []  # the folder has no lock, so it ends
        assert loggers.export(folder, ["wandb"]) == []
        others = sorted(set(os.listdir(folder)) - set(os.listdir(RUN)))
        assert others == ["export"], others
    points = [x for x in calls if isinstance(x, tuple)]
    assert points == [(json.loads(line)["step"], numbers(line)) for line in lines()] and len(points) > 5
    assert len({x for x in calls if isinstance(x, str) and x != "finished"}) == 1


def completions_as_tables():
    calls = []
    module = stand_in(calls)
    module.Table = lambda columns, data: (columns, data)
    sys.modules["wandb"] = module
    with tempfile.TemporaryDirectory() as folder:
        copy(folder, len(lines()))
        assert loggers.export(folder, ["wandb"], tables=4) == []
    tables = [(step, values["completions"]) for step, values in [x for x in calls if isinstance(x, tuple)] if "completions" in values]
    assert [step for step, _ in tables] == [1, 4, 8, 12], tables
    for step, (columns, rows) in tables:
        with open(os.path.join(RUN, "rollouts", "step-%06d.jsonl" % step)) as f:
            wanted = [json.loads(line) for line in f][:16]
        assert [row[columns.index("completion")] for row in rows] == [x["completion"] for x in wanted]
        assert [row[columns.index("reward")] for row in rows] == [x["reward"] for x in wanted]
        assert all(row[columns.index("prompt")] for row in rows)

    module.Table = lambda columns, data: 1 / 0
    calls.clear()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as err:
        copy(folder, len(lines()))
        assert loggers.export(folder, ["wandb"], tables=1) == []
    assert [x[0] for x in calls if isinstance(x, tuple)] == [json.loads(line)["step"] for line in lines()]
    assert err.getvalue().count("no tables of completions: ZeroDivisionError") == 1, err.getvalue()


def one_that_fails_stands_in_nobodys_way():
    calls, other = [], []
    steps = [json.loads(line)["step"] for line in lines()]
    sys.modules["wandb"] = stand_in(calls, fails_at=steps[2])
    sys.modules["trackio"] = types.ModuleType("trackio")
    sys.modules["trackio"].init = lambda **what: None
    sys.modules["trackio"].log = lambda values, step: other.append(step)
    sys.modules["trackio"].finish = lambda: None
    sys.modules["mlflow"] = None  # not installed
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as err:
        copy(folder, len(lines()))
        assert loggers.export(folder, ["wandb", "trackio", "mlflow"]) == ["mlflow", "wandb"]
        assert other == steps and [x[0] for x in calls if isinstance(x, tuple)] == steps[:2]
        sys.modules["wandb"] = stand_in(calls)
        assert loggers.export(folder, ["wandb"]) == []  # goes on where it failed
    assert [x[0] for x in calls if isinstance(x, tuple)] == steps
    assert "wandb: ConnectionError: no way to the service" in err.getvalue() and "mlflow: " in err.getvalue(), err.getvalue()


def real():
    only = sys.argv[sys.argv.index("--real") + 1:] or loggers.SERVICES
    have = [name for name in loggers.SERVICES if name in only and importlib.util.find_spec({"comet": "comet_ml"}.get(name, name))]
    with tempfile.TemporaryDirectory() as place:
        os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", TRACKIO_DIR=place + "/trackio", MLFLOW_TRACKING_URI=os.environ.get("MLFLOW_TRACKING_URI", "file://" + place + "/mlflow"), MLFLOW_ALLOW_FILE_STORE="true",
                          SWANLAB_MODE="offline", COMET_START_ONLINE="0", COMET_OFFLINE_DIRECTORY=place + "/comet")
        os.makedirs(place + "/comet")
        folder = place + "/run"
        for n in (3, 2, len(lines()), len(lines())):
            copy(folder, n) if not os.path.exists(folder) else cut(folder, n)
            failed = loggers.export(folder, have)
            assert not failed, failed
        want = [json.loads(line)["step"] for line in lines()]
        for name in have:
            if "read_" + name not in globals():
                print("%-8s sent without an error; its file is not read back" % name)
                continue
            got = sorted(globals()["read_" + name](place, folder))
            print("%-8s %d points of %d steps, each once: %s" % (name, len(got), len(want), got == want))
            assert got == want, (name, got)


def record_of(folder, name):
    with open("%s/export/%s.json" % (folder, name)) as f:
        return json.load(f)["record"]


def wandb_records(data):
    """The records of an offline run's file, SwanLab's too: a log as LevelDB's, blocks of 32 KB, each part with checksum, length and kind, after 7 bytes of a head."""
    at, whole = 7, b""
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        size, kind = int.from_bytes(data[at + 4:at + 6], "little"), data[at + 6]
        if kind == 0:
            return
        whole += data[at + 7:at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # the whole, or the last part
            yield whole
            whole = b""


def read_wandb(place, folder):
    from wandb.proto import wandb_internal_pb2
    steps = []
    for root, _, files in os.walk(folder + "/export"):
        for file in (x for x in files if x.endswith(".wandb")):
            with open(os.path.join(root, file), "rb") as f:
                for data in wandb_records(f.read()):
                    record = wandb_internal_pb2.Record()
                    record.ParseFromString(data)
                    if record.WhichOneof("record_type") == "history":
                        items = {i.key or "/".join(i.nested_key): i.value_json for i in record.history.item}
                        steps.append(int(items.get("_step", record.history.step.num)))
    return steps


def read_swanlab(place, folder):
    from swanlab.proto.swanlab.record.v1.record_pb2 import Record
    steps = []
    for root, _, files in os.walk(folder + "/export/swanlog"):
        for file in (x for x in files if x.endswith(".swanlab")):
            with open(os.path.join(root, file), "rb") as f:
                records = [Record.FromString(data) for data in wandb_records(f.read())]
            if any(r.start.id for r in records):
                assert {r.start.id for r in records if r.start.id} == {record_of(folder, "swanlab")}
            steps += [r.scalar.step for r in records if r.WhichOneof("record_type") == "scalar" and r.scalar.key == "reward/mean"]
    return steps


def read_trackio(place, folder):
    import sqlite3
    steps = []
    for root, _, files in os.walk(place + "/trackio"):
        for file in (x for x in files if x.endswith(".db")):
            with contextlib.closing(sqlite3.connect(os.path.join(root, file))) as db:
                steps += [row[0] for row in db.execute("select step from metrics where run_name = ?", (record_of(folder, "trackio"),))]
    return steps


def read_comet(place, folder):
    import zipfile
    steps = []
    for file in sorted(x for x in os.listdir(place + "/comet") if x.endswith(".zip")):
        assert file.startswith(record_of(folder, "comet")), file
        with zipfile.ZipFile(os.path.join(place, "comet", file)) as archive:
            lines = [json.loads(x) for name in archive.namelist() if "messages" in name for x in archive.read(name).splitlines()]
        metrics = [x["payload"] for x in lines if x.get("type") == "metric_msg"]
        steps += [x["metric"]["step"] for x in metrics if x["metric"]["metricName"] == "reward/mean"]
    return steps


def read_mlflow(place, folder):
    from mlflow import MlflowClient
    return [m.step for m in MlflowClient().get_metric_history(record_of(folder, "mlflow"), "reward/mean")]


if REAL:
    real()
else:
    once_in_order_and_resumed()
    one_that_fails_stands_in_nobodys_way()
    completions_as_tables()
    print("loggers: 3 passed")
