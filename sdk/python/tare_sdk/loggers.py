"""Follows a run's metrics.jsonl into the services where people look: Weights & Biases, trackio, MLflow, SwanLab, Comet.

  python -m tare_sdk.loggers RUN --to wandb,trackio [--follow] [--project NAME]

RUN is a run's folder, finished or still being written. Each service is served by its own client, which has to be installed (pip install wandb); where it sends to
is set as always (WANDB_MODE=offline, MLFLOW_TRACKING_URI, ...). Every step is sent once: RUN/export/NAME.json says how far a service has come and which
record is its own, so that the command may be given again, after a resume or a crash too, and goes on with the same record. Nothing else of the run is touched.
With --follow it goes on until the run's process lets go of its folder. A service that fails is reported and left out; the others go on. One process at a time
sends a run to a service: another one waits for it. (log.export = wandb,trackio in a configuration starts this command with the run.)
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


class Swanlab:
    """Offline (SWANLAB_MODE=offline) its client begins a folder each time; `swanlab sync` joins those of one id to one record."""

    def __init__(self, run, project, record):
        import swanlab
        self.record, self.swanlab = record or run.key, swanlab
        swanlab.init(project=project, name=run.name, id=self.record, resume="allow", config=run.config, log_dir=os.path.join(run.export, "swanlog"))

    def send(self, rows):
        for step, values in rows:
            self.swanlab.log(values, step=step)

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

    def close(self):
        self.experiment.end()


SERVICES = {"wandb": Wandb, "trackio": Trackio, "mlflow": Mlflow, "swanlab": Swanlab, "comet": Comet}


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

    def rows(self, after, place=None):
        """(step, {name: number}, place) of the whole lines with a step above `after`, in their order; place: where the next line begins, from which a later call reads on"""
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

    def _lines(self, place):
        """[(whole line, place after it)] from a place on; None: the file is not there, or is not the one that the place is in"""
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
        """The service's record of this run, as far as there is one."""
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
            self.step, self.place = step, place
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


def export(folder, services, project="tare", follow=False, every=0.5):
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
        if one:
            one.lock.close()
    return failed


def main():
    p = argparse.ArgumentParser(prog="python -m tare_sdk.loggers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("run")
    p.add_argument("--to", required=True, help="services, by comma: " + ", ".join(SERVICES))
    p.add_argument("--follow", action="store_true", help="go on until the run ends")
    p.add_argument("--project", default="tare", help="the services' project or experiment")
    a = p.parse_args()
    names = list(dict.fromkeys(a.to.replace(",", " ").split()))
    if a.follow:
        with contextlib.suppress(OSError):
            os.nice(10)  # the run comes first
    unknown = [x for x in names if x not in SERVICES]
    if unknown or not names:
        p.error("--to %s: %s; there are %s" % (a.to, "unknown: " + ", ".join(unknown) if unknown else "names no service", ", ".join(SERVICES)))
    try:
        sys.exit(1 if export(a.run, names, a.project, a.follow) else 0)
    except OSError as error:
        sys.exit("tare_sdk.loggers: %s" % error)


if __name__ == "__main__":
    main()
