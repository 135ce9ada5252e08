#!/usr/bin/env bash
# Cuts the power of a disk while training, supervised training, an evaluation or a sweep writes on
# it: the file system on a loop device is shut down without writing its journal (FS_IOC_SHUTDOWN),
# which loses all unsynced data as a power cut does. It is mounted again and the job continues.
#
# The job must end with the results of an undisturbed one, from the newest finished checkpoint. A
# process that had ended well has lost nothing, and one that notices the cut reports it. `tare
# reproduce` reports all damage, and the file system is intact. ext4 is tested in its modes, and XFS
# where mkfs.xfs is installed; training and supervised training also on two ranks (evaluations on
# two ranks by hand).
#   POWER_CUTS=200 POWER_SEED=7   number of cuts (default: a few); the seed draws times, modes, jobs
#   POWER_JOBS="train sft"        only these of train, sft, eval, sweep, and on two ranks: ranks
#                                 (training), sft_ranks, eval_ranks
#   POWER_PLANT=TEXT              files with TEXT in their path are not synced, so that promises
#                                 must break (TARE_INTERPOSE_UNSYNCED)
#   POWER_KEEP=FOLDER             keeps the image after the cut that broke a promise
# A forgotten sync is found: TARE_INTERPOSE_UNSYNCED (tests/faults/interpose.c).
if [ -z "${INSIDE:-}" ]; then
    [ "$(id -u)" = 0 ] && unshare -m true 2> /dev/null || { echo "SKIP: a power cut needs root and loop devices"; exit 77; }
    # Mounts in this namespace end with it, and with the mount its loop device, however the script
    # ends.
    INSIDE=1 exec unshare -m --propagation private bash "$0"
fi
. "$(dirname "$0")/common.inc"
. "$SOURCE/tests/soak/jobs.inc"
command -v mkfs.ext4 > /dev/null && command -v e2fsck > /dev/null || skip "a power cut needs root and loop devices, mkfs.ext4 and e2fsck"
command -v python3 > /dev/null || skip "what python3 checks: it is not installed"
jobs=${POWER_JOBS:-train sft eval sweep ranks sft_ranks}
if [[ $jobs == *ranks* ]] && ! command -v mpirun > /dev/null; then
    skip_part "mpirun is not installed (apt install openmpi-bin libopenmpi-dev)"
    jobs=$(printf '%s\n' $jobs | grep -v 'ranks$' | xargs)
fi
RANKS=2 PLANT=${POWER_PLANT:-}
ranks_surroundings
mark=none
mkdir disk
end() {
    cd /
    # shellcheck disable=SC2046 # a list of numbers
    kill -KILL $(members) 2> /dev/null || true
    umount -l "$WORK/disk" 2> /dev/null || true
    rm -rf "$WORK"
}
trap end EXIT
cut_power() { # 2: EXT4_GOING_FLAGS_NOLOGFLUSH, XFS_FSOP_GOING_FLAGS_NOLOGFLUSH
    python3 -c 'import fcntl, os, struct; fcntl.ioctl(os.open("disk", os.O_RDONLY), 0x8004587d, struct.pack("I", 2))'
}
new_disk() { # mounts a new file system; sets kind and options
    draw ${#MODES[@]}
    options=${MODES[drawn]}
    kind=${options%%:*} options=${options#*:}
    rm -f image
    truncate -s "$([ $kind = xfs ] && echo 320M || echo 128M)" image
    case $kind in ext4) mkfs.ext4 -q -F image ;; xfs) mkfs.xfs -q -f image ;; esac
    mount -t $kind -o loop,$options image disk
}
take_off() {
    local i
    for ((i = 0; i < 3000; i++)); do umount disk 2> /dev/null && return 0; sleep 0.1; done
    broke "the disk stays in use"
}
# The first mount replays the journal; the result must be a whole file system.
come_back() {
    take_off
    [ -z "${POWER_KEEP:-}" ] || cp --sparse=always image "$POWER_KEEP/image.now"
    mount -t $kind -o loop,$options image disk && take_off || { broke "it cannot be mounted again"; return; }
    case $kind in ext4) e2fsck -fn image ;; xfs) xfs_repair -n image ;; esac > fsck.txt 2>&1 || broke "$kind is damaged: $(tail -n 2 fsck.txt)"
    mount -t $kind -o loop,$options image disk
}

