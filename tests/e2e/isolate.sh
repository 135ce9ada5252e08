#!/usr/bin/env bash
# Checks verifier.isolate = process: a verifier that aborts, hangs, segfaults, exits or prints costs
# one verdict; too many crashes stop the run. A verifier that tries to use the network, other
# processes or more than its share is refused, and the run continues.
source "$(dirname "$0")/common.inc"
bad_one=${FIXTURES:?}/verdicts.so
[ -e "$bad_one" ] || skip "the fixtures are not built"
for what in fine abort fine segfault exit hang print fine forge; do
    printf '{"id":"%s","completion":"%s","answer":"x"}\n' $what $what
done > rows
verdicts_right() { # a call that hangs times out, and no other does
    timeout 900 "$TARE" verify "$bad_one" --isolate --timeout $LIMIT < rows > out 2> err || return 1
    timeout 900 "$TARE" verify "$bad_one" --isolate --threads 3 --timeout $LIMIT < rows > out3 2> /dev/null || return 1
    got=$(grep -o '"verdict":"[a-z_]*"' out | cut -d '"' -f 4 | tr '\n' ' ')
    [ "$got" = "correct crashed correct crashed crashed timeout correct correct crashed " ] && cmp -s out out3
}
if patient verdicts_right; then ok; else bad "verdicts, by one worker and by three: $(cat out out3), $(tail -n 3 err)"; fi
if [ "$(grep -c '"reward":0,' out)" = 5 ] && grep -q printed err && ! grep -q '"printed"' out; then ok; else bad "wrong rewards, or printed text in them: $(cat out)"; fi
if grep -q abort rows && ! "$TARE" verify "$bad_one" < rows > /dev/null 2>&1; then ok; else bad "in process it should have crashed"; fi

tiny_config
train() { timeout 300 "$TARE" train tiny.ini train.steps=2 checkpoint.every=1 verifier.plugins="$bad_one" verifier.workers=2 "$@" > log 2>&1; }
# Every call crashes and all crashes are allowed: the run continues, and the share is a metric.
if train run.dir=on verifier.isolate=process verifier.verdicts.always=segfault verifier.max_crash_share=1 &&
    [ "$(grep -c '"verifier/crashed":1[,}.]' on/metrics.jsonl)" = 2 ]; then ok; else bad "allowed crashes: $(tail -n 3 log)"; fi
if train run.dir=late verifier.isolate=process verifier.verdicts.always=hang verifier.timeout=0.05 train.steps=1 &&
    grep -q '"verifier/timeout":1[,}.]' late/metrics.jsonl; then ok; else bad "hangs: $(tail -n 3 log)"; fi
if train run.dir=stopped verifier.isolate=process verifier.verdicts.always=abort; then bad "a run continued although every call crashed"; fi
if grep -q 'verifier calls crashed, above verifier.max_crash_share = 0.05' log; then ok; else bad "message: $(tail -n 3 log)"; fi
# The engine is killed while a worker hangs: the worker ends too.
mkfifo open
exec 3<> open # its input does not end
printf '{"completion":"hang","answer":"x"}\n' >&3
"$TARE" verify "$bad_one" --isolate --timeout 600 < open > /dev/null 2>&1 3>&- &
engine=$!
until_ 'worker=$(pgrep -P $engine -f "verify --worker")' || bad "no worker"
# The worker is busy: it has used a tenth of a second of processor time.
until_ '[ "$(sed "s/.*) //" /proc/$worker/stat | cut -d " " -f 12)" -gt 10 ]' || bad "the worker does not hang"
kill -9 $engine
wait $engine 2> /dev/null || true
if until_ '! lives $worker'; then ok; else bad "a worker outlived the engine"; fi
# Calls that a worker is denied before any code of the plugin runs (load), and calls that remain
# allowed.
reaches=$FIXTURES/reaches.so
refused=(load inet inet6 packet netlink ptrace engine mount pivot unshare clone clone3 bpf key perf module kexec userfault ring type privileges root files huge dumps)
open=(unix works memory)
[ "$(uname -m)" != x86_64 ] || refused+=(x32)
ask() { for what in "$@"; do printf '{"id":"%s","completion":"%s","answer":""}\n' "$what" "$what"; done > rows; }
refusal='asked for a connection and was refused; set verifier.network = yes'
(ulimit -c unlimited) 2> /dev/null && ulimit -c unlimited
ask "${refused[@]}" "${open[@]}" huge_signal abort inet
"$TARE" verify "$reaches" --isolate < rows > out 2> err || bad "a hostile plugin ended the run: $(cat err)"
ask_of() { sed -n "s/.*\"id\":\"$1\",.*\"verdict\":\"\([a-z]*\)\".*\"reason\":\"\([^\"]*\).*/\1 \2/p" out | head -1; }
for what in "${refused[@]}"; do case "$(ask_of "$what")" in correct*) ok ;; *) bad "$what: $(ask_of "$what")" ;; esac; done
for what in "${open[@]}"; do [ "$(ask_of "$what")" = 'wrong open' ] && ok || bad "$what: $(ask_of "$what")"; done
[ "$(ask_of huge_signal) $(ask_of abort)" = "crashed the verifier's process died crashed the verifier's process died" ] && ok || bad "a signal: $(tail -n 3 out)"
[ -z "$(find . -name 'core*')" ] && ok || bad "a core dump: $(ls)"
[ "$(wc -l < out)" = "$(wc -l < rows)" ] && [ "$(tail -n 1 out | cut -d , -f 1-3)" = '{"id":"inet","reward":1,"verdict":"correct"' ] && ok || bad "the run does not continue: $(tail -n 3 out)"
[ "$(grep -c "tare-verifier.*$refusal" err)" = 1 ] && ok || bad "connections: not reported once: $(cat err)"
ask inet inet6 netlink packet
for words in '--isolate --confine bogus' '--isolate --confine' '--confine off' --network; do
    status=0
    # shellcheck disable=SC2086
    "$TARE" verify exact $words < /dev/null > out 2> err || status=$?
    [ $status = 2 ] && grep -q '^tare: verify: --.*confine' err && ok || bad "$words: status $status: $(cat err)"
