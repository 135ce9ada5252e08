"""Sends a run's metrics.jsonl to experiment trackers: Weights & Biases, trackio, MLflow, SwanLab,
Comet.

  python -m tare_sdk.loggers RUN --to wandb,trackio [--follow] [--project NAME]

RUN is a run's folder, finished or still being written. Each service is reached through its own
client, which must be installed (pip install wandb) and is configured as usual
(WANDB_MODE=offline, MLFLOW_TRACKING_URI, ...). Every step is sent once: RUN/export/NAME.json
stores the last step sent to a service and the id of the record there, so the command may be
repeated, also after a resume or a crash, and continues the same record. Nothing else of the run
is changed. A table of completions is sent with the first step and every tenth, or as
--completions-every says (0: none): the first rollouts of RUN/rollouts/step-NNNNNN.jsonl. With --follow it continues until the run's process releases its folder. A service
that fails is reported and skipped; the others continue. One process at a time sends a run to a
service; another one waits. (log.export = wandb,trackio in a configuration starts this command
with the run.)
"""
import argparse
import contextlib
import fcntl
import hashlib
import json
import math
import os
import sys
import time


class Wandb:
    def __init__(self, run, project, record):
        import wandb
        self.record = record or run.key
        self.run = wandb.init(project=project, name=run.name, id=self.record, resume="allow", dir=os.environ.get("WANDB_DIR") or run.export, config=run.config)
        self.make = getattr(wandb, "Table", None)

    def send(self, rows):
        for step, values in rows:
            self.run.log(values, step=step)

    def table(self, step, columns, rows):
        if self.make:
            self.run.log({"completions": self.make(columns=columns, data=rows)}, step=step)

    def close(self):
        self.run.finish()


class Trackio:
    def __init__(self, run, project, record):
        import trackio
        self.record, self.trackio = record or "%s-%s" % (run.name, run.key), trackio
        trackio.init(project=project, name=self.record, resume="allow", config=run.config)

    def send(self, rows):
        for step, values in rows:
            self.trackio.log(values, step=step)

    def table(self, step, columns, rows):
        if not hasattr(self.trackio, "Table"):
            return
        try:
            import pandas
        except ImportError:
            return
        self.trackio.log({"completions": self.trackio.Table(dataframe=pandas.DataFrame(rows, columns=columns))}, step=step)

    def close(self):
        self.trackio.finish()


class Mlflow:
    def __init__(self, run, project, record):
        from mlflow import MlflowClient
        from mlflow.entities import Metric, Param
        self.client, self.metric = MlflowClient(), Metric
        if record is None:
            experiment = self.client.get_experiment_by_name(project)
            number = experiment.experiment_id if experiment else self.client.create_experiment(project)
            record = self.client.create_run(number, run_name=run.name).info.run_id
            parameters = [Param(key, value[:500]) for key, value in run.config.items()]
            for at in range(0, len(parameters), 100):  # what one request may hold
                self.client.log_batch(record, params=parameters[at:at + 100])
        self.record = record

    def send(self, rows):
        for step, values in rows:
            metrics = [self.metric(key, value, int(time.time() * 1000), step) for key, value in values.items()]
            for at in range(0, len(metrics), 1000):  # what one request may hold
                self.client.log_batch(self.record, metrics=metrics[at:at + 1000])

    def table(self, step, columns, rows):
        if hasattr(self.client, "log_table"):
            self.client.log_table(self.record, {name: [row[k] for row in rows] for k, name in enumerate(columns)}, "completions/step-%06d.json" % step)

    def close(self):
        self.client.set_terminated(self.record)


class Swanlab:
    """Offline (SWANLAB_MODE=offline) its client begins a new folder each time; `swanlab sync` joins
    those with one id into one record.
    """

    def __init__(self, run, project, record):
        import swanlab
        self.record, self.swanlab = record or run.key, swanlab
        swanlab.init(project=project, name=run.name, id=self.record, resume="allow", config=run.config, log_dir=os.path.join(run.export, "swanlog"))

    def send(self, rows):
        for step, values in rows:
            self.swanlab.log(values, step=step)

    def table(self, step, columns, rows):
        if hasattr(self.swanlab, "Text"):
            text = lambda row: "\n".join("%s: %s" % pair for pair in zip(columns, row))
            self.swanlab.log({"completions": [self.swanlab.Text(text(row)) for row in rows]}, step=step)

    def close(self):
        self.swanlab.finish()


