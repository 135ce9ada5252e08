#!/usr/bin/env bash
# What a machine takes away under way: the hour at the ends of summer time (the clock and the time zone), processes (ulimit -u) and memory (a cgroup). A run ends with the bits of
# one that met none of it, or with a message or the kernel's kill, and then --resume does.
. "$(dirname "$0")/common.inc"
tiny_config
easy_judge
"$TARE" sft sft.ini 2> /dev/null || { bad "the model was not made"; done_; exit 1; }
sed -i 's/^steps = 12/steps = 4/; s/^every = 3/every = 1/' tiny.ini
KEYS="data.eval= eval.before=false eval.after=false log.progress=none log.rollouts=true checkpoint.keep=0"
# shellcheck disable=SC2086
"$TARE" -q train tiny.ini $KEYS run.dir=whole data.date=2026-10-25 > /dev/null 2> err.txt || { bad "train: $(cat err.txt)"; done_; exit 1; }
last=checkpoints/step-000004/model.safetensors
same() { cmp -s "whole/$last" "$1/$last" && "$TARE" -q verify-run "$1" > out.txt 2>&1 && ok || bad "$1: not the same, or not as written: $(cat out.txt)"; }

# ten seconds before an hour is skipped or comes twice, in zones of both hemispheres and of half an hour; and a clock that goes that hour back itself, again and again
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
        checked "a time that a clock's jump changed" << 'PY'
import glob, json
for path in glob.glob("clock*/metrics.jsonl"):
    for row in map(json.loads, open(path)):
        assert all(0 <= v < 3600 for k, v in row.items() if k.startswith("time/") and k != "time/unix"), (path, row)
PY
    fi
else
    skip_part "the preloaded clock: a sanitizer's build has an allocator of its own"
fi

# processes: threads that cannot be started, programs of verifiers that cannot; as a user without a process, whom root's freedom does not reach
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
    for limit in 1 2 3 4 6 8; do
        rm -rf few
        if few $limit few run.threads=4; then
            same few
            continue
        fi
        refused=$((refused + 1))
        [ "$(grep -c '^tare: ' err.txt)" = 1 ] && grep -q 'cannot start thread [0-9]* of [0-9]*; lower run.threads\|cannot be started: Resource temporarily unavailable' err.txt && ok || bad "ulimit -u $limit: $(cat err.txt)"
        [ ! -e few ] && continue
        chmod -R a+rwX few
        # shellcheck disable=SC2086
        "$TARE" -q train tiny.ini $KEYS run.dir=few data.date=2026-10-25 --resume > /dev/null 2> err.txt && ok || bad "after ulimit -u $limit: $(cat err.txt)"
        same few
    done
    [ $refused -ge 3 ] && ok || bad "only $refused limits were met"
else
    skip_part "ulimit -u: needs root, setpriv, a program that nobody may run, and nobody without processes"
fi

# memory: a cgroup that is too small ends the process by the kernel's hand, one that is just enough makes it slow
group=/sys/fs/cgroup/memory/tare-$$
if [ "$(id -u)" = 0 ] && mkdir $group 2> /dev/null && [ -w $group/memory.limit_in_bytes ]; then
    trap 'rmdir $group 2> /dev/null; rm -rf "$WORK"' EXIT
    killed=0
    for mib in 3 4 5 6 7 8 12; do
        rm -rf narrow
        status=0
        echo $((mib << 20)) > $group/memory.limit_in_bytes
        # shellcheck disable=SC2086
        { (echo $BASHPID > $group/cgroup.procs && exec timeout 300 "$TARE" -q train tiny.ini $KEYS run.dir=narrow data.date=2026-10-25 > /dev/null 2> err.txt) || status=$?; } 2> /dev/null
        echo "$mib MiB: exit status $status: $(cat err.txt)"
        [ $status = 0 ] || killed=$((killed + 1))
        [ $status = 0 ] || [ $status = 137 ] || [ "$(grep -c '^tare: ' err.txt)" -ge 1 ] && ok || bad "$mib MiB: exit status $status without a message"
        # shellcheck disable=SC2086
        [ $status = 0 ] || "$TARE" -q train tiny.ini $KEYS run.dir=narrow data.date=2026-10-25 $([ ! -e narrow/manifest.json ] || echo --resume) > /dev/null 2> err.txt && ok || bad "after $mib MiB: $(cat err.txt)"
        same narrow
    done
    [ $killed -ge 1 ] && ok || bad "no limit was too small"
else
    skip_part "a cgroup of memory: cannot be made here"
fi
done_