done
"$TARE" verify exact --isolate --confine off < /dev/null > out 2> err && ok || bad "--confine off: $(cat err)"
"$TARE" verify "$reaches" --isolate --network < rows > out 2> err || bad "--network: $(cat err)"
[ "$(ask_of inet) $(ask_of inet6) $(ask_of netlink) $(ask_of packet)" = 'wrong open wrong open wrong open correct EACCES' ] && [ ! -s err ] && ok || bad "--network: $(cat out err)"
# The same by keys, in a run; and with nothing denied.
reward() { # REWARD ATTEMPT KEY...
    rm -rf asked
    train run.dir=asked train.steps=1 verifier.plugins="$reaches" verifier.isolate=process verifier.reaches.always="$2" "${@:3}" && grep -q "\"reward/mean\":$1[,}.]" asked/metrics.jsonl && ok ||
        bad "$*: not $1: $(tail -n 3 log)"
}
reward 1 inet
grep -q "$refusal" log && ok || bad "connections: not reported in a run: $(cat log)"
reward 0 inet verifier.network=yes
reward 0 ptrace verifier.confine=off
reward 0 huge verifier.file_size=0
reward 1 files verifier.open_files=200 verifier.confine=off
# A sanitizer's build needs all addresses.
[ -z "${INTERPOSE:-}" ] || reward 1 memory verifier.memory=30000
train run.dir=thread train.steps=1 verifier.plugins=exact verifier.confine=require || bad "confine with threads: $(cat log)"
grep -q 'verifier.confine: no effect with verifier.isolate = thread' log && ok || bad "confine = require has no effect and no error: $(cat log)"
# Programs: their own programs, threads, processes and memory work, and the network works when
# allowed.
cat > judge.py <<'PY'
import mmap, multiprocessing, socket, subprocess, threading
def reward(completions, **row):
    done = []
    thread = threading.Thread(target=lambda: done.append(1))
    thread.start()
    thread.join()
    assert done == [1] and subprocess.run(["sh", "-c", "exit 3"]).returncode == 3 and len(mmap.mmap(-1, 1 << 20)) == 1 << 20
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(abs, [-1, 2]) == [1, 2]
    a, b = socket.socketpair()
    try:
        socket.socket().close()
    except PermissionError:
        return [0.0] * len(completions)
    return [1.0] * len(completions)
PY
cat > judge.sh <<'SH'
while read -r line; do if python3 -c 'import socket; socket.socket()' 2> /dev/null; then echo 1; else echo 0; fi; done
SH
ask one two
if has_python; then
    for program in "python file=judge.py" "command command=sh\ judge.sh"; do
        for reward in 0 1; do
            eval "set -- $program"
            [ $reward = 0 ] || set -- "$@" --network
            "$TARE" verify "$@" --isolate < rows > out 2> err && [ "$(grep -c "\"reward\":$reward," out)" = 2 ] && [ "$(grep -c "python3.*$refusal" err)" = $((1 - reward)) ] && ok || bad "$*: $(cat out err)"
        done
    done
    # A kernel without filters: one warning for all workers, or an error when the filter is
    # required.
    cat > without.py <<'PY'
import ctypes, os, platform, struct, sys
call = {"x86_64": 317, "aarch64": 277}[platform.machine()]
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, call), (0x06, 0, 0, 0x50000 | 22), (0x06, 0, 0, 0x7FFF0000)]  # seccomp(): EINVAL
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *s) for s in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(program)), 0, 0) == 0, os.strerror(ctypes.get_errno())
os.execv(sys.argv[1], sys.argv[1:])
PY
    ask inet abort inet inet
    python3 without.py "$TARE" verify "$reaches" --isolate --threads 2 < rows > out 2> err || bad "without seccomp: $(cat err)"
    [ "$(grep -c 'without a system call filter.*Invalid argument' err)" = 1 ] && [ "$(ask_of inet)" = 'wrong open' ] && ok || bad "without seccomp: $(cat out err)"
    status=0
    python3 without.py "$TARE" train tiny.ini run.dir=must train.steps=1 verifier.isolate=process verifier.confine=require > log 2>&1 || status=$?
    [ $status != 0 ] && grep -q 'verifier.confine = require: the kernel rejects the system call filter' log && ok || bad "require: status $status: $(cat log)"
fi
done_
