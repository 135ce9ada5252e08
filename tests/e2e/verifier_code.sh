#!/usr/bin/env bash
# Checks the verifier code: programs are verified by their tests, in every format of data sets;
# hostile programs do no harm; the verdicts do not depend on the number of workers. Checks that need
# user namespaces run where the machine allows them.
source "$(dirname "$0")/common.inc"
command -v python3 > /dev/null || skip "python3 is not installed"
expect() { # NAME PATTERN
    if grep -q -- "$2" out; then ok; else bad "$1: $(head -c 600 out)"; fi
}
mode=full
echo '{"completion":"print(1)","answer":"","tests":[{"input":"","output":"1"}]}' > one
if ! "$TARE" verify code < one > out 2>&1; then
    expect "without namespaces: what to do" 'set sandbox = limits'
    mode=limits
    skip_part "user namespaces cannot be had here"
fi

# The formats of tests, and the verdict's message.
cat > rows <<'END'
{"id":"both","completion":"<think>print(7)</think>Here:\n```python\nprint(int(input()) * 2)\n```\nIt doubles.","answer":"","tests":[{"input":"2\n","output":"4"},{"input":"5","output":"10\n\n"}]}
{"id":"half","completion":"print(int(input()) * 2)","answer":"","tests":[{"input":"2","output":"4"},{"input":"3","output":"5"},{"input":"4","output":"8"}]}
{"id":"pairs","completion":"print(input())","answer":"","tests":{"inputs":["a","b c"],"outputs":["a  \n","b c"]}}
{"id":"string","completion":"print(input())","answer":"","tests":"{\"inputs\":[\"a\"],\"outputs\":[\"a\"]}"}
{"id":"calls","completion":"def f(a, b):\n    return a, b","answer":"","tests":{"fn_name":"f","inputs":[[1,"\ud83d\udd25\"%s\n"],[2,[]]],"outputs":[[1,"\ud83d\udd25\"%s\n"],[[2,[]]]]}}
{"id":"method","completion":"class Solution:\n    def f(self, a, b):\n        return a + b","answer":"","tests":"{\"fn_name\":\"f\",\"inputs\":[\"[1]\\n[2]\"],\"outputs\":[\"[1, 2]\"]}"}
{"id":"other","completion":"def f(a):\n    return a","answer":"","tests":{"fn_name":"f","inputs":[[1]],"outputs":[2]}}
{"id":"unnamed","completion":"def g(a):\n    return a","answer":"","tests":{"fn_name":"f","inputs":[[1]],"outputs":[1]}}
{"id":"assert","completion":"def f(x):\n    return x + 1","answer":"","tests":["assert f(1) == 2","assert f(2) == 3"]}
{"id":"text","completion":"def f(x):\n    return x","answer":"","tests":"assert f(1) == 2"}
{"id":"leaves","completion":"import os\nos._exit(0)","answer":"","tests":"assert False"}
{"id":"exits","completion":"import sys\nsys.exit(0)","answer":"","tests":"assert False"}
{"id":"quiet","completion":"import sys\nsys.stdout = None\ndef f(x):\n    return 2","answer":"","tests":"assert f(1) == 2"}
{"id":"broken","completion":"print(","answer":"","tests":[{"input":"","output":"1"}]}
{"id":"raises","completion":"print(1)\n1 / 0","answer":"","tests":[{"input":"","output":"1"}]}
{"id":"empty","completion":"<think>print(1)","answer":"","tests":[{"input":"","output":"1"}]}
{"id":"modules","completion":"import json, math, collections, itertools, heapq, bisect, re, decimal, fractions, random, datetime, functools, string, threading\nthreading.Thread(target=print, args=(1,)).start()","answer":"","tests":[{"input":"","output":"1"}]}
{"id":"order","completion":"print(hash('a') == hash('a'), list({'x', 'y', 'z'}) == list({'z', 'y', 'x'}))","answer":"","tests":[{"input":"","output":"True True"}]}
{"id":"unread","completion":"print(1)","answer":"","tests":[{"input":"a line that is never read\n","output":"1"}]}
END
"$TARE" verify code sandbox=$mode partial=true < rows > out 2> err || bad "verification: $(cat err)"
python3 - <<'PY' > want
for name, verdict, reward in [("both", "correct", "1"), ("half", "partial", "0.6666666666666666"), ("pairs", "correct", "1"), ("string", "correct", "1"), ("calls", "correct", "1"), ("method", "correct", "1"), ("other", "wrong", "0"), ("unnamed", "wrong", "0"), ("assert", "correct", "1"), ("text", "wrong", "0"),
                              ("leaves", "wrong", "0"), ("exits", "wrong", "0"), ("quiet", "wrong", "0"), ("broken", "wrong", "0"), ("raises", "wrong", "0"), ("empty", "no_answer", "0"),
                              ("modules", "correct", "1"), ("order", "correct", "1"), ("unread", "correct", "1")]:
    print('{"id":"%s","reward":%s,"verdict":"%s"' % (name, reward, verdict))
