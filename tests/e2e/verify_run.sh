#!/usr/bin/env bash
# tare verify-run: one bit that changed in any file of a run's folder is found, and the file is named; lines and files taken out, put in or put together
# otherwise too. Runs that were killed at any point, resumed, interrupted, forked or are still going continue the chain, and are as they were written.
# Steps come out again to the bit; what was written by another training does not, though all sums fit.
. "$(dirname "$0")/common.inc"
tiny_config
verify() { # STATUS run and options
    local want=$1 got=0
    shift
    "$TARE" verify-run "$@" > out.txt 2> err.txt || got=$?
    [ $got = "$want" ] && ok || { bad "verify-run $*: status $got, expected $want"; cat out.txt err.txt; }
}
says() { grep -q -- "$1" out.txt && ok || { bad "not said: $1"; cat out.txt err.txt; }; }
train() { "$TARE" -q train tiny.ini log.rollouts=true log.progress=none "$@" > /dev/null 2> err.txt; }
again() { rm -rf copy; cp -r run copy; }
train || { bad "train: $(cat err.txt)"; done_; exit 1; }

verify 0 run
says '^run: 18 links, [0-9]* files and 12 lines of metrics.jsonl are as they were written; last step 12'
says '^run: all is as it was written$'
verify 0 run/ # as a shell completes it
cp -r run before
verify 0 run --steps 4-6
says '^steps 4 to 6: made again, the same to the bit (3 metrics, 3 rollouts, 0 checkpoints)$'
verify 0 run --steps 10-12
says '^steps 10 to 12: made again, the same to the bit (3 metrics, 3 rollouts, 1 checkpoints)$'
verify 0 run --sample 2
[ "$(grep -c 'made again, the same to the bit' out.txt)" -ge 1 ] && ok || bad "no sampled steps: $(cat out.txt)"
diff -r run before > /dev/null && ok || bad "verify-run changed the run"

# one bit in every file of the folder, one file after another: first byte, middle, last byte
files=0
while IFS= read -r file; do
    size=$(stat -c %s "$file")
    for at in 0 $((size / 2)) $((size - 1)); do
        byte=$(od -An -tu1 -j $at -N 1 "$file" | tr -d ' ')
        printf "\\$(printf '%03o' $((byte ^ 1)))" | dd of="$file" bs=1 seek=$at conv=notrunc status=none
        got=0; "$TARE" verify-run run > out.txt 2> err.txt || got=$?
        [ $got = 1 ] && grep -q "${file#run/}" out.txt || bad "a bit of byte $at of $file: status $got: $(cat out.txt err.txt)"
        printf "\\$(printf '%03o' $byte)" | dd of="$file" bs=1 seek=$at conv=notrunc status=none
    done
    files=$((files + 1))
done < <(find run -type f | sort)
[ $files -gt 45 ] && ok || bad "only $files files"
verify 0 run

# lines and files taken out, put in, or exchanged
n=0
while IFS= read -r change; do
    again
    (cd copy && eval "${change%% => *}")
    got=0; "$TARE" verify-run copy > out.txt 2> err.txt || got=$?
    [ $got = 1 ] && grep -q "${change##* => }" out.txt || bad "$change: status $got: $(cat out.txt err.txt)"
    n=$((n + 1))
