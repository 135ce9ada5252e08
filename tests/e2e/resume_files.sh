#!/usr/bin/env bash
# The files that a configuration names for its plugins have checksums in manifest.json: a Python
# reward with the files that it imports, the program of `command`, a schema. Checks that --resume
# names a changed file and continues with it, that tare reproduce reports it, and that the run then
# records the new checksum.
. "$(dirname "$0")/common.inc"
tiny_config
easy_judge
"$TARE" sft sft.ini 2> /dev/null || { bad "the model was not made"; done_; exit 1; }
train() { # RUN [argument ...]
    local run=$1
    shift
    "$TARE" train tiny.ini data.eval= eval.before=false eval.after=false train.steps=6 checkpoint.every=2 log.progress=none estimator.plugin=grpo codebook.plugin=none \
        run.dir="$run" "$@" > /dev/null 2> err.txt || bad "$run $*: $(cat err.txt)"
}
resume() { "$TARE" train "$1" --resume log.progress=none "${@:2}" > /dev/null 2> err.txt || bad "$1 --resume: $(cat err.txt)"; }
says() { grep -q -- "$1" err.txt && ok || bad "missing in the messages: $1: $(cat err.txt)"; }
quiet() { if grep -q 'changed files' err.txt; then bad "warned: $(cat err.txt)"; else ok; fi; }
reproduces() { # STATUS RUN [PATTERN]
    local got=0
    "$TARE" reproduce "$2" > out.txt 2> err.txt || got=$?
    [ $got = "$1" ] && grep -q -- "${3:-.}" out.txt && ok || bad "reproduce $2: status $got, expected $1 with '${3:-}': $(cat out.txt err.txt)"
}
entry='differs from the file that the run was trained with'

# the words of a command that are files
echo lines > words.txt
cp judge.sh 'a judge.sh'
command="FIRST=1 sh '$PWD/a judge.sh' words.txt no_file . 2>> judge.log"
train command verifier.command.command="$command" --until 2
grep -q '"key": "verifier.command.command"' command/manifest.json && grep -q '"path": ".*/a judge.sh"' command/manifest.json && grep -q '"path": ".*/words.txt"' command/manifest.json && ok ||
    bad "the files of a command are not in the manifest: $(cat command/manifest.json)"
[ "$(grep -c '"path": ".*/\(judge.log\|no_file\|sh\)"' command/manifest.json)" = 0 ] && ok || bad "too many files: $(cat command/manifest.json)"
reproduces 0 command
cp -r command same
resume same --until 4
quiet
echo '# edited' >> 'a judge.sh'
reproduces 1 command "^verifier.command.command = $WORK/a judge.sh: a judge.sh $entry"
[ "$(grep -c 'words.txt' out.txt)" = 0 ] && ok || bad "another file is named: $(cat out.txt)"
resume command --until 4
says "warning: command is resumed with changed files (by the checksums in manifest.json): verifier.command.command = $WORK/a judge.sh: a judge.sh $entry"
reproduces 0 command "^note: verifier.command.command = $WORK/a judge.sh: a judge.sh was different or missing for an earlier process"
resume command # the new file is the one of the run now
quiet
rm 'a judge.sh'
reproduces 0 command "^note: verifier.command.command = $WORK/a judge.sh is missing, so it is not checked"

# a path of a plugin's table
echo '{}' > schema.json
train schema verifier.plugins='command json:0.1' verifier.json.schema=schema.json --until 2
echo '{"type":"object"}' > schema.json
reproduces 1 schema "^verifier.json.schema = $WORK/schema.json: schema.json $entry"
resume schema --until 4
says "verifier.json.schema = $WORK/schema.json: schema.json $entry"
# a fork may name another file
echo '{}' > other.json
"$TARE" fork schema@2 --run-dir forked verifier.json.schema=other.json train.steps=4 log.progress=none > /dev/null 2> err.txt && ok || bad "fork: $(cat err.txt)"
quiet
echo '{"type":"array"}' > schema.json
reproduces 0 forked

# a Python reward under two names, with what it imports
command -v python3 > /dev/null || { skip_part "a Python reward: python3 is not installed"; done_; exit; }
mkdir code
cat > code/rewards.py <<'PY'
import os
from helper import even
def correct(prompts, completions, **row):
    return [even(c) for c in completions]
def brief(prompts, completions, **row):
    from lib import weight  # imported late
    return [weight.of(c) for c in completions]
PY
printf 'def even(text):\n    return float(text.strip()[-1:] in tuple("02468"))\n' > code/helper.py
mkdir code/lib
: > code/lib/__init__.py
printf 'def of(text):\n    return 0.5\n' > code/lib/weight.py
echo 'never = imported' > code/apart.py
train python verifier.plugins='python as correct:1 python as brief:0.3' verifier.correct.file=code/rewards.py verifier.correct.function=correct \
    verifier.brief.file=code/rewards.py verifier.brief.function=brief --until 2
checked "the manifest" <<'PY'
import json
files = [f for f in json.load(open("python/manifest.json"))["files"] if f["key"].endswith(".file")]
assert [f["key"] for f in files] == ["verifier.correct.file", "verifier.brief.file"], files
for f in files:
    assert f["path"].endswith("/code/rewards.py"), f
    assert set(f["files"]) == {"rewards.py", "helper.py", "lib/__init__.py", "lib/weight.py"}, f
PY
echo '# apart' >> code/apart.py
reproduces 0 python
sed -i 's/0.5/0.25/' code/lib/weight.py
reproduces 1 python "^verifier.correct.file = $WORK/code/rewards.py: lib/weight.py $entry"
[ "$(grep -c 'helper.py\|: rewards.py' out.txt)" = 0 ] && ok || bad "files that are the same are named: $(cat out.txt)"
cp -r code elsewhere
cp -r python moved
resume python --until 4
says "python is resumed with changed files (by the checksums in manifest.json): verifier.correct.file = $WORK/code/rewards.py: lib/weight.py $entry"
sed -i 's/import os/import os, apart/; s/never = imported/never = 1/' code/rewards.py code/apart.py
resume python
says "rewards.py $entry; .*apart.py was not read when the run was trained"
reproduces 0 python '^note: .*code/rewards.py: lib/weight.py was different or missing for an earlier process'
# a replay names the change before the difference that it makes
sed -i 's/0.25/0.125/' code/lib/weight.py
got=0
"$TARE" reproduce python --steps 1-2 > out.txt 2> err.txt || got=$?
[ $got = 1 ] && grep -A 9 "lib/weight.py $entry" out.txt | grep -q '^steps 1 to 2: recomputed, they differ' && ok || bad "a replay with another reward: status $got: $(cat out.txt err.txt)"
# moved: the same files
sed -i 's/0.25/0.5/' elsewhere/lib/weight.py
resume moved --allow-change verifier.correct.file=elsewhere/rewards.py verifier.brief.file=elsewhere/rewards.py
quiet

# a sweep does not repeat runs that were made with another file, and names it
cp tiny.ini sweep.ini
cat >> sweep.ini <<'INI'
[sweep]
name = files
metric = reward/mean
train.steps = 2
run.seed = 1, 2
INI
if "$TARE" sweep sweep.ini > out.txt 2> err.txt; then
    echo '# edited' >> judge.sh
    "$TARE" sweep sweep.ini > out.txt 2> err.txt || true
    says "judge.sh differs from the file that 2 runs of this sweep started with"
else
    bad "sweep: $(cat out.txt err.txt)"
fi
done_
