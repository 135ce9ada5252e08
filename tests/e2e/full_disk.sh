#!/usr/bin/env bash
# Checks every verb that writes on a file system that is full, that fills up half way, and that is
# read-only. These are real file systems in a separate mount namespace. Each time the exit status is
# 1 and the message names a file and the reason. No new files remain except a run's own folder and
# its database, and the same command succeeds once there is space. A failed write to standard output
# counts like any other.
if [ -z "${INSIDE:-}" ]; then
    unshare -Urm true 2> /dev/null || { echo "SKIP: user namespaces cannot be had here"; exit 77; }
    INSIDE=1 exec unshare -Urm bash "$0"
fi
. "$(dirname "$0")/common.inc"
# Mounts in it end with this namespace.
mount -t tmpfs none "$WORK" || skip "user namespaces cannot be had with mounts of their own"
cd "$WORK"
trap - EXIT
q="log.level=warn log.progress=none"
tiny_config
"$TARE" -q sft sft.ini log.progress=none || bad 'warm start'
# shellcheck disable=SC2086
"$TARE" -q train tiny.ini $q train.steps=3 > /dev/null || bad 'training'
# shellcheck disable=SC2086
"$TARE" -q train tiny.ini $q train.steps=1 lora.rank=2 run.dir=lora checkpoint.every=1 > /dev/null || bad 'training of an adapter'
for i in $(seq 40); do echo "{\"id\":$i,\"question\":\"$i+1=\",\"text\":\"$i and one\",\"completion\":\"$((i + 1))\",\"answer\":\"$((i + 1))\"}"; done > rows.jsonl
"$TARE" -q cluster train hashed dim=64 --clusters 4 -o book.safetensors < rows.jsonl > /dev/null || bad "the codebook was not made"
for i in $(seq 8); do echo '{"groups":[{"cluster":0,"rewards":[1,0,0,1]},{"cluster":1,"rewards":[0,0,1,1]}]}'; done > groups.jsonl
cat tiny.ini - > sweep.ini <<'INI'
[sweep]
name = s
estimator.plugin = grpo, bv_blend
INI
mkdir place
WHERE=place # a name in the message
MAY_STAY='' # not empty: the files of a failed run remain, and with this argument the run continues
INPUT=rows.jsonl
# one COMMAND...: runs the command and stores its exit status in `status`.
one() {
    status=0
    timeout -s KILL 300 "$@" < "$INPUT" > out.txt 2> err.txt || status=$?
}
left() { # prints the files in place/, except the one that filled it
    find place -mindepth 1 ! -name filler ! -name keep | sort
}
failed_well() { # NAME REASON
    [ $status = 1 ] && ok || bad "$1: exit status $status: $(tail -2 err.txt)"
    grep "^tare: .*$WHERE.*$2" err.txt > /dev/null && ok || bad "$1: the message lacks the file or the reason: $(tail -2 err.txt)"
    [ -n "$MAY_STAY" ] || { [ -z "$(left)" ] && ok || bad "$1: files remain: $(left | head -3)"; }
    [ -z "$(find place -name '*.tmp' -o -name '*.making')" ] && ok || bad "$1: half written: $(find place -name '*.tmp' -o -name '*.making')"
}
# on NAME COMMAND...: runs a command that writes into place/.
on() {
    local name=$1 kilobytes size
    shift
    one "$@"
    [ $status = 0 ] || { bad "$name does not work: $(tail -2 err.txt)"; return; }
    kilobytes=$(du -sk place | cut -f 1)
    rm -rf place/* place/.[!.]*
    for size in 16 $((kilobytes / 2)); do
        [ "$size" -ge 16 ] || continue
        mount -t tmpfs -o "size=${size}k" none place
        [ "$size" != 16 ] || head -c 64k /dev/zero > place/filler 2> /dev/null || true
        one "$@"
        failed_well "$name, $([ "$size" = 16 ] && echo full || echo "space for half")" 'No space left on device'
        rm -f place/filler
        mount -o remount,size=64m place
        one "$@"
        [ $status = 0 ] || [ -z "$MAY_STAY" ] || one "$@" "$MAY_STAY"
        [ $status = 0 ] && ok || bad "$name, with free space: $(tail -2 err.txt)"
        umount place
    done
    mount --bind place place
    mount -o remount,bind,ro place
    one "$@"
    failed_well "$name, read-only" 'Read-only file system'
    umount place
}
# check_planted PLANT: checks that a faulty program, which ends on a full disk without a message or with exit
# status 0, is reported (tests/faults/interpose.c).
check_planted() {
    local before=$failed
    mount -t tmpfs -o size=16k none place
    head -c 64k /dev/zero > place/filler 2> /dev/null || true
    one env LD_PRELOAD="$INTERPOSE" TARE_INTERPOSE=io=1+ TARE_INTERPOSE_PLANT="$1" "$TARE" config init place/mine.ini
    failed_well "planted $1" 'No space left on device' > told.txt
    umount place
    [ "$failed" -gt "$before" ] && { failed=$before; ok; } || bad "planted ($1): the faulty program was not reported"
}
# printed COMMAND...: runs a command that writes to a full standard output.
printed() {
    status=0
    timeout -s KILL 300 "$@" < "$INPUT" > /dev/full 2> err.txt || status=$?
    case $2 in diff | reproduce) [ $status = 2 ] ;; *) [ $status = 1 ] ;; esac && ok || bad "$*, on a full standard output: exit status $status: $(tail -1 err.txt)"
    grep "^tare: .*No space left on device" err.txt > /dev/null && ok || bad "$*, on a full standard output: $(tail -1 err.txt)"
}

on 'config init' "$TARE" config init place/mine.ini
on 'data check' "$TARE" data check rows.jsonl write=place/kept.jsonl
on codebook "$TARE" cluster train hashed dim=64 --clusters 4 -o place/book.safetensors
on report "$TARE" report run -o place/page.html
on merge "$TARE" merge lora place/merged
INPUT=groups.jsonl
on 'estimate --save' "$TARE" estimate bv_blend clusters=2 --save place/state
INPUT=/dev/null
WHERE=mine # it writes into the working folder
on 'plugin new' sh -c 'cd place && "$0" plugin new estimator mine' "$TARE"
WHERE=place
on fork "$TARE" fork run@3 --run-dir place/fork
MAY_STAY=--resume
# shellcheck disable=SC2086
on train "$TARE" train tiny.ini $q run.dir=place/run train.steps=2 checkpoint.every=1
# shellcheck disable=SC2086
on sft "$TARE" sft sft.ini $q run.dir=place/sft sft.out=place/model sft.steps=2
# shellcheck disable=SC2086
on eval "$TARE" eval tiny.ini $q run.dir=place/evaluation eval.out=place/eval
MAY_STAY=--retry # of its cells
# shellcheck disable=SC2086
on sweep "$TARE" sweep sweep.ini $q train.steps=1 sweep.dir=place/sweep sweep.metric=reward/mean
[ ! -e "${INTERPOSE:-}" ] || for plant in quiet 'done'; do check_planted "$plant"; done

for command in 'config dump tiny.ini' 'config docs' 'plugin list' doctor 'data show tiny.ini' 'diff run run' 'reproduce run' 'plan tiny.ini' 'estimate grpo' \
    'tokenize base' 'cluster embed hashed' 'cluster assign book.safetensors' 'generate base rollout.max_new_tokens=2' 'verify exact' 'cluster inspect book.safetensors' '--help' 'train --help'; do
    case $command in estimate*) INPUT=groups.jsonl ;; *) INPUT=rows.jsonl ;; esac
    # shellcheck disable=SC2086
    printed "$TARE" $command
done
done_
