"""Hostile programs by the thousand against the verifier code: every one has to end, be judged wrong or late, and leave the machine as it was.

  verify_code.py [--tare build/tare] [--programs 10000] [--seed 1] [--workers 2] [--sandbox full]

A program is one to five attacks in random order, each in a try, some in threads, with random numbers, names and signals. What is looked at afterwards: files in a
folder that the programs know, processes that carry their mark, verdicts of "correct" (none), and that one and several workers judge alike.
"""
import argparse
import collections
import json
import os
import random
import subprocess
import sys
import tempfile
import time

ATTACKS = [
    "import os\nfor _ in range({n}): os.fork()", "import subprocess\nsubprocess.Popen(['sleep', '{n}', '{mark}'])", "import os\nos.system('sleep {n} {mark} &')",
    "import threading, time\nfor _ in range({n}): threading.Thread(target=time.sleep, args=({n},), daemon=True).start()", "x = bytearray({n} << 28)",
    "x = [0]\nwhile len(x) < {n} << 26: x += x", "print('x' * ({n} << 20))", "import sys\nsys.stderr.write('x' * ({n} << 18))",
    "open({folder!r} + '/{n}', 'w').write('x')", "import os\nos.remove({folder!r} + '/keep')", "import os\nos.truncate({folder!r} + '/keep', 0)",
    "import shutil\nshutil.rmtree({folder!r})", "import os\nos.rename({folder!r} + '/keep', {folder!r} + '/{n}')", "import os\nos.symlink({folder!r}, '/tmp/{n}')\nopen('/tmp/{n}/keep', 'w')",
    "import os\nos.chmod({folder!r} + '/keep', 0)", "import os\nfor i in range({n}): open('/tmp/%d' % i, 'w')", "open('/tmp/f', 'wb').write(b'x' * ({n} << 20))",
    "import socket\nsocket.create_connection(('127.0.0.1', {n}), 1)", "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('8.8.8.8', {n}))",
    "import os\nos.kill(os.getppid(), {signal})", "import os\nos.kill(-1, {signal})", "import os\nos.kill({n}, {signal})", "import os\nos.killpg(0, {signal})",
    "import signal\nfor s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass", "import os\nos.setsid()", "import os\nos.close({n} % 4)",
    "import ctypes\nctypes.CDLL(None).prctl(1, 0)", "import ctypes\nctypes.CDLL(None).syscall({call}, {n}, {n}, {n}, {n}, {n}, {n})", "import ctypes\nctypes.string_at({n})",
    "import os\nos.abort()", "import os\nos.execv('/bin/sh', ['sh', '-c', 'sleep {n} & : {mark}; exit 1'])", "import resource\nresource.setrlimit({n} % 16, (-1, -1))",
    "import sys\nsys.setrecursionlimit(1 << 30)\ndef f(x): return f(x) + 1\nf(1)", "import multiprocessing\nmultiprocessing.Process(target=print).start()",
    "import os\nfor i in range(256):\n    try: os.write(i, b'x' * {n})\n    except OSError: pass", "import os\nos.setuid(0)", "import os\nos.chroot('/')", "open('/proc/self/mem', 'r+b')",
]
SLOW = ["while True: pass", "import time\ntime.sleep(1000)", "while True: print('x')", "10 ** 10 ** 10"]


def program(r, folder, mark):
    parts = [r.choice(ATTACKS) for _ in range(r.randint(1, 5))] + ([r.choice(SLOW)] if r.random() < 0.01 else [])
    text = "# %s\n" % mark
    for part in parts:
        body = part.format(n=r.choice([0, 1, 2, 3, 7, 50, 1000, 65535]), signal=r.randint(0, 64), call=r.randint(0, 460), folder=folder, mark=mark)
        if r.random() < 0.2:
            body = "import threading\ndef attack():\n" + "".join("    %s\n" % line for line in body.split("\n")) + "threading.Thread(target=attack).start()"
        text += "try:\n" + "".join("    %s\n" % line for line in body.split("\n")) + "except BaseException: pass\n"
    return text


def judge(a, rows, workers):
    done = subprocess.run([a.tare, "verify", "code", "sandbox=" + a.sandbox, "cpu=1", "wall=2", "memory=256", "--timeout", "60", "--threads", str(workers)],
                          input="".join(json.dumps(r) + "\n" for r in rows), capture_output=True, text=True)
    if done.returncode:
        sys.exit("tare verify ended with %d: %s" % (done.returncode, done.stderr))
    return [json.loads(line) for line in done.stdout.splitlines()]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tare", default="build/tare")
    p.add_argument("--programs", type=int, default=10000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--sandbox", default="full")
    a = p.parse_args()
    r, mark = random.Random(a.seed), "hostile-%d-%d" % (os.getpid(), a.seed)
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/keep", "w") as f:
            f.write("kept")
        rows = [{"id": i, "completion": program(r, folder, mark), "answer": "", "tests": [{"input": "", "output": mark[::-1]}]} for i in range(a.programs)]
        began = time.time()
        got = judge(a, rows, a.workers)
        took = time.time() - began
        files = sorted(os.listdir(folder))
        kept = open(folder + "/keep").read()
    left = subprocess.run(["pgrep", "-fa", mark], capture_output=True, text=True).stdout.splitlines()
    left = [line for line in left if "verify_code.py" not in line]
    again = judge(a, rows[:200], 1)
    counts = collections.Counter((v["verdict"], v["reason"]) for v in got)
    for (verdict, reason), n in counts.most_common():
        print(f"{n:6d} {verdict:8s} {reason}")
    other = sum(x["reward"] != y["reward"] for x, y in zip(got, again))
    print(f"{len(got)} of {a.programs} judged in {took:.0f} s with {a.workers} workers; correct: {sum(v['verdict'] == 'correct' for v in got)}; files {files}, {kept!r}; processes left: {len(left)}; "
          f"rewards that differ with one worker: {other} of {len(again)}")
    sys.exit(len(got) != a.programs or any(v["reward"] for v in got) or files != ["keep"] or kept != "kept" or bool(left) or other > 0)


main()
