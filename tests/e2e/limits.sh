#!/usr/bin/env bash
# Checks a run while the machine changes: the hours at the ends of summer time (clock and time
# zone), and limits of processes (ulimit -u), addresses (ulimit -v) and memory (a cgroup). A run
# ends bit-identical to one without limits, or ends with a message or by the kernel's kill, and then
# --resume gives the same bits.
. "$(dirname "$0")/common.inc"
tiny_config
easy_judge
"$TARE" sft sft.ini 2> /dev/null || { bad "the model was not made"; done_; exit 1; }
sed -i 's/^steps = 12/steps = 4/; s/^every = 3/every = 1/' tiny.ini
KEYS="data.eval= eval.before=false eval.after=false log.progress=none log.rollouts=true checkpoint.keep=0"
# shellcheck disable=SC2086
"$TARE" -q train tiny.ini $KEYS run.dir=whole data.date=2026-10-25 > /dev/null 2> err.txt || { bad "train: $(cat err.txt)"; done_; exit 1; }
last=checkpoints/step-000004/model.safetensors
# begin RUN [key=value ...]: starts the run, or continues it. in_place=exec replaces the shell, so
# that only tare meets a limit.
begin() {
    local run=$1
    shift
    # shellcheck disable=SC2086
    ${in_place:-} timeout 300 "$TARE" -q train tiny.ini $KEYS run.dir="$run" data.date=2026-10-25 $([ ! -e "$run/manifest.json" ] || echo --resume) "$@" > /dev/null 2> err.txt
}
same() { cmp -s "whole/$last" "$1/$last" && "$TARE" -q reproduce "$1" > out.txt 2>&1 && ok || bad "$1: not equal, or not as written: $(cat out.txt)"; }

# A stack that is too small for the program's recursion is an error, not a signal.
got=0
(ulimit -s 64; exec "$TARE" config check tiny.ini > out.txt 2> err.txt) || got=$?
[ $got = 1 ] && grep -q 'the stack is limited to 64 KB, and at least 1024 KB are needed' err.txt && ok || bad "ulimit -s 64: status $got, $(cat err.txt)"

begin seed run.seed=2 || bad "another seed: $(cat err.txt)"
planted 'another seed' same seed

