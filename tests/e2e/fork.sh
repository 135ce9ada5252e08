#!/usr/bin/env bash
# Checks tare fork: without keys the fork equals the run to the bit (weights, optimizer, states,
# metrics except times, rollouts), from a checkpoint, from between two of them and from the start.
# With keys, the steps before the fork equal the run's. The original run is never changed; a fork is
# written completely or not at all.
. "$(dirname "$0")/common.inc"
tiny_config
fork() { "$TARE" fork "$@" log.progress=none > out.txt 2> err.txt; }
status() { [ "$1" = "$2" ] && ok || { bad "status $1, expected $2: $3"; cat err.txt; }; }
says() { grep -q "$1" err.txt && ok || { bad "missing in the output: $1"; cat err.txt; }; }
sums() { (cd "$1" && find . -type f -exec cksum {} + | sort); }
strip() { sed -E 's/,"(time|memory|speculation)\/[^,}]*//g; s/,"tokens_per_second"[^,}]*//' "$1"; }
same() { # RUN FORK: compares everything except times
    strip "$1/metrics.jsonl" > a
    strip "$2/metrics.jsonl" > b
    cmp -s a b && ok || { bad "$2: metrics differ"; diff a b | head -3; }
    local file n=0
    for file in "$1"/rollouts/* "$1"/estimator/* "$1"/checkpoints/step-000012/*; do
        n=$((n + 1))
        case $file in */complete.json) continue ;; esac
        cmp -s "$file" "$2/${file#"$1"/}" || bad "$2/${file#"$1"/} differs"
    done
    [ $n -gt 30 ] && ok || bad "$n files compared"
}
"$TARE" -q train tiny.ini log.rollouts=true log.progress=none > /dev/null 2> err.txt || { bad "train: $(cat err.txt)"; done_; exit 1; }
[ "$(ls run/checkpoints | tr '\n' ' ')" = 'step-000009 step-000012 ' ] && ok || bad "checkpoints: $(ls run/checkpoints)"
sums run > before.txt

got=0; fork run@9 --run-dir at9 || got=$?
status $got 0 "from a checkpoint"
same run at9
got=0; fork run@10 || got=$?
status $got 0 "between checkpoints"
says 'run has no checkpoint of step 10: continuing from step 9'
grep 'run-fork-10.part' err.txt > /dev/null && bad "the message names a folder that is renamed: $(cat err.txt)" || ok
same run run-fork-10
got=0; fork run/@5 run.dir=deep/at5 || got=$?
status $got 0 "before all checkpoints"
same run deep/at5
got=0; fork run@0 --run-dir at0 || got=$?
status $got 0 "from the start"
same run at0
grep -q '"step": 10' run-fork-10/manifest.json && grep -q "\"run\": \"$WORK/run\"" run-fork-10/manifest.json && ok || bad "the manifest has no origin"

# Keys.
got=0; fork run@9 --run-dir keys train.lr=5e-4 estimator.bv_blend.temperature=0.3 || got=$?
status $got 0 "other keys"
says 'train.lr: 0.001 -> 0.0005'
head -9 run/metrics.jsonl > a; head -9 keys/metrics.jsonl > b
cmp -s a b && ok || bad "the steps before a fork differ from the run's"
strip run/metrics.jsonl > a; strip keys/metrics.jsonl > b
cmp -s a b && bad "other keys change nothing" || ok
for step in 000010; do # sampled by the weights of step 9: the same completions, other advantages
    sed 's/"baseline.*//' run/rollouts/step-$step.jsonl > a; sed 's/"baseline.*//' keys/rollouts/step-$step.jsonl > b
    cmp -s a b && ok || bad "the random numbers are not common"
