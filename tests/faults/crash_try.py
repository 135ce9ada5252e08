#!/usr/bin/env python3
"""Records a command, makes every state of its folder that a crash could leave (crash.py), and continues in each one as a user would.

crash_try.py --record LIBRARY --root FOLDER [--run NAME [--continue WORDS] [--untouched REGEX] | --result REGEX [--resumed PATH]]
             [--rules strict|ext4] [--most N] [--seed S] [--seconds S] [--plant REGEX] -- COMMAND...

A training run (--run, its folder below FOLDER; COMMAND starts or resumes it) is resumed, or started if nothing of it is left. It
must end bit-identical to the recorded run, in its database too, begin at the newest checkpoint that was finished before the crash
or at a later one, and its checksums must match then. reproduce must report a state in which a file named by the chain is not as
the run wrote it.
--continue: the command that continues it, if not the command with --resume (a fork's); --untouched: files that the command only
reads (the run that it branches off). A job of several ranks (dist.ranks) continues on one, two and three in turn; the slices of
its optimizer then have different names and are not compared.
A sweep (no --run): the same command must end with the same cells. Other commands (--result): the same command, with --resume if
the folder --resumed (NAME.training) exists, must end with the same bytes in the files whose paths match; if that folder is
missing and NAME exists, it is done. --plant: syncs of these paths are left out, as if the program had forgotten them.
Exit status 1: a promise was broken; each one is printed with the state in which it was found.
"""
import argparse
import collections
import itertools
import json
import os
import random
import re
import sqlite3
import subprocess
import sys
import time

import crash

TIMES = re.compile(rb'"(time|memory|speculation)/[^"]*":[^,}]*,?|"tokens_per_second":[^,}]*,?')


def run(command, **more):
    p = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **more}, timeout=1000)
    return p.returncode, p.stdout.decode("utf-8", "replace")


PIECES = re.compile(r"/(optimizer-\d+-of-\d+\.state|training\.state|complete\.json)$")


def result(tree, name):
    """The results of a run, without those that contain times: {path: bytes}."""
    out = {}
    steps = sorted(p for p in tree if re.fullmatch(re.escape(name) + r"checkpoints/step-\d+", p))
    for path, data in tree.items():
        part = path[len(name):] if path.startswith(name) else ""
        if data is None or not part:
            continue
        if part.startswith(("rollouts/", "estimator/")) or (steps and path.startswith(steps[-1] + "/")):
            out[path] = data
        if part == "metrics.jsonl":
            out[path] = re.sub(rb",}", b"}", TIMES.sub(b"", data))
        if part == "manifest.json":
            out[path] = json.dumps(json.loads(data).get("rollbacks")).encode()
    return out


def database(root):
    """The rows of runs.db: (folder, step, name)."""
    path = os.path.join(root, "runs.db")
    if not os.path.exists(path):
        return None
    db = sqlite3.connect(path)
    try:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        rows = db.execute("SELECT dir, metrics.step, metrics.name FROM metrics JOIN runs ON run = id WHERE value IS NOT NULL").fetchall()
        cells = db.execute("SELECT cell, status FROM cells").fetchall() if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'cells'").fetchone() else []
        return sorted(rows), sorted(cells)
    finally:
        db.close()


