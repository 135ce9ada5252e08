#!/usr/bin/env bash
# Checks tare reproduce: a changed bit in any file of a run's folder is found and the file is named;
# so are lines and files that were removed, added or exchanged. Runs that were killed at any point,
# resumed, interrupted, forked or are in progress continue the chain and are intact. Recomputed
# steps are bit-identical; records of another training are not, although all checksums match.
. "$(dirname "$0")/common.inc"
tiny_config
reproduces() { # STATUS, run and options
    local want=$1 got=0
    shift
    "$TARE" reproduce "$@" > out.txt 2> err.txt || got=$?
    [ $got = "$want" ] && ok || { bad "reproduce $*: status $got, expected $want"; cat out.txt err.txt; }
}
shows() { grep -q -- "$1" out.txt && ok || { bad "missing in the output: $1"; cat out.txt err.txt; }; }
train() { "$TARE" -q train tiny.ini log.rollouts=true log.progress=none "$@" > /dev/null 2> err.txt; }
again() { rm -rf copy; cp -r run copy; }
train || { bad "train: $(cat err.txt)"; done_; exit 1; }

reproduces 0 run
shows '^run: 18 links, [0-9]* files and 12 lines of metrics.jsonl are intact; last step 12'
shows '^run: intact$'
reproduces 0 run/ # with a slash, as a shell completes it
cp -r run before
reproduces 0 run --steps 4-6
shows '^steps 4 to 6: recomputed, bit-identical (3 metrics, 3 rollouts, 0 checkpoints)$'
reproduces 0 run --steps 10-12
shows '^steps 10 to 12: recomputed, bit-identical (3 metrics, 3 rollouts, 1 checkpoints)$'
reproduces 0 run --sample 2
[ "$(grep -c 'recomputed, bit-identical' out.txt)" -ge 1 ] && ok || bad "no sampled steps: $(cat out.txt)"
diff -r run before > /dev/null && ok || bad "reproduce changed the run"

# One bit in every file of the folder: in the first, middle and last byte.
files=0
while IFS= read -r file; do
    size=$(stat -c %s "$file")
    for at in 0 $((size / 2)) $((size - 1)); do
        byte=$(od -An -tu1 -j $at -N 1 "$file" | tr -d ' ')
        printf "\\$(printf '%03o' $((byte ^ 1)))" | dd of="$file" bs=1 seek=$at conv=notrunc status=none
        got=0; "$TARE" reproduce run > out.txt 2> err.txt || got=$?
        [ $got = 1 ] && grep -q "${file#run/}" out.txt || bad "a bit of byte $at of $file: status $got: $(cat out.txt err.txt)"
        printf "\\$(printf '%03o' $byte)" | dd of="$file" bs=1 seek=$at conv=notrunc status=none
    done
    files=$((files + 1))
done < <(find run -type f | sort)
[ $files -gt 45 ] && ok || bad "only $files files"
reproduces 0 run

# Lines and files are removed, added or exchanged.
n=0
while IFS= read -r change; do
    again
    (cd copy && eval "${change%% => *}")
    got=0; "$TARE" reproduce copy > out.txt 2> err.txt || got=$?
    [ $got = 1 ] && grep -q "${change##* => }" out.txt || bad "$change: status $got: $(cat out.txt err.txt)"
    n=$((n + 1))
