"""Runs thousands of hostile programs against the verifier code: every one must end, be graded wrong or late, and leave the machine unchanged.

  nice verify_code.py [--tare build/tare] [--programs 10000] [--seed 1] [--workers 2] [--wall 2] [--sandbox full]

A program is one to five attacks in random order, each in a try, some in threads, with random numbers, names and signals. Each of these counts
must be 0: programs that pass their test (whose output they do not know), files outside (in a folder that the programs know, or with their
mark in the name where programs write), remaining processes, programs that outlive their time limit, and rewards that one worker gives
differently. Tests in Python share a process with the program, which can deceive them (docs/verifiers.md), and are not covered here.
"""
import argparse
import collections
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time

BATCH = 500
GRACE = 3  # seconds that a busy machine may take to end a program after its time limit

ATTACKS = [
    # processes and threads
    "import os\nfor _ in range({n}): os.fork()", "import subprocess\nsubprocess.Popen(['sleep', '{n}', '{mark}'])", "import os\nos.system('sleep {n} {mark} &')",
    "import threading, time\nfor _ in range({n}): threading.Thread(target=time.sleep, args=({n},), daemon=True).start()",
    "import multiprocessing\nmultiprocessing.Process(target=print).start()", "import os\nos.execv('/bin/sh', ['sh', '-c', 'sleep {n} & : {mark}; exit 1'])",
    "__import__('pty').spawn(['/bin/sh', '-c', 'sleep {n} & : {mark}'])", "import os\nos.posix_spawn('/bin/sleep', ['sleep', '{n}', '{mark}'], {{}})", "import os\nos.setsid()", "import ctypes\nctypes.CDLL(None).prctl(1, 0)",
    "import _posixsubprocess as p\np.fork_exec([b'/bin/sleep', b'{n}', b'{mark}'], [b'/bin/sleep'], True, (), None, None, -1, -1, -1, -1, -1, -1, -1, -1, False, False, 0, None, None, None, -1, None, False)",
    # memory, output, depth
    "x = bytearray({n} << 28)", "x = [0]\nwhile len(x) < {n} << 26: x += x", "import mmap\nx = [mmap.mmap(-1, 1 << 28) for _ in range({n})]", "print('x' * ({n} << 20))", "import sys\nsys.stderr.write('x' * ({n} << 18))",
    "import os\nfor _ in range({n}): os.write(1, b'x' * 65536)", "import sys\nsys.setrecursionlimit(1 << 30)\ndef f(x): return f(x) + 1\nf(1)", "eval('(' * {n} + ')' * {n})", "eval('-' * {n} + '1')",
    "import json\njson.loads('[' * {n})", "x = []\nfor _ in range({n} * 10): x = [x]\ndel x", "import sys\nsys.setrecursionlimit(1 << 30)\nx = []\nfor _ in range({n} * 10): x = [x]\nrepr(x)", "for _ in range({n} * 5000): pass",
    # files and links
    "open({folder!r} + '/{n}', 'w').write('x')", "import os\nos.remove({folder!r} + '/keep')", "import os\nos.truncate({folder!r} + '/keep', 0)", "import shutil\nshutil.rmtree({folder!r})",
    "import os\nos.rename({folder!r} + '/keep', {folder!r} + '/{n}')", "import os\nos.symlink({folder!r}, '/tmp/{n}')\nopen('/tmp/{n}/keep', 'w')", "import os\nos.chmod({folder!r} + '/keep', 0)",
    "import os\nos.link('/usr/bin/env', '/tmp/{mark}')\nos.chmod('/tmp/{mark}', 0o4777)", "import os\nos.symlink('/tmp/a', '/tmp/b')\nos.symlink('/tmp/b', '/tmp/a')\nopen('/tmp/a', 'w')",
    "open('/tmp/../' * {n} + {folder!r} + '/keep', 'w')", "import os\nos.fchdir(os.open('/', os.O_PATH))\nos.chroot('..')", "import os\nos.mkfifo('/tmp/{mark}')", "import os\nos.mknod('/tmp/sda', 0o60666, os.makedev(8, 0))\nopen('/tmp/sda', 'r+b').write(b'x')",
    "import os\nfor i in range({n}): open('/tmp/{mark}-%d' % i, 'w')", "open('/tmp/{mark}', 'wb').write(b'x' * ({n} << 20))", "import os\nfor p in ('/', '/var/tmp', '/dev/shm', '/run', os.path.expanduser('~')):\n    try: open(p + '/{mark}', 'w')\n    except OSError: pass",
    "import os\nfor root, _, files in os.walk('/usr/lib/python3'):\n    for f in files[:{n}]: open(os.path.join(root, f), 'a')", "open('/proc/self/mem', 'r+b')", "open('/proc/sys/kernel/core_pattern', 'w').write('|/bin/sh')", "import os\nos.close({n} % 4)",
    # network
    "import socket\nsocket.create_connection(('127.0.0.1', {n}), 1)", "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('8.8.8.8', {n}))", "import socket\nsocket.socket(socket.AF_UNIX).connect(chr(0) + '{n}')",
    "import socket\nsocket.socket({n} % 46, {n} % 11, 0)", "import socket\ns = socket.socket()\ns.bind(('', {n}))\ns.listen()", "import socket\nsocket.socketpair()", "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:{n}')",
    # signals and limits
    "import os\nos.kill(os.getppid(), {signal})", "import os\nos.kill(-1, {signal})", "import os\nos.kill({n}, {signal})", "import os\nos.killpg(0, {signal})", "import os\nos.kill(os.getpid(), {signal})",
    "import signal\nfor s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass", "import signal\nsignal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\nsignal.signal(signal.SIGALRM, lambda *a: None)",
    "import resource\nresource.setrlimit({n} % 16, (-1, -1))", "import os\nos.nice(-{n})", "import os\nos.sched_setaffinity(0, range({n} % 64))", "import time\ntime.clock_settime(0, {n})",
    # system calls by number, ptrace, ways out of a namespace or a filter
    "import ctypes\nctypes.CDLL(None).syscall({call}, {n}, {n}, {n}, {n}, {n}, {n})", "import ctypes\nfor c in range({call}, {call} + 40): ctypes.CDLL(None).syscall(c, -1, 0, 0, 0, 0, 0)", "import ctypes\nctypes.string_at({n})", "import os\nos.abort()",
    "import ctypes, os\nfor p in (os.getppid(), 1, {n}): ctypes.CDLL(None).ptrace(16, p, 0, 0)", "import ctypes\nctypes.CDLL(None).ptrace(0, 0, 0, 0)", "import ctypes\nb = ctypes.create_string_buffer(64)\nctypes.CDLL(None).process_vm_writev({n}, b, 1, b, 1, 0)",
    "import ctypes\nctypes.CDLL(None).unshare(0x10000000 | {n})", "import ctypes\nctypes.CDLL(None).setns({n} % 64, 0)", "import ctypes\nctypes.CDLL(None).mount(b'none', b'/tmp', b'tmpfs', 0, None)", "import ctypes\nctypes.CDLL(None).umount2(b'/tmp', 2)",
    "import ctypes\nctypes.CDLL(None).prctl(22, 0, 0, 0, 0)", "import ctypes\nctypes.CDLL(None).syscall(317, 1, 0, 0)", "import ctypes\nfor c in (56, 57, 58, 59, 322, 425, 434, 435, 438): ctypes.CDLL(None).syscall(c, {n}, 0, 0, 0, 0, 0)",
    "import ctypes, os\nf = os.memfd_create('{mark}')\nos.write(f, open('/bin/sleep', 'rb').read())\nos.execve(f, ['{mark}', '{n}'], {{}})", "import os\nos.setuid(0)", "import os\nos.chroot('/')", "import ctypes\nctypes.CDLL(None).reboot(0)",
    # the result: data within the program's reach, and ways to deceive a grader
    "import os\nfor i in range(256):\n    try: os.write(i, b'x' * {n})\n    except OSError: pass", "import os\nfor i in range(256):\n    try: os.write(i, b'{{\"reward\":1,\"verdict\":\"correct\"}}\\n')\n    except OSError: pass",
    "import sys\nprint(sys.argv, sys.orig_argv, sys.stdin.read())", "import os\nprint(dict(os.environ), open('/proc/self/environ').read())", "import gc\nprint([x for x in gc.get_objects() if isinstance(x, (str, list))][:{n}])",
    "import ctypes\nprint(ctypes.string_at(id(''), {n}))", "import sys\nf = sys._getframe()\nwhile f:\n    print(f.f_globals, f.f_locals)\n    f = f.f_back", "class Same(str):\n    def __eq__(self, other): return True\n    __hash__ = str.__hash__\nprint(Same())",
    "import atexit, os\natexit.register(os._exit, 0)", "raise SystemExit(0)", "import os\nos._exit(0)", "import builtins\nbuiltins.print = builtins.open = lambda *a, **k: None", "import sys\nsys.exit = sys.excepthook = lambda *a: None",
    "import os\nos.dup2(0, 1)", "import os\nos.lseek(0, 0, 0)\nos.lseek(1, 0, 0)\nos.ftruncate(1, 0)", "import fcntl\nfcntl.fcntl(1, fcntl.F_SETFL, 2048)", "import fcntl\nfcntl.fcntl(1, 1031, {n} << 10)",
    # imports
    "import sys\nsys.modules.clear()", "import sys\nopen('/tmp/json.py', 'w').write('import os; os._exit(0)')\nsys.path.insert(0, '/tmp')\nsys.modules.pop('json', None)\nimport json", "open('/tmp/sitecustomize.py', 'w').write('print(1)')\nopen('sitecustomize.py', 'w')",
    "import sys\nsys.meta_path[:] = [None]", "import sys\nsys.path_hooks.clear()\nsys.path[:] = ['/tmp'] * {n}\nimport colorsys", "import site\nopen(site.getusersitepackages() + '/{mark}.pth', 'w')", "import sys\nsys.settrace(lambda *a: 1 / 0)", "import ctypes\nctypes.PyDLL(None).Py_FinalizeEx()",
]
SLOW = ["while True: pass", "import time\ntime.sleep(1000)", "while True: print('x')", "10 ** 10 ** 10", "import re\nre.match('(a+)+$', 'a' * 60 + 'b')", "import signal\nsignal.pause()", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
        "import sys\nwhile True: sys.stdin.read(1)", "import threading\nthreading.Lock().acquire() and threading.Event().wait()", "import os\nos.open('/tmp/fifo', os.O_RDONLY) if not os.mkfifo('/tmp/fifo') else 0"]


