#!/usr/bin/env bash
# Repeats every test that kills a program or a rank, at full speed and with a share of one core limited by a
# cgroup. A test that depends on timing fails here.
#   bench/kills.sh BUILD [TIMES [THROTTLED [PERCENT]]]      TIMES 50 at full speed, THROTTLED 50 with PERCENT (20) of one core; 0: none
#   KILLS     only tests that match this regular expression
# Prints for each test how often it passed. Exit status 1 if one failed. The throttled part requires root (cgroup) or cpulimit.
set -euo pipefail
build=$(cd "${1:?usage: kills.sh BUILD [TIMES [THROTTLED [PERCENT]]]}" && pwd) times=${2:-50} throttled=${3:-50} percent=${4:-20}
group=
quota() { # makes a cgroup with PERCENT of one core; processes join it by their process id
    local root=/sys/fs/cgroup
    if [ -e $root/cgroup.controllers ] && mkdir $root/tare-kills-$$ 2> /dev/null; then
        group=$root/tare-kills-$$
        echo "$((percent * 1000)) 100000" > $group/cpu.max && return
    elif [ -e $root/cpu/cpu.cfs_quota_us ] && mkdir $root/cpu/tare-kills-$$ 2> /dev/null; then
        group=$root/cpu/tare-kills-$$
        echo 100000 > $group/cpu.cfs_period_us && echo $((percent * 1000)) > $group/cpu.cfs_quota_us && return
    fi
    command -v cpulimit > /dev/null || { echo "no cgroup can be made, and cpulimit is not installed" >&2; exit 1; }
}
trap '[ -z "$group" ] || rmdir "$group" 2> /dev/null || true' EXIT
throttle() {
    if [ -n "$group" ]; then
        bash -c 'echo $$ > "$1/cgroup.procs"; shift; exec "$@"' bash "$group" "$@"
    else
        cpulimit -q -i -l "$percent" -- "$@"
    fi
}
status=0
repeat() { # HOW TIMES COMMAND...: each test of the list
    local how=$1 times=$2 name passed began log
    shift 2
    [ "$times" -gt 0 ] || return 0
    log=$(mktemp)
    for name in $(cd "$build" && ctest -N -R "${KILLS:-killed_at_any_moment|observe.one_process_a_run|test_ranks\.(a_|an_|no_orphan)|e2e/(sft_resume|resume|resume_change|isolate|ranks_kill|ranks_start)\$}" |
        sed -n 's/^ *Test *#[0-9]*: //p'); do
        began=$SECONDS
        (cd "$build" && "$@" ctest -j 1 -R "^$name\$" --repeat "until-fail:$times" --output-on-failure --timeout 3000) > "$log" 2>&1 || status=1
        passed=$(grep -cE 'Passed +[0-9.]+ sec' "$log" || true)
        grep -q '100% tests passed' "$log" && passed=$times || { status=1; cp "$log" "kills-$how-${name//[^a-z_]/-}.log"; }
        printf '%-10s %-58s %d of %d passed, %d s\n' "$how" "$name" "$passed" "$times" $((SECONDS - began))
    done
    rm -f "$log"
}
repeat fast "$times" env
[ "$throttled" = 0 ] || quota
repeat "$percent-percent" "$throttled" throttle
exit $status