class Comet:
    """Offline (COMET_START_ONLINE=0, COMET_OFFLINE_DIRECTORY) its client writes an archive each time, all of one experiment key; `comet upload` takes them in order."""

    def __init__(self, run, project, record):
        import comet_ml
        self.record = record or hashlib.sha256(run.key.encode()).hexdigest()[:32]
        settings = comet_ml.ExperimentConfig(name=run.name, log_code=False, log_env_details=False, auto_output_logging=False, auto_metric_logging=False, log_git_metadata=False,
                                             log_git_patch=False, parse_args=False) if hasattr(comet_ml, "ExperimentConfig") else None
        self.experiment = comet_ml.start(project_name=project, experiment_key=self.record, mode="get_or_create", experiment_config=settings)
        if record is None:
            self.experiment.log_parameters(run.config)

    def send(self, rows):
        for step, values in rows:
            self.experiment.log_metrics(values, step=step)

    def table(self, step, columns, rows):
        if hasattr(self.experiment, "log_table"):
            self.experiment.log_table("completions-%06d.csv" % step, tabular_data=rows, headers=columns)

    def close(self):
        self.experiment.end()


SERVICES = {"wandb": Wandb, "trackio": Trackio, "mlflow": Mlflow, "swanlab": Swanlab, "comet": Comet}


class Damaged(Exception):
    """A file of the run cannot be read; the message says which one, where, and the remedy."""


COLUMNS = ["step", "id", "prompt", "completion", "answer", "reward", "advantage", "verdict", "reason"]
ROWS = 16  # of a table of completions


class Run:
    """A run's folder: its name, its configuration, its rows."""

    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        self.metrics = os.path.join(self.folder, "metrics.jsonl")
        self.export = os.path.join(self.folder, "export")
        self.name = os.path.basename(self.folder)
        if not os.path.isfile(os.path.join(self.folder, "config.ini")):
            raise FileNotFoundError("%s has no config.ini, so it is no run's folder" % folder)
        self.config = self._config()
        self.key = hashlib.sha256(self.folder.encode()).hexdigest()[:12]
        os.makedirs(self.export, exist_ok=True)

    def _config(self):
        values, section = {}, ""
        with open(os.path.join(self.folder, "config.ini"), encoding="utf-8") as f:
            for line in (x.strip() for x in f):
                if line.startswith("["):
                    section = line.strip("[]")
                elif "=" in line and line[0] not in "#;":
                    key, value = line.split("=", 1)
                    values["%s.%s" % (section, key.strip())] = value.strip()
        return values

    def rows(self, after, place=None):
        """Returns (step, {name: number}, offset) of the complete lines with a step above `after`,
        in their order. offset: the start of the next line, where a later call continues.
        """
        lines = self._lines(place) if place else None
        if lines is None:
            lines, place = self._lines(None), None
        for number, (line, end) in enumerate(lines or [], 1):
            row = as_object(line)
            if not row or not is_whole(row.get("step")):
                if place:  # the file is another than it was: it is read from its beginning
                    yield from self.rows(after)
                    return
                raise Damaged("%s:%d: is no object with a step, so the run's records end here; `tare reproduce` says what has changed" %
                              (self.metrics, number))
            if row["step"] > after:
                after = row["step"]
                yield after, {k: v for k, v in row.items() if k != "step" and is_number(v)}, end

    def completions(self, step):
        """Returns the rows of a table of completions, the first of the step; [] without its record."""
        rows, prompt = [], ""
        try:
            with open(os.path.join(self.folder, "rollouts", "step-%06d.jsonl" % step), encoding="utf-8", errors="replace") as file:
                for line in file:
                    row = as_object(line)
                    if not row or len(rows) == ROWS:
                        break
                    prompt = row.get("prompt") or row.get("question") or prompt  # the group's first line has it
                    row = {"step": step, **row, "prompt": prompt}
                    rows.append([row.get(name) if is_number(row.get(name)) else str(row.get(name) or "") for name in COLUMNS])
        except FileNotFoundError:
            pass
        return rows

    def _lines(self, place):
        """Returns [(complete line, offset after it)] from an offset on; None: the file is missing,
        or is not the one that the offset belongs to.
        """
        try:
            with open(self.metrics, "rb") as f:
                stat, start = os.fstat(f.fileno()), 0
                if place:
                    inode, start = place
                    f.seek(start - 1)
                    if inode != stat.st_ino or f.read(1) != b"\n":
                        return None
                data = f.read()
        except FileNotFoundError:
            return None
        lines = []
        for line in data[:data.rfind(b"\n") + 1].splitlines(keepends=True):
            start += len(line)
            lines.append((line, (stat.st_ino, start)))
        return lines

    def is_running(self):
        """True if a process holds the folder's lock. The lock is only inspected, because acquiring
        it would block a run that begins.
        """
        try:
            mark = ":%d" % os.stat(os.path.join(self.folder, "lock")).st_ino
            with open("/proc/locks", encoding="ascii") as f:
                return any("FLOCK" in line and line.split()[5].endswith(mark) for line in f if len(line.split()) > 5)
        except OSError:
            return False