# Starts ten seconds before an hour is skipped or repeated, in zones of both hemispheres and of half
# an hour; and with a clock that goes back by that hour again and again.
if [ -n "${CLOCK:-}" ] && [ -f "$CLOCK" ]; then
    n=0
    for at in 1774745990:Europe/Berlin 1792889990:Europe/Berlin 1793512790:America/New_York 1775314790:Australia/Lord_Howe 1790999990:Australia/Sydney; do
        for seed in 1 2; do
            n=$((n + 1))
            # shellcheck disable=SC2086
            TZ=${at#*:} LD_PRELOAD=$CLOCK TARE_CLOCK=$seed TARE_CLOCK_AT=${at%%:*} "$TARE" -q train tiny.ini $KEYS run.dir=clock$n data.date=2026-10-25 > /dev/null 2> err.txt && ok || bad "$at: $(cat err.txt)"
            same clock$n
        done
    done
    if has_python; then
        checked "a clock's jump changed a time" << 'PY'
import glob, json
for path in glob.glob("clock*/metrics.jsonl"):
    for row in map(json.loads, open(path)):
        assert all(0 <= v < 3600 for k, v in row.items() if k.startswith("time/") and k != "time/unix"), (path, row)
PY
    fi
else
    skip_part "the preloaded clock: a sanitizer's build has an allocator of its own"
fi

# Processes: threads and programs of verifiers cannot be started. The test runs as a user without
# processes, because root is exempt from the limit.
nobody=65534
if [ "$(id -u)" = 0 ] && command -v setpriv > /dev/null && [ -z "$(ps -o pid= -U $nobody 2> /dev/null)" ] && chmod -R a+rwX "$WORK" &&
    setpriv --reuid=$nobody --regid=$nobody --clear-groups bash -c 'cd "$1" && [ -x "$2" ]' x "$WORK" "$TARE"; then
    few() { # LIMIT RUN [key=value ...]
        local limit=$1 run=$2
        shift 2
        # shellcheck disable=SC2086
        setpriv --reuid=$nobody --regid=$nobody --clear-groups bash -c "ulimit -u $limit; exec \"\$@\"" few "$TARE" -q train tiny.ini $KEYS run.dir="$run" data.date=2026-10-25 "$@" > /dev/null 2> err.txt
    }
    refused=0
    few_at() { # LIMIT
        rm -rf few
        if few "$1" few run.threads=4; then
            same few
            return
        fi
        refused=$((refused + 1))
        [ "$(grep -c '^tare: ' err.txt)" = 1 ] && grep -q 'cannot start thread [0-9]* of [0-9]*; lower the number of threads\|cannot be started: Resource temporarily unavailable' err.txt && ok || bad "ulimit -u $1: $(cat err.txt)"
        [ ! -e few ] && return
        chmod -R a+rwX few
        begin few && ok || bad "after ulimit -u $1: $(cat err.txt)"
        same few
    }
    for limit in 1 2 3 4 6 8; do few_at $limit; done
    [ $refused -ge 3 ] && ok || bad "only $refused limits were too small"
    (few() { echo 'no word of tare' > err.txt; false; } && planted 'an end without a message' few_at 1 && exit $failed) && ok || bad "an end without a message was not found"
else
    skip_part "ulimit -u: needs root, setpriv, a program that the user nobody may run, and no process of that user"
fi

# Addresses: from the least limit, in powers of two, under which the program can be loaded, in
# quarters of it up to the least one that is enough. tight_at LIMIT: sets status.
tight_at() {
    rm -rf tight
    status=0
    { (ulimit -v "$1" && in_place=exec begin tight run.threads=2) || status=$?; } 2> /dev/null
    echo "ulimit -v $1: exit status $status: $(cat err.txt)"
    if [ $status != 0 ]; then # 127: the system's loader, for a library or a thread
        [ $status = 1 ] && [ "$(grep -c '^tare: ' err.txt)" = 1 ] || { [ $status = 127 ] && grep -qE 'annot allocate memory|out of memory|failed to map' err.txt; } && ok || bad "ulimit -v $1: exit status $status: $(cat err.txt)"
        begin tight && ok || bad "after ulimit -v $1: $(cat err.txt)"
    fi
    same tight
}
if [ -n "${CLOCK:-}" ]; then
    step=1024 refused=0
    until (ulimit -v $((4 * step)) && "$TARE" --version) > /dev/null 2>&1; do step=$((2 * step)); done
    for ((limit = 4 * step; ; limit += step)); do
        tight_at $limit
        [ $status != 0 ] && [ $limit -lt $((400 * step)) ] || break
        refused=$((refused + 1))
    done
    [ $status = 0 ] && [ $refused -ge 2 ] && ok || bad "ulimit -v: $refused limits were too small, and $limit ends with $status"
    (begin() { : > err.txt; return 139; } && planted 'a signal' tight_at 1000000 && exit $failed) && ok || bad "a signal was not found"
fi

# Memory: under a cgroup that is too small the kernel kills the process; one that is just enough
# makes it slow. Version 2 where it controls memory, else version 1.
group='' most='' given=''
memory_group() { # makes the cgroup; sets group, and the name of its limit
    [ "$(id -u)" = 0 ] || return 1
    if grep -qsw memory /sys/fs/cgroup/cgroup.controllers; then
        group=/sys/fs/cgroup/tare-$$ most=memory.max
        # Children have the controller when their parent enables it for them; a group with
        # processes, such as a container's, cannot
        grep -qw memory /sys/fs/cgroup/cgroup.subtree_control || { echo +memory > /sys/fs/cgroup/cgroup.subtree_control && given=1; } 2> /dev/null || return 1
    else
        group=/sys/fs/cgroup/memory/tare-$$ most=memory.limit_in_bytes
    fi
    mkdir $group 2> /dev/null && [ -w $group/$most ]
}
leave_group() {
    [ ! -d "$group" ] || rmdir "$group"
    [ -z "$given" ] || echo -memory > /sys/fs/cgroup/cgroup.subtree_control
} 2> /dev/null
trap 'leave_group; rm -rf "$WORK"' EXIT
narrow_at() { # MiB
    local status=0
    rm -rf narrow
    echo $(($1 << 20)) > "$group/$most"
    { (echo $BASHPID > "$group/cgroup.procs" && in_place=exec begin narrow) || status=$?; } 2> /dev/null
    echo "$1 MiB: exit status $status: $(cat err.txt)"
    [ $status = 0 ] || killed=$((killed + 1))
    [ $status = 0 ] || [ $status = 137 ] || [ "$(grep -c '^tare: ' err.txt)" -ge 1 ] && ok || bad "$1 MiB: exit status $status without a message"
    [ $status = 0 ] || begin narrow && ok || bad "after $1 MiB: $(cat err.txt)"
    same narrow
}
if memory_group; then
    [ ! -e $group/memory.swap.max ] || echo 0 > $group/memory.swap.max
    killed=0
    for mib in 3 4 5 6 7 8 12; do narrow_at $mib; done
    [ $killed -ge 1 ] && ok || bad "no limit was too small"
    (begin() { : > err.txt; return 5; } && planted 'an end without a message' narrow_at 12 && exit $failed) && ok || bad "an end without a message was not found"
else
    skip_part "a cgroup of memory: cannot be made here"
fi
done_