done << 'CHANGES'
sed -i 5d chain.jsonl => chain.jsonl:5: the checksum does not follow
sed -i 4p chain.jsonl => chain.jsonl:5: the checksum does not follow
sed -i '$d' metrics.jsonl => metrics.jsonl: the line of step 12 is missing
sed -i 1d metrics.jsonl => metrics.jsonl: the line of step 1 is missing
tail -1 metrics.jsonl | sed 's/"step":12/"step":13/' >> metrics.jsonl => metrics.jsonl:13: no step of the chain
printf '{"step":13' >> metrics.jsonl => metrics.jsonl:13: incomplete line
printf '{"step":13' >> chain.jsonl => chain.jsonl: 10 bytes after its last line
echo x >> chain.jsonl => chain.jsonl:19
sed -i '5s/{/(/' chain.jsonl => chain.jsonl:5
: > chain.jsonl => chain.jsonl: must have at least one line
rm rollouts/step-000003.jsonl => rollouts/step-000003.jsonl: is missing
cp rollouts/step-000003.jsonl rollouts/step-000004.jsonl => rollouts/step-000004.jsonl: was changed
cp rollouts/step-000003.jsonl rollouts/step-000013.jsonl => rollouts/step-000013.jsonl: is not in the chain
rm -r estimator => estimator/step-000001.state: is missing
rm manifest.json => manifest.json: is missing
rm -r checkpoints/step-000012 => checkpoints/step-000012/complete.json: is missing
rm checkpoints/step-000009/complete.json => checkpoints/step-000009/complete.json: is missing
rm checkpoints/step-000009/model.safetensors => checkpoints/step-000009/model.safetensors: is missing
cp -r checkpoints/step-000009 checkpoints/step-000010 => checkpoints/step-000010: is not in the chain
truncate -s 1000 checkpoints/step-000012/model.safetensors => checkpoints/step-000012/model.safetensors: has 1000 bytes
: > rollouts/step-000001.jsonl => rollouts/step-000001.jsonl: was changed
cp config.ini notes.txt => notes.txt: unknown file: no command of tare writes it into a run's folder
mkdir more => more: unknown file
truncate -s 500 tensorboard/* => tensorboard/events.out.tfevents.0000000001.tare: differs from metrics.jsonl
CHANGES
[ $n = 24 ] && ok || bad "$n changes"
again; sed -i '5s/{/(/' copy/chain.jsonl
reproduces 1 copy
grep -q 'NOT intact: 1 finding above' out.txt && ! grep -q 'not in the chain\|no step of the chain' out.txt && ok || bad "a record after a damaged line is reported: $(cat out.txt)"
again; rm -r copy/checkpoints/step-000009 copy/lock
reproduces 0 copy # as checkpoint.keep leaves them; a copy has no lock
shows '^note: older checkpoints removed by checkpoint.keep: 3'
again; rm copy/chain.jsonl
reproduces 2 copy
grep -q 'copy: chain.jsonl is missing, so its files have no checksums' err.txt && ok || bad "no chain: $(cat err.txt)"
"$TARE" -q train copy --resume train.steps=14 --allow-change > /dev/null 2> err.txt && ok || bad "a run without a chain cannot be resumed: $(cat err.txt)"
reproduces 0 copy
shows '^note: the chain begins after step 12; earlier records have no checksums'
reproduces 2 nowhere
again; rm copy/metrics.jsonl; mkdir copy/metrics.jsonl
reproduces 2 copy
grep 'copy/metrics.jsonl: is not a regular file' err.txt > /dev/null && ! grep ': intact$' out.txt > /dev/null && ok || bad "$(cat out.txt err.txt)"
again; rm copy/rollouts/step-000003.jsonl; mkfifo copy/rollouts/step-000003.jsonl
reproduces 1 copy
shows 'rollouts/step-000003.jsonl: is not a regular file'
again; rm copy/checkpoints/step-000012/complete.json; mkfifo copy/checkpoints/step-000012/complete.json
reproduces 1 copy
got=0; timeout 60 "$TARE" fork copy@12 --run-dir forked > out.txt 2> err.txt || got=$?
[ $got != 124 ] && ok || bad "a fork waits for a named pipe in a checkpoint"
for file in config.ini manifest.json; do # an endless file is not read until memory is exhausted
    again; ln -sf /dev/zero copy/$file
    for verb in 'train copy --resume' 'report copy -o r.html' 'fork copy@12 --run-dir forked'; do
        got=0
        # shellcheck disable=SC2086 # a verb and its arguments
        (ulimit -v 4000000; timeout 60 "$TARE" -q $verb) > out.txt 2> err.txt || got=$?
        [ $got != 0 ] && [ $got -lt 4 ] && grep -q "copy/$file.* is a device\|copy/$file: is not a regular file" err.txt && ok ||
            bad "$verb, $file a link to /dev/zero: status $got, $(head -2 err.txt)"
    done
done
again; events=$(find copy/tensorboard -type f | head -1); rm "$events"; mkfifo "$events"
got=0; timeout 60 "$TARE" reproduce copy > out.txt 2> err.txt || got=$?
[ $got = 2 ] && grep 'is a named pipe' err.txt > /dev/null && ok || bad "events that are a named pipe: status $got, $(cat err.txt)"
for lines in 1 9; do # a cut chain: records that it does not cover are reported
    again; head -$lines run/chain.jsonl > copy/chain.jsonl; printf x >> copy/checkpoints/step-000012/model.safetensors
    reproduces 1 copy
    shows 'metrics.jsonl:12: no step of the chain has this line; the last link is of step '
    shows 'checkpoints/step-000012: is not in the chain'
done
again; grep -v '"step":12' run/chain.jsonl > copy/chain.jsonl
reproduces 0 copy
shows '^copy: intact up to step 11; later records have no checksums$'
mv base gone # the start model is not made again
reproduces 2 run --steps 1-2
shows '^run: not everything could be checked$'
[ ! -e base ] && ok || bad "reproduce made the model again"
mkdir elsewhere
(cd elsewhere; got=0; "$TARE" reproduce ../run --steps 5-6 > out.txt 2> err.txt || got=$?; [ $got = 2 ] && [ ! -e base ]) && ok || bad "reproduce wrote into the working directory"
reproduces 0 run --steps 1-2 model.path=gone
grep 'warning\|stopped after\|continues with' err.txt > /dev/null && bad "reproduce prints messages of its training process: $(cat err.txt)" || ok
for i in 1 2 3 4 5 6 7 8 9; do echo "{\"id\":\"$i\",\"prompt\":\"$i+1=\",\"answer\":\"2\",\"subject\":\"s$i\"}"; done > other.jsonl
reproduces 2 run --steps 1-2 model.path=gone data.train=other.jsonl
grep -q 'data.train=FILE' err.txt && ok || bad "other rows: $(cat err.txt)"
reproduces 2 run train.lr=1 # keys need steps
rm -rf base && mv gone base
for wrong in '' 'run run' 'run --steps 3-1' 'run --steps x' 'run --steps 0-2' 'run --sample 0' 'run --sample' 'run --what' 'run --steps 5-13'; do reproduces 2 $wrong; done

# Killed at any point and resumed, a run continues the chain. Killed and not resumed, its complete
# records are intact.
resume=
for at in rollout:2 update:5 apply:7 recorded:8 checkpoint:9 checkpoint.files:9 checkpoint.listed:9 checkpoint.named:9 data:11 recorded:12 checkpoint.named:12; do
    killed_at "${at%%:*}" "${at##*:}" "$TARE" train tiny.ini log.rollouts=true log.progress=none run.dir=broken $resume && ok || bad "not killed at $at"
    [ ! -d broken ] || { reproduces 0 broken; resume=--resume; }
done
train run.dir=broken --resume || bad "not resumed: $(cat err.txt)"
reproduces 0 broken --steps 1-12
shows '^steps 1 to 12: recomputed, bit-identical'
# Killed while a run starts, or continues from step 6 after step 8 with another configuration: its
# files are the old or the new ones, and no others are accepted.
for at in 0 1 2 3 4 5; do
    rm -rf opened again
    killed_at opening $at "$TARE" train tiny.ini log.progress=none run.dir=opened && ok || bad "not killed at opening $at of a new run"
    rm -rf opened
    killed_at apply 8 "$TARE" train tiny.ini log.rollouts=true log.progress=none run.dir=opened && ok || bad "not killed"
    killed_at opening $at "$TARE" train tiny.ini log.rollouts=true log.progress=none run.dir=opened --resume --allow-change train.lr=2e-3 && ok || bad "not killed at opening $at"
    cp -r opened again
    reproduces 0 opened
    echo '# x' >> again/config.ini
    reproduces 1 again
    shows 'config.ini: was changed'
    killed_at opening $at "$TARE" train tiny.ini log.rollouts=true log.progress=none run.dir=opened --resume --allow-change train.lr=3e-3 && ok || bad "not killed a second time at opening $at"
    reproduces 0 opened
    train run.dir=opened --resume --allow-change && ok || bad "killed at opening $at, not resumed: $(cat err.txt)"
    reproduces 0 opened --steps 10-12
    cmp -s run/checkpoints/step-000012/model.safetensors opened/checkpoints/step-000012/model.safetensors && ok || bad "killed at opening $at: the weights differ"
done
# A run that had ended is continued and killed.
for at in 0 1 2; do
    rm -rf ended
    cp -r run ended
    killed_at opening $at "$TARE" train ended --resume --allow-change train.steps=14 log.progress=none && ok || bad "not killed at opening $at of a run that had ended"
    reproduces 0 ended
    echo 1 > ended/lock
    [ $at = 0 ] && reproduces 1 ended # nothing was written yet: a foreign lock is reported
    train run.dir=ended --resume --allow-change train.steps=14 && ok || bad "a run that had ended, killed at opening $at, is not resumed: $(cat err.txt)"
    reproduces 0 ended
done
got=0; TARE_FAULT=stage=update,step=5,kind=stop train run.dir=stopped || got=$?
[ $got = 130 ] && ok || bad "not interrupted"
reproduces 0 stopped
# A process that resumes the run and fails on a full or broken disk before its first link leaves
# that link incomplete.
if [ -n "${INTERPOSE:-}" ] && [ -f "$INTERPOSE" ]; then
    half=0
    for ((at = 60; at < 400 && half < 1; at++)); do
        rm -rf full
        cp -r stopped full
        LD_PRELOAD=$INTERPOSE TARE_INTERPOSE=io=$at+ TARE_INTERPOSE_ERRNO=28 train run.dir=full --resume && { bad "no fault at $at"; break; }
        [ ! -e full/chain.jsonl.tmp ] || half=1
    done
    [ $half = 1 ] && ok || bad "no fault left an incomplete link"
    reproduces 0 full
    train run.dir=full --resume && ok || bad "after a full disk: $(cat err.txt)"
    reproduces 0 full
    [ ! -e full/chain.jsonl.tmp ] && ok || bad "the incomplete link remains"
fi
train run.dir=stopped --resume && ok || bad "not resumed: $(cat err.txt)"
reproduces 0 stopped
got=0; TARE_FAULT=stage=update,step=5,kind=fail train run.dir=failed || got=$?
[ $got = 1 ] && ok || bad "did not fail"
reproduces 0 failed

# Forks.
for fork in 9 10 0; do
    "$TARE" -q fork run@$fork --run-dir fork$fork > /dev/null 2> err.txt || bad "fork: $(cat err.txt)"
    reproduces 0 fork$fork --steps 11-12
done
"$TARE" -q fork run@9 --run-dir keys train.lr=5e-4 estimator.plugin=grpo > /dev/null 2> err.txt || bad "fork: $(cat err.txt)"
reproduces 0 keys --steps 10-12
reproduces 2 keys --steps 8-12 # across the change of keys
grep -q 'changed its configuration after step 9' err.txt && ok || bad "across a fork: $(cat err.txt)"
killed_at data 10 "$TARE" fork run@9 --run-dir unborn train.lr=5e-4 log.progress=none && ok || bad "not killed"
reproduces 0 unborn

# Records of a process that trained differently, with matching checksums: recomputing the steps
# finds them.
again; sed -i 's/^lr = .*/lr = 0.0011/' copy/config.ini; rm copy/chain.jsonl
"$TARE" -q train copy --resume > /dev/null 2> err.txt || bad "$(cat err.txt)"
reproduces 1 copy --steps 11-12
shows '^steps 11 to 12: recomputed, they differ'
shows 'metric  *step 11: '

# A run in progress: its process is stopped, and the lock is held.
killed_at update 8 "$TARE" train tiny.ini log.rollouts=true log.progress=none run.dir=going && ok || bad "not killed"
if command -v flock > /dev/null; then
    flock going/lock "$TARE" reproduce going > out.txt 2> err.txt && shows 'note: the run is in progress' || bad "a run in progress: $(cat out.txt err.txt)"
else
    skip_part "flock is not installed"
fi
# No space for the copy.
mkdir space
(ulimit -f 60; got=0; TMPDIR=$PWD/space "$TARE" reproduce run --steps 11-12 > out.txt 2> err.txt || got=$?; [ $got = 2 ]) && ok || bad "a full disk: $(cat out.txt err.txt)"
[ -z "$(ls -A space)" ] && ok || bad "a folder was left behind: $(ls -A space)"
done_