PY
grep -o '^{"id":"[a-z]*","reward":[0-9.]*,"verdict":"[a-z_]*"' out > have || true
diff want have > difference && ok || bad "verdicts: $(cat difference)"
"$TARE" verify code sandbox=$mode < rows > out 2> err || bad "verification without partial rewards: $(cat err)"
expect "all or nothing" '"id":"half","reward":0,"verdict":"wrong"'
# The program among other blocks: one of output, of a shell, in a list, quoted, between tags; then blocks that are none.
python3 - <<'PY' > blocks
import json
program, fence = "print(int(input()) * 2)", "`" * 3
python = f"{fence}python\n{program}\n{fence}\n"
right = [python + f"For 3 it prints:\n{fence}\n6\n{fence}", python + f"{fence}bash\npython a.py\n{fence}", python + f"{fence}text\n6\n{fence}",
         python + f"{fence}javascript\nconsole.log(1)\n{fence}", f"1. read\n   {fence}python\n   n = int(input())\n   print(n * 2)\n   {fence}",
         f"> {fence}python\n> {program}\n> {fence}", f"~~~python\n{program}\n~~~", f"<answer>{program}</answer>", f"{fence}{{python}}\n{program}\n{fence}",
         f"{fence}\n{program}\n{fence}\nOutput:\n{fence}\n6\n{fence}", f"{fence}python\nx = 1\n{fence}\n" + python, f"{fence}python\n{program}"]
wrong = [python + f"Better:\n{fence}python\nprint(1)\n{fence}", f"{fence}text\n{program}\n{fence}", f"{fence}javascript\nconsole.log(6)\n{fence}"]
for name, texts in (("right", right), ("wrong", wrong)):
    for i, text in enumerate(texts):
        print(json.dumps({"id": f"{name}{i}", "completion": text, "answer": "", "tests": [{"input": "3\n", "output": "6"}]}))
PY
"$TARE" verify code sandbox=$mode < blocks > out 2> err || bad "verification of blocks: $(cat err)"
grep -c '"id":"right[0-9]*","reward":1' out > have || true
grep -c '"id":"wrong[0-9]*","reward":0' out >> have || true
[ "$(tr '\n' ' ' < have)" = "12 3 " ] && ok || bad "the program is not found: $(grep -v 'right[0-9]*","reward":1' out)"
for rows in '{"completion":"1","answer":""}' '{"completion":"1","answer":"","tests":[]}' '{"completion":"1","answer":"","tests":[{"input":1,"output":"1"}]}' \
    '{"completion":"1","answer":"","tests":{"fn_name":"f","inputs":[1],"outputs":[1]}}' \
    '{"completion":"1","answer":"","tests":{"fn_name":"f","inputs":["x"],"outputs":["1"]}}' \
    '{"completion":"1","answer":"","tests":{"fn_name":"f","inputs":[[1]],"outputs":[]}}' \
    '{"completion":"1","answer":"","tests":{"inputs":["1"],"outputs":[]}}'; do
    echo "$rows" | "$TARE" verify code sandbox=$mode > out 2>&1 && bad "verified without tests: $rows"
    expect "tests that are none" 'the row.s "tests" \|the row has no tests in its field "tests"; given as'
