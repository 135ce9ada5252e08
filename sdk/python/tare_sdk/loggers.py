"""Follows a run's metrics.jsonl into the services where people look: Weights & Biases, trackio, MLflow.

  python -m tare_sdk.loggers RUN --to wandb,trackio [--follow] [--project NAME]

RUN is a run's folder, finished or still being written. Each service is served by its own client, which has to be installed (pip install wandb); where it sends to
is set as always (WANDB_MODE=offline, MLFLOW_TRACKING_URI, ...). Every step is sent once: RUN/export/NAME.json says how far a service has come and which
record is its own, so that the command may be given again, after a resume or a crash too, and goes on with the same record. Nothing else of the run is touched.
With --follow it goes on until the run's process lets go of its folder. A service that fails is reported and left out; the others go on.
"""
import argparse
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
        self.run = wandb.init(project=project, name=run.name, id=self.record, resume="allow", dir=run.export, config=run.config)

    def send(self, rows):
        for step, values in rows:
            self.run.log(values, step=step)

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

    def close(self):
        self.client.set_terminated(self.record)


SERVICES = {"wandb": Wandb, "trackio": Trackio, "mlflow": Mlflow}


class Damaged(Exception):
    """A file of the run cannot be read as what it is; the message says which, where, and what to do."""


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

    def rows(self, after):
        """(step, {name: number}) of the whole lines with a step above `after`, in their order"""
        try:
            with open(self.metrics, "rb") as f:
                data = f.read()
        except FileNotFoundError:
            return
        for number, line in enumerate(data[:data.rfind(b"\n") + 1].splitlines(), 1):
            row = as_object(line)
            if not row or not is_whole(row.get("step")):
                raise Damaged("%s:%d: is no object with a step, so the run's records end here; `tare verify-run` says what has changed" %
                              (self.metrics, number))
            if row["step"] > after:
                after = row["step"]
                yield after, {k: v for k, v in row.items() if k != "step" and is_number(v)}

    def is_running(self):
        """Whether a process holds the folder's lock. Looked up and not tried, because a lock that is tried would stand in the way of a run that begins."""
        try:
            mark = ":%d" % os.stat(os.path.join(self.folder, "lock")).st_ino
            with open("/proc/locks", encoding="ascii") as f:
                return any("FLOCK" in line and line.split()[5].endswith(mark) for line in f if len(line.split()) > 5)
        except OSError:
            return False


def as_object(text):
    """The JSON object that text is; None: it is none."""
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
    """One service, as far as it has come."""

    def __init__(self, run, name, project):
        self.path, self.run, self.name = os.path.join(run.export, name + ".json"), run, name
        self.step, record = -1, None
        if os.path.exists(self.path):
            with open(self.path, "rb") as f:
                state = as_object(f.read())
            if not state or not is_whole(state.get("step")) or not isinstance(state.get("record"), str):
                raise Damaged("%s: does not say how far %s has come; remove it, and the run is sent again as a new record" % (self.path, name))
            self.step, record = state["step"], state["record"]
        self.service = SERVICES[name](run, project, record)
        self._save()

    def _save(self):
        with open(self.path + ".tmp", "w", encoding="utf-8") as f:
            json.dump({"record": self.service.record, "step": self.step}, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(self.path + ".tmp", self.path)

    def advance(self):
        for row in self.run.rows(self.step):
            self.service.send([row])
            self.step = row[0]
            self._save()

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


def export(folder, services, project="tare", follow=False, every=1.0):
    """Sends what the services do not have. Returns the names of those that failed."""
    run, failed = Run(folder), []
    if not follow and not os.path.exists(run.metrics):
        raise FileNotFoundError("%s is not there, so there is nothing to send; --follow waits for a run that is being written" % run.metrics)
    exports = {name: attempt(name, lambda: Export(run, name, project), failed) for name in services}
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
    return failed


def main():
    p = argparse.ArgumentParser(prog="python -m tare_sdk.loggers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("run")
    p.add_argument("--to", required=True, help="services, by comma: " + ", ".join(SERVICES))
    p.add_argument("--follow", action="store_true", help="go on until the run ends")
    p.add_argument("--project", default="tare", help="the services' project or experiment")
    a = p.parse_args()
    names = [x.strip() for x in a.to.split(",") if x.strip()]
    unknown = [x for x in names if x not in SERVICES]
    if unknown or not names:
        p.error("--to %s: %s; there are %s" % (a.to, "unknown: " + ", ".join(unknown) if unknown else "names no service", ", ".join(SERVICES)))
    try:
        sys.exit(1 if export(a.run, names, a.project, a.follow) else 0)
    except OSError as error:
        sys.exit("tare_sdk.loggers: %s" % error)


if __name__ == "__main__":
    main()