done << 'CHANGES'
sed -i 5d chain.jsonl => chain.jsonl:5: its sum does not follow
sed -i 4p chain.jsonl => chain.jsonl:5: its sum does not follow
sed -i '$d' metrics.jsonl => metrics.jsonl: the line of step 12 is missing
sed -i 1d metrics.jsonl => metrics.jsonl: the line of step 1 is missing
tail -1 metrics.jsonl | sed 's/"step":12/"step":13/' >> metrics.jsonl => metrics.jsonl:13: no step of the chain
printf '{"step":13' >> metrics.jsonl => metrics.jsonl:13: the line has no end
printf '{"step":13' >> chain.jsonl => chain.jsonl: 10 bytes after its last line
echo x >> chain.jsonl => chain.jsonl:19
sed -i '5s/{/(/' chain.jsonl => chain.jsonl:5
: > chain.jsonl => chain.jsonl: has no line
rm rollouts/step-000003.jsonl => rollouts/step-000003.jsonl: is missing
cp rollouts/step-000003.jsonl rollouts/step-000004.jsonl => rollouts/step-000004.jsonl: is not the file that was written
cp rollouts/step-000003.jsonl rollouts/step-000013.jsonl => rollouts/step-000013.jsonl: is not in the chain
rm -r estimator => estimator/step-000001.state: is missing
rm manifest.json => manifest.json: is missing
rm -r checkpoints/step-000012 => checkpoints/step-000012/complete.json: is missing
rm checkpoints/step-000009/complete.json => checkpoints/step-000009/complete.json: is missing
rm checkpoints/step-000009/model.safetensors => checkpoints/step-000009/model.safetensors: is missing
cp -r checkpoints/step-000009 checkpoints/step-000010 => checkpoints/step-000010: is not in the chain
truncate -s 1000 checkpoints/step-000012/model.safetensors => checkpoints/step-000012/model.safetensors: has 1000 bytes
: > rollouts/step-000001.jsonl => rollouts/step-000001.jsonl: is not the file
cp config.ini notes.txt => notes.txt: no command of tare writes this into a run's folder; it was put there
mkdir more => more: no command of tare writes this
truncate -s 500 tensorboard/* => tensorboard/events.out.tfevents.0000000001.tare: does not say what metrics.jsonl says
CHANGES
[ $n = 24 ] && ok || bad "$n changes"
again; sed -i '5s/{/(/' copy/chain.jsonl
verify 1 copy
grep -q 'NOT as it was written: 1 finding above' out.txt && ! grep -q 'not in the chain\|no step of the chain' out.txt && ok || bad "what is after a damaged line is called wrong: $(cat out.txt)"
again; rm -r copy/checkpoints/step-000009 copy/lock
verify 0 copy # as checkpoint.keep removes them; a copy needs no lock
says '^note: older checkpoints that checkpoint.keep has removed: 3'
again; rm copy/chain.jsonl
verify 2 copy
grep -q 'copy: chain.jsonl is missing, so its files have no checksums' err.txt && ok || bad "no chain: $(cat err.txt)"
"$TARE" -q train copy --resume train.steps=14 --allow-change > /dev/null 2> err.txt && ok || bad "a run without a chain cannot be resumed: $(cat err.txt)"
verify 0 copy
says '^note: the chain begins after step 12; what was written before has no sums'
verify 2 nowhere
again; rm copy/metrics.jsonl; mkdir copy/metrics.jsonl
verify 2 copy
grep 'copy/metrics.jsonl: is not a regular file' err.txt > /dev/null && ! grep 'all is as it was written' out.txt > /dev/null && ok || bad "$(cat out.txt err.txt)"
again; rm copy/rollouts/step-000003.jsonl; mkfifo copy/rollouts/step-000003.jsonl
verify 1 copy
says 'rollouts/step-000003.jsonl: is not a regular file'
again; rm copy/checkpoints/step-000012/complete.json; mkfifo copy/checkpoints/step-000012/complete.json
verify 1 copy
got=0; timeout 60 "$TARE" fork copy@12 --run-dir forked > out.txt 2> err.txt || got=$?
[ $got != 124 ] && ok || bad "a named pipe in a checkpoint is waited for"
for file in config.ini manifest.json; do # nor is what has no end read until no memory is left
    again; ln -sf /dev/zero copy/$file
    for verb in 'train copy --resume' 'report copy -o r.html' 'fork copy@12 --run-dir forked'; do
        got=0
        # shellcheck disable=SC2086 # a verb and what it takes
        (ulimit -v 4000000; timeout 60 "$TARE" -q $verb) > out.txt 2> err.txt || got=$?
        [ $got != 0 ] && [ $got -lt 4 ] && grep -q "copy/$file.* is a device\|copy/$file: is not a regular file" err.txt && ok ||
            bad "$verb, $file a link to /dev/zero: status $got, $(head -2 err.txt)"
    done
done
again; events=$(find copy/tensorboard -type f | head -1); rm "$events"; mkfifo "$events"
got=0; timeout 60 "$TARE" verify-run copy > out.txt 2> err.txt || got=$?
[ $got = 2 ] && grep 'is a named pipe' err.txt > /dev/null && ok || bad "events that are a named pipe: status $got, $(cat err.txt)"
for lines in 1 9; do # a chain that was cut: what it does not cover is not called right
    again; head -$lines run/chain.jsonl > copy/chain.jsonl; printf x >> copy/checkpoints/step-000012/model.safetensors
    verify 1 copy
    says 'metrics.jsonl:12: no step of the chain has this line; the last link is of step '
    says 'checkpoints/step-000012: is not in the chain'
done
again; grep -v '"step":12' run/chain.jsonl > copy/chain.jsonl
verify 0 copy
says '^copy: up to step 11 all is as it was written; what came after it has no sums$'
mv base gone # the model that the run began with is not made again
verify 2 run --steps 1-2
says '^run: not everything could be checked$'
[ ! -e base ] && ok || bad "verify-run made the model again"
mkdir elsewhere
(cd elsewhere; got=0; "$TARE" verify-run ../run --steps 5-6 > out.txt 2> err.txt || got=$?; [ $got = 2 ] && [ ! -e base ]) && ok || bad "verify-run wrote into the working directory"
verify 0 run --steps 1-2 model.path=gone
grep 'warning\|stopped after\|continues with' err.txt > /dev/null && bad "verify-run says what the process inside of it does: $(cat err.txt)" || ok
for i in 1 2 3 4 5 6 7 8 9; do echo "{\"id\":\"$i\",\"prompt\":\"$i+1=\",\"answer\":\"2\",\"subject\":\"s$i\"}"; done > other.jsonl
verify 2 run --steps 1-2 model.path=gone data.train=other.jsonl
grep -q 'data.train=FILE' err.txt && ok || bad "other rows: $(cat err.txt)"
verify 2 run train.lr=1 # nothing is trained
rm -rf base && mv gone base
for wrong in '' 'run run' 'run --steps 3-1' 'run --steps x' 'run --steps 0-2' 'run --sample 0' 'run --sample' 'run --what' 'run --steps 5-13'; do verify 2 $wrong; done

# killed at any point and resumed: the chain goes on; killed and not resumed, what is complete is right
resume=
for at in rollout:2 update:5 apply:7 recorded:8 checkpoint:9 checkpoint.files:9 checkpoint.listed:9 checkpoint.named:9 data:11 recorded:12 checkpoint.named:12; do
    killed_at "${at%%:*}" "${at##*:}" "$TARE" train tiny.ini log.rollouts=true log.progress=none run.dir=broken $resume && ok || bad "not killed at $at"
    [ ! -d broken ] || { verify 0 broken; resume=--resume; }
done
train run.dir=broken --resume || bad "not resumed: $(cat err.txt)"
verify 0 broken --steps 1-12
says '^steps 1 to 12: made again, the same to the bit'
# killed while a run begins, or goes on from step 6 after step 8, with another configuration: its files are of before or after, and nothing else passes
for at in 0 1 2 3 4 5; do
    rm -rf opened again
    killed_at opening $at "$TARE" train tiny.ini log.progress=none run.dir=opened && ok || bad "not killed at opening $at of a new run"
    rm -rf opened
    killed_at apply 8 "$TARE" train tiny.ini log.rollouts=true log.progress=none run.dir=opened && ok || bad "not killed"
    killed_at opening $at "$TARE" train tiny.ini log.rollouts=true log.progress=none run.dir=opened --resume --allow-change train.lr=2e-3 && ok || bad "not killed at opening $at"
    cp -r opened again
    verify 0 opened
    echo '# x' >> again/config.ini
    verify 1 again
    says 'config.ini: is not the file that was written'
    killed_at opening $at "$TARE" train tiny.ini log.rollouts=true log.progress=none run.dir=opened --resume --allow-change train.lr=3e-3 && ok || bad "not killed a second time at opening $at"
    verify 0 opened
    train run.dir=opened --resume --allow-change && ok || bad "killed at opening $at, not resumed: $(cat err.txt)"
    verify 0 opened --steps 10-12
    cmp -s run/checkpoints/step-000012/model.safetensors opened/checkpoints/step-000012/model.safetensors && ok || bad "killed at opening $at: the weights differ"
done
# a run that had ended goes on, and is killed there
for at in 0 1 2; do
    rm -rf ended
    cp -r run ended
    killed_at opening $at "$TARE" train ended --resume --allow-change train.steps=14 log.progress=none && ok || bad "not killed at opening $at of a run that had ended"
    verify 0 ended
    echo 1 > ended/lock
    [ $at = 0 ] && verify 1 ended # nothing was written yet: a lock that another hand wrote is told
    train run.dir=ended --resume --allow-change train.steps=14 && ok || bad "a run that had ended, killed at opening $at, does not go on: $(cat err.txt)"
    verify 0 ended
done
got=0; TARE_FAULT=stage=update,step=5,kind=stop train run.dir=stopped || got=$?
[ $got = 130 ] && ok || bad "not interrupted"
verify 0 stopped
# a process that goes on with it and finds the disk full, or failing for good, before its first link leaves that link half written
if [ -n "${INTERPOSE:-}" ] && [ -f "$INTERPOSE" ]; then
    half=0
    for ((at = 60; at < 400 && half < 1; at++)); do
        rm -rf full
        cp -r stopped full
        LD_PRELOAD=$INTERPOSE TARE_INTERPOSE=io=$at+ TARE_INTERPOSE_ERRNO=28 train run.dir=full --resume && { bad "no fault at $at"; break; }
        [ ! -e full/chain.jsonl.tmp ] || half=1
    done
    [ $half = 1 ] && ok || bad "no fault left a link half written"
    verify 0 full
    train run.dir=full --resume && ok || bad "after a disk that was full: $(cat err.txt)"
    verify 0 full
    [ ! -e full/chain.jsonl.tmp ] && ok || bad "the half link is left"
fi
train run.dir=stopped --resume && ok || bad "not resumed: $(cat err.txt)"
verify 0 stopped
got=0; TARE_FAULT=stage=update,step=5,kind=fail train run.dir=failed || got=$?
[ $got = 1 ] && ok || bad "did not fail"
verify 0 failed

# forks
for fork in 9 10 0; do
    "$TARE" -q fork run@$fork --run-dir fork$fork > /dev/null 2> err.txt || bad "fork: $(cat err.txt)"
    verify 0 fork$fork --steps 11-12
done
"$TARE" -q fork run@9 --run-dir keys train.lr=5e-4 estimator.plugin=grpo > /dev/null 2> err.txt || bad "fork: $(cat err.txt)"
verify 0 keys --steps 10-12
verify 2 keys --steps 8-12 # across the change of keys
grep -q 'went on with another configuration after step 9' err.txt && ok || bad "across a fork: $(cat err.txt)"
killed_at data 10 "$TARE" fork run@9 --run-dir unborn train.lr=5e-4 log.progress=none && ok || bad "not killed"
verify 0 unborn

# a change whose sums fit: what a process wrote that trained otherwise. The replay finds it.
again; sed -i 's/^lr = .*/lr = 0.0011/' copy/config.ini; rm copy/chain.jsonl
"$TARE" -q train copy --resume > /dev/null 2> err.txt || bad "$(cat err.txt)"
verify 1 copy --steps 11-12
says '^steps 11 to 12: made again, they are others'
says 'metric  *step 11: '

# while a run is going on: a process of it is stopped, the lock held
killed_at update 8 "$TARE" train tiny.ini log.rollouts=true log.progress=none run.dir=going && ok || bad "not killed"
if command -v flock > /dev/null; then
    flock going/lock "$TARE" verify-run going > out.txt 2> err.txt && says 'note: the run is going on' || bad "a run that is going on: $(cat out.txt err.txt)"
else
    skip_part "flock is missing"
fi
# no room for the copy
mkdir room
(ulimit -f 60; got=0; TMPDIR=$PWD/room "$TARE" verify-run run --steps 11-12 > out.txt 2> err.txt || got=$?; [ $got = 2 ]) && ok || bad "a full disk: $(cat out.txt err.txt)"
[ -z "$(ls -A room)" ] && ok || bad "a folder was left behind: $(ls -A room)"
done_