done
grep -q '^# after step 9 (.*): train.lr: 0.001 -> 0.0005' keys/config.ini && grep -q '^lr = 0.0005' keys/config.ini && ok || { bad "config.ini"; head -5 keys/config.ini; }
checked "the origin in the manifest" "$WORK" << 'PY'
import json, sys
o = json.load(open("keys/manifest.json"))["origin"]
assert o["run"] == sys.argv[1] + "/run" and o["step"] == 9 and o["checkpoint"] == 9 and len(o["complete_xxh3"]) == 16, o
assert o["keys"] == {"train.lr": ["0.001", "0.0005"], "estimator.bv_blend.temperature": ["(not set)", "0.3"]}, o
PY
# differences begin after the fork: the copied steps are not in the mean, its interval or the curve
diff_says() { # TEXT RUNS and options
    local want=$1
    shift
    "$TARE" diff "$@" > out.txt 2> err.txt || true
    grep -- "$want" out.txt > found.txt && ok || { bad "diff $*: not said: $want"; cat out.txt err.txt; }
}
diff_says '^mean difference over 3 steps after the fork at step 9: ' run keys
diff_says '^mean difference over 3 steps after the fork at step 9: ' keys run
got=0; fork keys@10 --run-dir deeper train.lr=1e-4 || got=$?
status $got 0 "a fork of a fork"
diff_says '^mean difference over 2 steps after the fork at step 10: ' keys deeper
diff_says '^mean difference over 3 steps after the fork at step 9: ' run deeper
diff_says '^mean difference over 12 steps: ' run run
mkdir moved; cp -r run keys moved
diff_says '^mean difference over 3 steps after the fork at step 9: ' moved/run moved/keys
diff_says '^no common step after the fork at step 9 has nothing$' run keys --metric nothing
"$TARE" diff run keys --json > out.txt 2> err.txt || true
checked "the curve after a fork" << 'PY'
import json
c = json.load(open("out.txt"))["curve"]
assert c["fork"] == 9 and c["n"] == 3 and [r[0] for r in c["rows"]] == [10, 11, 12], c
assert abs(c["mean"] - sum(r[3] for r in c["rows"]) / 3) < 1e-12, c
PY
"$TARE" -q report run keys -o forks.html --svg charts 2> err.txt || bad "report: $(cat err.txt)"
grep -o '<title>fork at step [0-9]*</title>' forks.html | sort | uniq -c > found.txt
[ "$(wc -l < found.txt)" = 1 ] && grep 'fork at step 9<' found.txt > one.txt && ok || bad "marks of the fork: $(cat found.txt)"
grep 'fork at step 9<' charts/training-reward.svg > found.txt && ok || bad "no mark in a chart's file"
"$TARE" -q report run -o plain.html 2> err.txt && ! grep 'fork at step' plain.html > found.txt && ok || bad "a mark without a fork"
got=0; fork run@10 --run-dir grpo estimator.plugin=grpo || got=$?
status $got 0 "another estimator"
says 'the state of the estimator does not fit this configuration: it is empty after step 10'
[ "$(wc -l < grpo/metrics.jsonl)" = "$(wc -l < run/metrics.jsonl)" ] && ok || bad "another estimator: $(wc -l < grpo/metrics.jsonl) lines"
got=0; fork keys@9 --run-dir again || got=$?
status $got 0 "a fork of a fork, at its origin"
same keys again
got=0; fork keys@5 --run-dir never || got=$?
status $got 3 "a step before the fork's keys"
says 'keys: changed its configuration after step 9'

# Refused: nothing is written.
for key in run.seed=2 rollout.group_size=8 rollout.prompts=4 model.path=other data.limit=3 train.steps=8 nothing.x=1 estimator.plugin=nosuch; do
    got=0; fork run@9 --run-dir never $key || got=$?
    status $got 3 "$key"
    grep -q "${key%%=*}\|nosuch\|\[nothing\]" err.txt && ok || bad "the message does not name $key: $(cat err.txt)"
done
for from in run@13 nothere@3 run run@ run@x; do
    got=0; fork "$from" --run-dir never || got=$?
    [ $got != 0 ] && ok || bad "$from was accepted"
done
got=0; fork run@9 --run-dir at9 || got=$?
[ $got = 1 ] && says 'at9: holds a run already' || bad "a run was overwritten"
mkdir taken; : > taken/notes.txt
for to in . .. deep/.. taken run; do
    got=0; fork run@9 --run-dir $to || got=$?
    [ $got != 0 ] && [ ! -e "$to.part" ] && [ ! -e "$to/.part" ] && ok || bad "--run-dir $to was accepted: $(cat err.txt)"
done
says 'run: holds a run already'
mkdir mine.part; : > mine.part/notes.txt
got=0; fork run@9 --run-dir mine || got=$?
[ $got != 0 ] && [ -e mine.part/notes.txt ] && says 'mine.part: already has files (notes.txt)' || bad "a folder of the user was removed"
cp -r run torn; sed -i '5s/}$//' torn/metrics.jsonl
got=0; fork torn@9 --run-dir never || got=$?
[ $got != 0 ] && says '^tare: torn/metrics.jsonl:5: ' || bad "forked a run with a damaged line"
rm -r torn; cp -r run torn; : > torn/metrics.jsonl
got=0; fork torn@9 --run-dir never || got=$?
[ $got != 0 ] && says 'torn/metrics.jsonl: missing line of step 9' || bad "forked a run without metrics"
rm -r torn; cp -r run torn; sed -i 5d torn/chain.jsonl
got=0; fork torn@9 --run-dir never || got=$?
[ $got != 0 ] && says 'torn/chain.jsonl:5: ' || bad "forked a run with a damaged chain"
for file in rollouts/step-000003.jsonl estimator/step-000009.state; do
    rm -r torn; cp -r run torn; rm torn/$file
    got=0; fork torn@9 --run-dir never || got=$?
    [ $got != 0 ] && says "torn/$file: is missing, although the run wrote it" || bad "forked a run without $file"