def program(r, folder, mark):
    parts = [r.choice(ATTACKS) for _ in range(r.randint(1, 5))] + ([r.choice(SLOW)] if r.random() < 0.01 else [])
    text = "# %s\n" % mark
    for part in parts:
        body = part.format(n=r.choice([0, 1, 2, 3, 7, 50, 1000, 65535]), signal=r.randint(0, 64), call=r.randint(0, 460), folder=folder, mark=mark)
        if r.random() < 0.2:
            body = "import threading\ndef attack():\n" + "".join("    %s\n" % line for line in body.split("\n")) + "threading.Thread(target=attack).start()"
        text += "try:\n" + "".join("    %s\n" % line for line in body.split("\n")) + "except BaseException: pass\n"
    return text


class Watch(threading.Thread):
    """Observes the programs from outside, by the mark in their command lines, and records their lifetimes."""

    def __init__(self, mark):
        super().__init__(daemon=True)
        self.mark, self.lived, self.ends = mark.encode(), {}, False

    def living(self):
        """(process, seconds since its start)"""
        with open("/proc/uptime") as f:
            now = float(f.read().split()[0])
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    marked = self.mark in f.read() and int(pid) != os.getpid()
                with open("/proc/%s/stat" % pid) as f:
                    start = int(f.read().rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")
            except OSError:
                continue
            if marked:
                yield (pid, start), now - start

    def run(self):
        while not self.ends:
            self.lived.update(self.living())
            time.sleep(0.2)


def judge(a, rows, workers):
    limits = ["sandbox=" + a.sandbox, "cpu=1", "wall=%g" % a.wall, "memory=256"]
    done = subprocess.run([a.tare, "verify", "code"] + limits + ["--timeout", "60", "--threads", str(workers)],
                          input="".join(json.dumps(r) + "\n" for r in rows), capture_output=True, text=True)
    if done.returncode:
        sys.exit("tare verify ended with %d: %s" % (done.returncode, done.stderr))
    return [json.loads(line) for line in done.stdout.splitlines()]


def places(mark):
    """Files with the mark in their names, in places where an escaped program would put them."""
    folders = ["/tmp", "/var/tmp", "/dev/shm", "/run", "/", os.path.expanduser("~"), os.getcwd()]
    return sorted(os.path.join(f, x) for f in folders if os.path.isdir(f) for x in os.listdir(f) if mark in x)


def parser():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tare", default="build/tare")
    p.add_argument("--programs", type=int, default=10000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--wall", type=float, default=2, help="wall-clock limit of a program in seconds")
    p.add_argument("--sandbox", default="full")
    return p


def main():
    a = parser().parse_args()
    r, mark = random.Random(a.seed), "hostile-%d-%d" % (os.getpid(), a.seed)
    watch, got, began = Watch(mark), [], time.time()
    watch.start()
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/keep", "w") as f:
            f.write("kept")
        rows = [{"id": i, "completion": program(r, folder, mark), "answer": "", "tests": [{"input": "", "output": mark[::-1]}]} for i in range(a.programs)]
        for at in range(0, len(rows), BATCH):
            got += judge(a, rows[at:at + BATCH], a.workers)
            print("%d judged, %.0f s" % (len(got), time.time() - began), file=sys.stderr, flush=True)
        took = time.time() - began
        time.sleep(1)
        left = [who for who, _ in watch.living()]
        again = judge(a, rows[:200], 1)
        harmed = sorted(os.listdir(folder)) != ["keep"] or open(folder + "/keep").read() != "kept"
    watch.ends = True
    watch.join()
    counts = collections.Counter((v["verdict"], v["reason"]) for v in got)
    for (verdict, reason), n in counts.most_common():
        print(f"{n:6d} {verdict:8s} {reason}")
    passed, files = sum(v["verdict"] == "correct" or v["reward"] > 0 for v in got), places(mark)
    late = sum(seconds > a.wall + GRACE for seconds in watch.lived.values())
    other = sum(x["reward"] != y["reward"] for x, y in zip(got, again))
    print(f"{len(got)} of {a.programs} programs judged in {took:.0f} s with {a.workers} workers, seed {a.seed}, sandbox {a.sandbox}")
    print(f"passed: {passed}; files outside: {len(files) + harmed}; processes left: {len(left)}; alive longer than {a.wall:g} s + {GRACE} s: {late} (the longest {max(watch.lived.values(), default=0):.1f} s); "
          f"rewards that differ with one worker: {other} of {len(again)}")
    sys.exit(len(got) != a.programs or passed > 0 or harmed or bool(files) or bool(left) or late > 0 or other > 0)


main()