def as_object(text):
    """Parses text as a JSON object; None: it is not one."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


class Export:
    """One service and its progress."""

    def __init__(self, run, name, project, tables=10):
        self.tables = tables
        self.path, self.run, self.name, self.place = os.path.join(run.export, name + ".json"), run, name, None
        self.step = -1
        self.lock = open(os.path.join(run.export, name + ".lock"), "w", encoding="ascii")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX)
            self.service = SERVICES[name](run, project, self._record())
            self._save()
        except BaseException:
            self.lock.close()
            raise

    def _record(self):
        """The service's record of this run, up to its progress."""
        record = None
        if os.path.exists(self.path):
            with open(self.path, "rb") as f:
                state = as_object(f.read())
            if not state or not is_whole(state.get("step")) or not isinstance(state.get("record"), str):
                raise Damaged("%s: does not say how far %s has come; remove it, and the run is sent again as a new record" % (self.path, self.name))
            self.step, record = state["step"], state["record"]
        return record

    def _save(self):
        with open(self.path + ".tmp", "w", encoding="utf-8") as f:
            json.dump({"record": self.service.record, "step": self.step}, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(self.path + ".tmp", self.path)

    def advance(self):
        for step, values, place in self.run.rows(self.step, self.place):
            self.service.send([(step, values)])
            if self.tables and (step == 1 or step % self.tables == 0):
                self._send_table(step)
            self.step, self.place = step, place
            self._save()

    def _send_table(self, step):
        """Sends some completions. If a client cannot take a table, the numbers are still sent."""
        rows = self.run.completions(step) if hasattr(self.service, "table") else []
        try:
            if rows:
                self.service.table(step, COLUMNS, rows)
        except Exception as error:
            self.tables = 0
            print("tare_sdk.loggers: %s: no tables of completions: %s: %s" % (self.name, type(error).__name__, error), file=sys.stderr)

    def close(self):
        self.service.close()


def report(name, error):
    if isinstance(error, Damaged):
        print("tare_sdk.loggers: %s" % error, file=sys.stderr)
        return
    print("tare_sdk.loggers: %s: %s: %s; the other services go on, and the run is not touched" % (name, type(error).__name__, error), file=sys.stderr)


def attempt(name, call, failed):
    try:
        return call()
    except Exception as error:  # whatever a client raises: one service must not end the others
        report(name, error)
        failed.append(name)
        return None


def export(folder, services, project="tare", follow=False, every=0.5, tables=10):
    """Sends the steps that the services lack. Returns the names of those that failed."""
    run, failed = Run(folder), []
    if not follow and not os.path.exists(run.metrics):
        raise FileNotFoundError("%s is not there, so there is nothing to send; --follow waits for a run that is being written" % run.metrics)
    exports = {name: attempt(name, lambda: Export(run, name, project, tables), failed) for name in services}
    while True:
        more = follow and run.is_running()  # asked before the rows are read: none that was written before the end is missed
        for name, one in exports.items():
            if one and name not in failed:
                attempt(name, one.advance, failed)
        if not more:
            break
        time.sleep(every)
    for name, one in exports.items():
        if one and name not in failed:
            attempt(name, one.close, failed)
        if one:
            one.lock.close()
    return failed


def main():
    p = argparse.ArgumentParser(prog="python -m tare_sdk.loggers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("run")
    p.add_argument("--to", required=True, help="services, by comma: " + ", ".join(SERVICES))
    p.add_argument("--follow", action="store_true", help="go on until the run ends")
    p.add_argument("--project", default="tare", help="the services' project or experiment")
    p.add_argument("--completions-every", type=int, default=10, metavar="STEPS", help="steps between two tables of completions; 0: none")
    a = p.parse_args()
    names = list(dict.fromkeys(a.to.replace(",", " ").split()))
    if a.follow:
        with contextlib.suppress(OSError):
            os.nice(10)  # the run comes first
    unknown = [x for x in names if x not in SERVICES]
    if unknown or not names:
        p.error("--to %s: %s; there are %s" % (a.to, "unknown: " + ", ".join(unknown) if unknown else "names no service", ", ".join(SERVICES)))
    try:
        sys.exit(1 if export(a.run, names, a.project, a.follow, tables=max(a.completions_every, 0)) else 0)
    except OSError as error:
        sys.exit("tare_sdk.loggers: %s" % error)


if __name__ == "__main__":
    main()