class Trial:
    def __init__(self, a):
        self.a = a
        self.name = a.run + "/" if a.run else ""
        self.ranks = itertools.cycle((1, 2, 3)) if any(x.startswith("dist.ranks=") for x in a.command) else None
        self.log = a.root + ".calls"
        if os.path.exists(self.log):
            os.remove(self.log)
        inodes, top = crash.load(a.root)
        code, text = run(a.command, LD_PRELOAD=a.record, TARE_RECORD=self.log, TARE_RECORD_ROOT=a.root)
        assert code == 0, "the recorded command fails: %s" % text
        self.history = crash.History(self.log, a.root, inodes, top, a.plant)
        self.after = crash.read(a.root)
        self.want, self.rows = self.results(self.after), database(a.root)
        # {path: contents} as written by the run; for files of lines, its lines.
        self.written = collections.defaultdict(set)
        self.found, self.counts = [], collections.Counter()
        made = self.history.whole(self.history.moments)
        # SQLite writes -shm by mmap, and log.txt is a standard stream: neither is recorded, and
        # neither is read after a crash
        differs = sorted(p for p in made.keys() | self.after.keys() if not p.endswith(("-shm", "log.txt")) and made.get(p, 0) != self.after.get(p, 0))
        assert not differs, "the record does not lead to the files in the folder: %s" % differs[:5]

    def results(self, tree):
        if self.a.result:
            return {p: d for p, d in tree.items() if d is not None and re.search(self.a.result, p)}
        drop = PIECES if self.ranks else None
        read = {p: d for p, d in tree.items() if d is not None and self.a.untouched and re.search(self.a.untouched, p)}
        names = [self.name] if self.name else sorted({p.split("/metrics.jsonl")[0] + "/" for p in tree if p.endswith("/metrics.jsonl")})
        return read | {k: v for n in names for k, v in result(tree, n).items() if not drop or not drop.search(k)}

    def note_contents(self):
        h = self.history
        for moment in {-1, h.moments} | {c[0] for c in h.changes} | {s[0] for s in h.believed}:
            for path, data in h.whole(moment).items():
                self.note(path, data)

    def note(self, path, data):
        if data is not None:
            self.written[path].update(data.splitlines(True) if path.endswith((self.name + "metrics.jsonl", "chain.jsonl")) else [data])

    def finished(self, moment):
        """The newest checkpoint whose folder had its final name on the disk, as the program believes."""
        h, best = self.history, -1
        for path in h.whole(-1):
            m = re.fullmatch(re.escape(self.name) + r"checkpoints/step-(\d+)", path)
            best = max(best, int(m[1]) if m else -1)
        for when, folder, change in h.changes:
            for name in change:
                m = re.fullmatch(r"step-(\d+)", name) if change[name] else None
                if m and h.names.get(folder) == self.name + "checkpoints" and any(when < s < moment and n is folder for s, n, _ in h.believed):
                    best = max(best, int(m[1]))
        return best

    # ---- one state

    def broke(self, what):
        self.found.append(what)

    def called_right(self, tree):
        """If reproduce reports nothing, the files named by the chain are as written."""
        chain = tree.get(self.name + "chain.jsonl") or b""
        for line in chain.splitlines(True):
            if not line.endswith(b"\n"):
                continue
            for file in json.loads(line).get("files", {}):
                path = self.name + file
                # `tare reproduce` notes a lock of a process without a link.
                if file in ("metrics.jsonl", "lock") or tree.get(path) is None:
                    continue
                if tree[path] not in self.written[path]:
                    self.broke("reproduce calls it right, and %s is nothing that was written" % path)
        for line in (tree.get(self.name + "metrics.jsonl") or b"").splitlines(True):
            if line.endswith(b"\n") and line not in self.written[self.name + "metrics.jsonl"]:
                self.broke("reproduce calls it right, and metrics.jsonl has a line that was not written")

    def sums(self, tree, at_end):
        folder = os.path.join(self.a.root, self.a.run)
        if not at_end and (self.name + "chain.jsonl" not in tree or self.name + "metrics.jsonl" not in tree):
            return
        code, text = run([self.a.command[0], "reproduce", folder])
        if code == 0 and not at_end:
            self.counts["states in which reproduce reports nothing"] += 1
            self.called_right(tree)
        if code not in (0, 1, 2):
            self.broke("reproduce: exit status %d: %s" % (code, text[-300:]))
        if code and at_end:
            self.broke("after it went on, reproduce: %s" % "; ".join(x for x in text.splitlines() if not x.startswith("note:"))[:400])

    def began_at(self):
        """The step at which the resumed process began, by its link."""
        with open(os.path.join(self.a.root, self.name, "chain.jsonl")) as f:
            lines = [json.loads(x) for x in f]
        starts = [x["step"] for x in lines if x["link"] == "process"]
        return starts[-1] if starts else -1

    def go_on(self, tree):
        command = [x for x in self.a.command if x != "--resume"]
        if self.ranks:
            command = [x if not x.startswith("dist.ranks=") else "dist.ranks=%d" % next(self.ranks) for x in command]
        if self.name and any(self.name + m in tree for m in ("manifest.json", "metrics.jsonl", "checkpoints")):
            command = command[:1] + self.a.go_on.split() if self.a.go_on else command + ["--resume"]
            self.counts["resumed"] += 1
        elif self.a.resumed and self.a.resumed in tree:
            command.append("--resume")
            self.counts["resumed"] += 1
        elif self.a.resumed and self.a.resumed.split(".")[0] in tree:
            self.counts["done"] += 1
            return 0, ""
        elif self.name:
            self.counts["nothing of the run is left: started"] += 1
        return run(command)

    def compare(self):
        now = self.results(crash.read(self.a.root))
        differs = sorted(p for p in self.want.keys() | now.keys() if self.want.get(p) != now.get(p))
        if differs:
            self.broke("it ends with other bits: %s" % differs[:4])
        try:
            if self.rows and database(self.a.root) != self.rows:
                self.broke("runs.db has other rows")
        except (AssertionError, sqlite3.Error) as why:
            self.broke("runs.db: %s" % why)

    def one(self, moment, what, tree):
        self.found = []
        crash.put(tree, self.a.root)
        if self.name:
            self.sums(tree, False)
        code, text = self.go_on(tree)
        if code:
            self.counts["refused"] += 1
            self.broke("it does not go on: exit status %d: %s" % (code, text[-500:].strip()))
        else:
            self.compare()
            if self.name:
                self.sums(tree, True)
                if self.began_at() < self.finished(moment):
                    self.broke("checkpoint %d was finished, and the run went on from %d" % (self.finished(moment), self.began_at()))
        return self.found

    def all(self):
        a, rng, seen, chosen, began = self.a, random.Random(self.a.seed), set(), [], time.monotonic()
        made = 0
        for state in crash.states(self.history, a.rules, random.Random(a.seed)):
            made += 1
            k = crash.key(state[2])
            if k not in seen:
                seen.add(k)
                chosen.append(state)
        different = len(chosen)
        chosen = rng.sample(chosen, min(a.most or different, different))
        self.note_contents()
        broken = tried = 0
        for moment, what, tree in chosen:
            if a.seconds and time.monotonic() - began > a.seconds:
                break
            tried += 1
            found = self.one(moment, what, tree)
            broken += bool(found)
            if found and (broken <= 8 or a.first):
                print("BROKEN: %s rules, before call %d of %d, %s: %s" % (a.rules, moment, self.history.moments, what, "; ".join(found)), flush=True)
                if a.keep:
                    crash.put(tree, "%s.broken-%d" % (a.root, broken))
            if found and a.first:
                break
        print("%s, %s rules: %d calls, %d syncs, %d states, %d different ones, %d tried (%s), %d broken promises" % (
            os.path.basename(a.root), a.rules, self.history.moments, len(self.history.believed), made, different, tried,
            ", ".join("%d %s" % (n, k) for k, n in sorted(self.counts.items())), broken), flush=True)
        return broken


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--record", required=True)
    p.add_argument("--root", required=True, type=os.path.abspath)
    p.add_argument("--run", default="")
    p.add_argument("--continue", dest="go_on")
    p.add_argument("--untouched")
    p.add_argument("--result")
    p.add_argument("--resumed")
    p.add_argument("--rules", choices=("strict", "ext4"), default="strict")
    p.add_argument("--most", type=int, default=0)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--seconds", type=float, default=0)
    p.add_argument("--plant")
    p.add_argument("--first", action="store_true", help="end at the first broken promise")
    p.add_argument("--keep", action="store_true", help="keep the states in which something was found: FOLDER.broken-N")
    p.add_argument("command", nargs="+")
    sys.exit(1 if Trial(p.parse_args()).all() else 0)


if __name__ == "__main__":
    main()