done
rm torn/estimator/step-000010.state; cp run/estimator/step-000009.state torn/estimator
got=0; fork torn@9 --run-dir without10 || got=$?
status $got 0 "a file later than the step is required"
! grep 'never.part' err.txt > /dev/null && ok || bad "the message names the copy: $(cat err.txt)"
(ulimit -f 60; got=0; "$TARE" fork run@9 --run-dir never > out.txt 2> err.txt || got=$?; [ $got = 1 ]) && says 'cannot be written' || bad "an unwritable file: $(cat err.txt)"
[ ! -e never ] && ok || bad "a refused fork left a folder"
rm -rf never.part

# States left by a crash of the machine: a folder with only the beginning of the mark; the mark in a
# fork with its final name.
mkdir early.part; : > early.part/fork.unfinished.tmp
got=0; fork run@9 --run-dir early || got=$?
status $got 0 "a folder with half a mark"
: > early/fork.unfinished
"$TARE" -q reproduce early > out.txt 2>&1 && ok || bad "a complete fork with the mark: $(cat out.txt)"

# Killed while the earlier steps are recomputed, and after the fork has its final name.
killed_at update 10 "$TARE" fork run@11 --run-dir killed log.progress=none && bad "the wrong process was killed" || ok
[ ! -e killed ] && ok || bad "an incomplete fork has its final name"
got=0; fork run@11 --run-dir killed || got=$?
status $got 0 "repeated"
same run killed
killed_at update 11 "$TARE" fork run@9 --run-dir late log.progress=none && ok || bad "not killed"
"$TARE" train late --resume > out.txt 2> err.txt && ok || bad "a killed fork cannot be resumed: $(cat err.txt)"
same run late

# --until: a run that stops at a step and is resumed equals the run.
"$TARE" train tiny.ini log.rollouts=true log.progress=none run.dir=parts --until 7 > out.txt 2> err.txt && ok || bad "--until: $(cat err.txt)"
says 'stopped after step 7 of 12; continue with: tare train parts --resume'
[ -d parts/checkpoints/step-000007 ] && [ ! -d parts/checkpoints/step-000008 ] && ok || bad "--until 7: $(ls parts/checkpoints)"
"$TARE" train parts --resume > out.txt 2> err.txt && ok || bad "after --until: $(cat err.txt)"
same run parts
for until in 13 0 x ''; do
    got=0; "$TARE" train tiny.ini run.dir=never --until $until > out.txt 2> err.txt || got=$?
    [ $got -ge 2 ] && ok || bad "--until $until: status $got"
    says 'until'
done
got=0; "$TARE" sft sft.ini --until 3 > out.txt 2> err.txt || got=$?
status $got 2 "sft --until"
[ ! -e never ] && ok || bad "a refused --until left a folder"

# The table at the end: one table of the run itself, with the rewards before its first step,
# whichever process made that step.
table() { [ "$(grep -c '^held-out mean reward' out.txt)" = 1 ] && grep -qE "^  all +$before +[0-9.]+$" out.txt && ok || { bad "$1: not one table that begins with $before"; cat out.txt; }; }
train() { "$TARE" train "$@" > out.txt 2> err.txt && ok || bad "train $*: $(cat err.txt)"; }
train tiny.ini eval.before=true eval.after=true log.progress=none run.dir=judged
before=$(sed -nE 's/^  all +([0-9.]+) +[0-9.]+$/\1/p' out.txt)
table "a run"
train tiny.ini eval.before=true eval.after=true log.progress=none run.dir=two --until 7
train two --resume
table "a run that was continued"
got=0; fork judged@9 --run-dir judged9 || got=$?
table "a fork"
printf x >> judged/checkpoints/step-000012/model.safetensors
got=0; fork judged@12 --run-dir judged12 train.steps=13 || got=$?
status $got 0 "a fork at a damaged checkpoint"
table "a fork whose steps are made again"

sums run > after.txt
cmp -s before.txt after.txt && ok || { bad "the run was changed"; diff before.txt after.txt; }
done_