done
"$TARE" verify code python=./nothing < one > out 2>&1 && bad "verified without an interpreter"
expect "no interpreter" 'python = ./nothing cannot be run'

# Hostile programs: each one ends and is wrong or late, and the machine is as before.
# A word in every program, and so in the command line of any process that remains.
mark=hostile-${WORK##*/}
python3 - "$WORK" "$mark" <<'PY' > hostile
import json, sys
work, mark = sys.argv[1:]
programs = {
    "loop": "while True: pass",
    "sleep": "import time\ntime.sleep(1000)",
    "fork": "import os\nwhile True: os.fork()",
    "forks quietly": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
    "spawn": "import subprocess\nsubprocess.Popen(['sleep', '1000'])",
    "shell": "import os\nraise SystemExit(os.system('sleep 1000 &') or 1)",
    "pool": "import multiprocessing\nmultiprocessing.Pool(50).map(print, range(1000))",
    "threads": "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(1000,)).start()",
    "memory": "x = [0]\nwhile True: x += x",
    "mmap": "import mmap\nx = [mmap.mmap(-1, 1 << 30) for _ in range(1000)]",
    "bytes": "x = bytearray(1 << 40)",
    "output": "while True: print('x' * 10000)",
    "errors": "import sys\nwhile True: sys.stderr.write('x' * 10000)",
    "recursion": "import sys\nsys.setrecursionlimit(1 << 30)\ndef f(x): return f(x) + 1\nf(1)",
    "write": "open(%r, 'w').write('x')\nprint(0)" % (work + "/written"),
    "remove": "import os\nos.remove(%r)\nprint(0)" % (work + "/keep"),
    "truncate": "import os\nos.truncate(%r, 0)\nprint(0)" % (work + "/keep"),
    "rename": "import os\nos.rename(%r, %r)\nprint(0)" % (work + "/keep", work + "/gone"),
    "tree": "import shutil\nshutil.rmtree(%r)\nprint(0)" % work,
    "link": "import os\nos.symlink('/', %r)\nprint(0)" % (work + "/written"),
    "disk": "f = open('/tmp/f', 'wb')\nwhile True: f.write(b'x' * 100000)",
    "files": "for i in range(10 ** 6): open('/tmp/%d' % i, 'w')",
    "home": "import os\nopen(os.path.expanduser('~/written'), 'w').write('x')\nraise SystemExit(1)",
    "socket": "import socket\nsocket.create_connection(('127.0.0.1', 22), 1)",
    "udp": "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('8.8.8.8', 53))",
    "unix": "import socket\nsocket.socket(socket.AF_UNIX).connect('/run/x')",
    "server": "import http.server\nhttp.server.HTTPServer(('', 0), None).serve_forever()",
    "download": "import urllib.request\nprint(urllib.request.urlopen('http://example.com').read())",
    "kill the parent": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nraise SystemExit(1)",
    "kill all": "import os, signal\nos.kill(-1, signal.SIGKILL)\nraise SystemExit(1)",
    "kill the group": "import os, signal\nos.killpg(os.getpgid(0), signal.SIGKILL)\nraise SystemExit(1)",
    "ignore signals": "import signal\nfor s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\nwhile True: pass",
    "outlive": "import ctypes, time\nctypes.CDLL(None).prctl(1, 0)\ntime.sleep(1000)",
    "session": "import os, time\nos.setsid()\ntime.sleep(1000)",
    "closed": "import os, time\nos.close(1)\ntime.sleep(1000)",
    "segfault": "import ctypes\nctypes.string_at(0)",
    "abort": "import os\nos.abort()",
    "ptrace": "import ctypes, os\nraise SystemExit(ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0))",
    "mount": "import ctypes\nraise SystemExit(ctypes.CDLL(None).mount(b'none', b'/tmp', b'tmpfs', 0, None))",
    "namespace": "import ctypes\nraise SystemExit(ctypes.CDLL(None).unshare(0x10000000))",
    "root": "import os\nos.setuid(0)\nprint(0)",
    "nice": "import os\nos.nice(-20)\nprint(0)",
    "clock": "import time\ntime.clock_settime(time.CLOCK_REALTIME, 0)\nprint(0)",
    "limits": "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1000, 1000))\nprint(0)",
    "clone": "import ctypes\nraise SystemExit(ctypes.CDLL(None).syscall(56, 17, 0, 0, 0, 0))",
    "bpf": "import ctypes\nraise SystemExit(ctypes.CDLL(None).syscall(321, 0, 0, 0))",
    "exec": "import os\nos.execv('/bin/sh', ['sh', '-c', ': MARK; sleep 1000 & sleep 1000 & exit 1'])",
    "input": "import sys\nwhile True: sys.stdin.read(1)",
    "regex": "import re\nre.match('(a+)+$', 'a' * 60 + 'b')",
    "number": "10 ** 10 ** 10",
    "cache": "import functools\nf = functools.lru_cache(None)(lambda n: [n] * 10000)\nn = 0\nwhile True:\n    f(n); n += 1",
    "proc": "open('/proc/self/mem', 'r+b').write(b'x')\nprint(0)",
    "device": "open('/dev/sda', 'rb').read(1)\nopen('/dev/mem', 'rb').read(1)\nprint(0)",
}
for name, program in programs.items():
    print(json.dumps({"id": name, "completion": "# MARK\n".replace("MARK", mark) + program.replace("MARK", mark), "answer": "", "tests": [{"input": "", "output": "1"}]}))
PY
echo kept > keep
before=$(find "${HOME:-/tmp}" /tmp -maxdepth 1 -name written 2> /dev/null | wc -l)
"$TARE" verify code sandbox=$mode cpu=1 wall=3 memory=256 --threads 4 --timeout 60 < hostile > out 2> err || bad "hostile programs: $(cat err)"
[ "$(wc -l < out)" = "$(wc -l < hostile)" ] && ok || bad "not one verdict for each hostile program"
grep -v '"verdict":"\(wrong\|timeout\)"' out > other && bad "a hostile program passed: $(head -c 300 other)" || ok
[ "$(cat keep)" = kept ] && [ ! -e written ] && [ ! -e gone ] && ok || bad "a hostile program changed files"
[ "$(find "${HOME:-/tmp}" /tmp -maxdepth 1 -name written 2> /dev/null | wc -l)" = "$before" ] && ok || bad "a hostile program wrote into a home"
if until_ '! pgrep -f "$mark" > left'; then ok; else bad "a hostile program remains: $(pgrep -fa "$mark")"; fi

# Equal verdicts for any number of workers, in threads and in processes.
"$TARE" verify code sandbox=$mode < rows > one.out 2> err || bad "one worker: $(cat err)"
for way in "--threads 3" "--threads 3 --isolate"; do
    # shellcheck disable=SC2086
    "$TARE" verify code sandbox=$mode $way < rows > more.out 2> err && cmp -s one.out more.out && ok || bad "other verdicts with $way: $(cat err)"
done
# Checks that need namespaces.
if [ $mode = full ]; then
    cat > inside <<'END'
{"id":"own","completion":"import os\nassert os.getpid() == 1 and os.getuid() == 1000\nassert os.listdir('/tmp') == []\nopen('/tmp/a', 'w').write('x')\nassert not os.path.exists('/proc/self') and not os.path.exists('/etc/passwd')\nprint(1)","answer":"","tests":[{"input":"","output":"1"},{"input":"","output":"1"}]}
{"id":"hidden","completion":"import os\nprint(int(not os.path.exists('KEEP')))","answer":"","tests":[{"input":"","output":"1"}]}
{"id":"read-only","completion":"import os\ntry:\n    open('/usr/written', 'w')\nexcept OSError:\n    print(1)","answer":"","tests":[{"input":"","output":"1"}]}
END
    sed "s|KEEP|$WORK/keep|" inside | "$TARE" verify code > out 2> err || bad "inside: $(cat err)"
    [ "$(grep -c '"verdict":"correct"' out)" = 3 ] && ok || bad "inside: $(cat out)"
fi
done_