MODES=(ext4:rw ext4:data=writeback ext4:commit=1 ext4:noauto_da_alloc ext4:nodelalloc ext4:data=journal)
if command -v mkfs.xfs > /dev/null && command -v xfs_repair > /dev/null && grep -qw xfs /proc/filesystems; then MODES+=(xfs:rw xfs:rw); fi
RANDOM=${POWER_SEED:-1}
new_disk > err.txt 2>&1 || skip "a power cut needs root and loop devices: $(tail -1 err.txt)"
cut_power 2> err.txt || skip "a power cut needs root and loop devices whose file system can be shut down: $(tail -1 err.txt)"
umount disk

trains() { [ "$job" = train ] || [ "$job" = ranks ]; } # makes a run
on_ranks() { [[ $job == *ranks ]]; }
EVERY=1 # train: a checkpoint every EVERY steps
job_of() { # WHERE RESUME: sets command
    job_command "$job" "$1" "$2"
    case $job in train | ranks) command+=(checkpoint.every=$EVERY) ;; sft*) command+=(checkpoint.every=2) ;; esac
}
declare -A took want hits
whole() { # JOB: makes the result of an undisturbed job, and measures its time
    local began
    job=$1
    mkdir "whole-$job"
    began=$(ms)
    job_of "$WORK/whole-$job" ''
    (cd "$(in_folder "whole-$job")" && "${command[@]}") > out.txt 2>&1 || { cat out.txt; bad "$job"; done_; exit 1; }
    took[$job]=$(($(ms) - began)) hits[$job]=0
    rows_of "whole-$job"
    want[$job]=$(digest "whole-$job")
}
begin() { # of the jobs; the files of a run are kept as well
    jobs_config 2> /dev/null
    for job in $1; do
        whole "$job"
        job_of "$WORK/all-$job" ''
        ! trains || "${command[@]}" checkpoint.keep=0 > /dev/null
    done
}
broken=0 cuts=0 jobs_done=0 right=0 ended=0 pages=
broke() {
    broken=$((broken + 1))
    printf 'BROKEN: %s on %s (%s), seed %d, cut %d, %s: %s\n' "$job" "$kind" "$options" "${POWER_SEED:-1}" $cuts "$moment" "$*"
    [ -z "${POWER_KEEP:-}" ] || [ ! -e "$POWER_KEEP/image.now" ] || mv "$POWER_KEEP/image.now" "$POWER_KEEP/$kind-$cuts.image"
}
resumes() { # as a user would: continues from whatever remains
    case $job in
    train | ranks) [ ! -e disk/run/manifest.json ] && [ ! -e disk/run/metrics.jsonl ] && [ ! -e disk/run/checkpoints ] || echo --resume ;;
    sft*) [ ! -d disk/model.training ] || echo --resume ;;
    esac
}
# point: sets stage and step: a point of the job at which it is killed; victim: the rank, if there
# are several
point() {
    local list
    case $job in
    train | ranks) list=(opening recorded checkpoint checkpoint.files checkpoint.listed checkpoint.named data) ;;
    sft*) list=(data checkpoint checkpoint.files checkpoint.listed checkpoint.named result) ;;
    eval*) list=(questions) ;;
    sweep) list=(cell) ;;
    esac
    [ -z "$PLANT" ] || ! on_ranks || list=(checkpoint.named)
    draw ${#list[@]}
    stage=${list[drawn]}
    # The others belong to rank 0 alone.
    case $stage in data | checkpoint | recorded | questions) draw $RANKS && victim=$drawn ;; *) victim=0 ;; esac
    case $stage in
    opening) draw 5 && step=$drawn ;;
    result) draw 2 && step=$drawn ;;
    questions) draw 25 && step=$((8 * drawn + 8)) ;;
    cell) draw 3 && step=$((1 + drawn)) ;;
    *) if [[ $job == sft* ]]; then draw 20 && step=$((2 * drawn + 2)); else draw 12 && step=$((1 + drawn)); fi ;;
    esac
}
# The newest finished checkpoint by the steps' records: the next step begins after it.
finished() {
    local lines=0
    [ ! -e disk/run/metrics.jsonl ] || lines=$(wc -l < disk/run/metrics.jsonl)
    lines=$((lines > 0 ? (lines - 1) / EVERY * EVERY : 0))
    [ "$stage" != checkpoint.named ] || [ $status = 0 ] || lines=$step
    echo $lines
}
# Runs the process whose power is cut: it reaches a point where it is killed, or runs for a time.
# Sets status and must_have.
attempt() {
    local pid at='' wait=0
    local -a with=(KILLS_MARK="$mark")
    [ -z "$PLANT" ] || with+=(LD_PRELOAD="$INTERPOSE" TARE_INTERPOSE_UNSYNCED="$PLANT")
    mark=$$-$cuts status=0 stage='' step=0 victim=0
    with+=(KILLS_MARK="$mark")
    job_of "$WORK/disk" "$(resumes)"
    draw 2
    if [ $drawn = 0 ]; then
        point
        moment="at $stage of $step"
        with+=(TARE_FAULT="stage=$stage,step=$step,kind=kill")
        ! on_ranks || { moment+=", rank $victim" with[-1]+=",rank=$victim"; }
    else
        draw $((took[$job] * 11 / 10))
        at=$drawn
        moment="after $at ms"
        draw 2
        wait=$drawn
    fi
    (cd "$(in_folder disk)" && exec env "${with[@]}" "${command[@]}") > out.txt 2> err.txt &
    pid=$!
    if [ -n "$at" ]; then
        draw 3
        # Traffic of other programs.
        [ $drawn != 0 ] || { sleep "$(printf '%d.%03d' $((at / 2000)) $((at / 2 % 1000)))"; sync -f disk; at=$((at / 2)); }
        sleep "$(printf '%d.%03d' $((at / 1000)) $((at % 1000)))"
    else
        wait $pid || status=$?
    fi
    ! trains || must_have=$(finished)
    cut_power
    hits[$job]=$((hits[$job] + 1))
    if [ -n "$at" ] && [ $wait = 1 ]; then
        local i
        for ((i = 0; i < 6000; i++)); do [ -n "$(members)" ] || break; sleep 0.1; done
        [ $i -lt 6000 ] || broke "it does not end without its disk"
    fi
    # shellcheck disable=SC2046 # a list of numbers
    kill -KILL $(members) 2> /dev/null || true
    if [ -n "$at" ]; then wait $pid || status=$?; fi
    case $status in
    0 | 137) ;;
    1 | 3)
        # Mapped files.
        pages+=$(sed -n 's|^tare: .*/\(.*\): part of this file can no longer be read.*|, \1|p' err.txt)
        grep -q '^tare: ' err.txt || broke "exit status $status without a message"
        # When a rank was killed, the others report it.
        [ -z "$at" ] && on_ranks || ended=$((ended + 1))
        ;;
    *) broke "exit status $status: $(tail -1 err.txt)" ;;
    esac
}
called_right() { # the run's links name files that equal those of the undisturbed run
    python3 - disk/run "all-$job/run" << 'PY'
import json, os, sys
run, whole = sys.argv[1:]
for line in open(run + "/chain.jsonl", "rb"):
    if not line.endswith(b"\n"):
        continue
    for name in json.loads(line).get("files", {}):
        mine, other = os.path.join(run, name), os.path.join(whole, name)
        if name.startswith(("rollouts/", "checkpoints/")) and not name.endswith("complete.json") and os.path.exists(mine):
            if open(mine, "rb").read() != open(other, "rb").read():
                sys.exit(name)
PY
}
# Checks the state when the power is back, before the job continues.
look() {
    local got=0
    if [ $status = 0 ]; then
        digest disk > got.txt
        diff <(printf '%s\n' "${want[$job]}" | grep -v '^[^ ]* [0-9]* [0-9]*$\|^\[') got.txt > lost.txt || broke "it had ended well, but its files are missing: $(head -n 3 lost.txt | tr '\n' ' ')"
    fi
    trains && [ -e disk/run/chain.jsonl ] && [ -e disk/run/metrics.jsonl ] || return 0
    "$TARE" -q reproduce disk/run > sums.txt 2>&1 || got=$?
    [ $got -le 2 ] || broke "reproduce: exit status $got: $(tail -1 sums.txt)"
    [ $got != 0 ] || { right=$((right + 1)); called_right 2> lost.txt || broke "reproduce reports no damage: $(tail -1 lost.txt)"; }
}
began_at() { # the step at which the run's last process began, by its link
    python3 -c 'import json; print([x["step"] for x in map(json.loads, open("disk/run/chain.jsonl")) if x["link"] == "process"][-1])'
}
# After the last cut the job runs undisturbed.
at_last() {
    local status=0
    job_of "$WORK/disk" "$(resumes)"
    if [[ $job == sft* ]] && [ -e disk/model ] && [ ! -e disk/model.training ]; then return; fi
    (cd "$(in_folder disk)" && exec "${command[@]}") > out.txt 2> err.txt || { status=$?; broke "it does not continue: exit status $status: $(grep . err.txt | tail -n 2)"; return; }
    ! grep -E 'is damaged|were written|is missing|is incomplete' err.txt > lost.txt || broke "a finished checkpoint is damaged: $(head -1 lost.txt)"
    trains || return 0
    [ "$(began_at)" -ge "$must_have" ] || broke "checkpoint $must_have was finished, but the job continued from $(began_at)"
    "$TARE" -q reproduce disk/run > sums.txt 2>&1 || broke "checksums: $(grep -v '^note' sums.txt | head -n 2)"
}
# One job with one cut after another, each on the files that the previous one left.
one_job() {
    local most
    job=$1 must_have=0
    draw 3
    most=$((1 + drawn))
    new_disk
    while [ $most -gt 0 ]; do
        attempt 2> /dev/null # where the shell prints the signal that ended it
        cuts=$((cuts + 1)) most=$((most - 1))
        come_back
        look
        [ $status != 0 ] || break
    done
    moment="after the last cut, $moment"
    at_last
    rows_of disk 2> err.txt || broke "runs.db: $(tail -n 1 err.txt)"
    digest disk > got.txt
    diff <(printf '%s\n' "${want[$job]}") got.txt > lost.txt || broke "other results: $(head -n 4 lost.txt | tr '\n' ' ')"
    take_off
    jobs_done=$((jobs_done + 1))
}
power_cuts() { # JOBS CUTS
    local list n=0 until=$((cuts + $2))
    read -ra list <<< "$1"
    while [ $cuts -lt $until ] && { [ -z "$PLANT" ] || [ $broken = 0 ]; }; do
        one_job "${list[n % ${#list[@]}]}"
        n=$((n + 1))
    done
}
begin "$jobs"
power_cuts "$jobs" "${POWER_CUTS:-12}"
[ $broken = 0 ] && ok || bad "$broken promises are broken"
printf '%d cuts in %d jobs' $cuts $jobs_done
for job in $jobs; do printf ', %s %d' "$job" "${hits[$job]}"; done
printf '; %d noticed and reported the cut (by a page of a mapped file%s); %d states in which reproduce reports nothing; %d promises broken\n' $ended "${pages:-, none}" $right $broken

# A program that forgets a sync.
found() { # JOB PLANT WHAT
    [[ " $jobs " == *" $1 "* ]] || return 0
    broken=0
    PLANT=$2 power_cuts "$1" 40 > out.planted
    [ $broken -gt 0 ] && ok || bad "not found: $3"
    grep '^BROKEN' out.planted | head -n 1
}
if [ -n "${INTERPOSE:-}" ] && [ -f "$INTERPOSE" ] && [ -z "$PLANT" ]; then
    MODES=(ext4:rw) # where unsynced data is not written along with synced data
    found train model.safetensors "the weights of a checkpoint are not synced"
    found train /checkpoints "nothing of a checkpoint is synced"
    found ranks optimizer-00001 "rank 1's slice of the optimizer is not synced"
fi
done_
