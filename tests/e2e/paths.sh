#!/usr/bin/env bash
# Paths of a configuration count from the working folder in which the run was started, which
# config.ini records. Checks that every command that reads a run finds its files from another
# folder, and after the run's folder and its files have been moved together; that paths on the
# command line count from the present folder; and that a resumed run records both.
. "$(dirname "$0")/common.inc"
tiny_config
mkdir -p start/files elsewhere
sed -e 's#^train = builtin.*#train = files/train.jsonl#' -e 's#^eval = builtin.*#eval = files/part-?.jsonl#' -e 's/^steps = 12/steps = 2/' \
    -e 's/^every = 3/every = 1/' -e 's#^dir = run#dir = runs/one#' tiny.ini > start/tiny.ini
sed 's#^train = .*#train = files/train.jsonl#; s/^steps = 30/steps = 2/' sft.ini > start/sft.ini
cat > start/files/judge.sh <<'SH'
while read -r line; do case $line in *[02468]\",*) echo '{"reward":1}' ;; *) echo '{"reward":0}' ;; esac; done
SH
sed -i 's/^plugins = exact/plugins = command json:0.1/; s/^prompt = plain/chat_template = files\/chat.jinja/' start/tiny.ini
printf '[verifier.command]\ncommand = sh files/judge.sh\n[verifier.json]\nschema = files/schema.json\n' >> start/tiny.ini
echo '{"type":"object"}' > start/files/schema.json
echo '{% for m in messages %}{{ m.content }}{% endfor %}' > start/files/chat.jinja
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
    echo "{\"id\":\"$i\",\"question\":\"$i+1=\",\"answer\":\"$((i + 1))\",\"completion\":\"$((i + 1))\",\"subject\":\"a\"}" >> start/files/train.jsonl
done
head -3 start/files/train.jsonl > start/files/part-1.jsonl
quiet=(log.progress=none eval.before=false eval.after=false)
(cd start && "$TARE" train tiny.ini train.steps=4 "${quiet[@]}" --until 2 2> ../err.txt) && ok || bad "the first part: $(cat err.txt)"
grep -qx "paths_from = $WORK/start" start/runs/one/config.ini && grep -qx 'train = files/train.jsonl' start/runs/one/config.ini && ok ||
    bad "config.ini: $(head -12 start/runs/one/config.ini)"

# works FOLDER RUN: the commands that read RUN, from FOLDER
works() {
    local folder=$1 run=$2
    does() { (cd "$folder" && "$TARE" "$@" > "$WORK/out.txt" 2> "$WORK/err.txt") && ok || bad "in $folder: tare $*: $(cat err.txt)"; }
    does data show "$run" rows=2
    does data show "$run" set=eval
    does eval "$run" eval.out="$WORK/measured" log.progress=none
    rm -rf "$WORK/measured"
    does eval "$run" --checkpoints "$run" --steps 0,2 eval.out="$WORK/measured" log.progress=none
    rm -rf "$WORK/measured"
    does plan "$run"
    does config diff "$run" "$run"
    does reproduce "$run" --steps 2-2
    does audit "$run"
    does report "$run" -o "$WORK/page"
    rm -rf "$WORK/page"
    does fork "$run@1" --run-dir "$run-forked" train.steps=2 "${quiet[@]}"
    does reproduce "$run-forked" --steps 2-2
    (cd "$folder" && rm -rf "$run-forked")
}
works "$WORK/elsewhere" ../start/runs/one
works / "$WORK/start/runs/one"

# a resumed run has the same bits as one that was not moved
(cd start && "$TARE" train tiny.ini run.dir=runs/whole train.steps=4 "${quiet[@]}" 2> ../err.txt) || bad "a whole run: $(cat err.txt)"
cp -r start/runs/one kept
(cd elsewhere && "$TARE" train ../start/runs/one --resume --until 3 "${quiet[@]}" 2> ../err.txt) && ok || bad "--resume elsewhere: $(cat err.txt)"
grep -q 'another configuration' err.txt && bad "the configuration is said to differ: $(cat err.txt)" || ok
grep -qx "paths_from = $WORK/start" start/runs/one/config.ini && grep -qx 'train = files/train.jsonl' start/runs/one/config.ini &&
    grep -qx 'dir = runs/one' start/runs/one/config.ini && grep -qx 'command = sh files/judge.sh' start/runs/one/config.ini && ok ||
    bad "config.ini after --resume: $(grep -v '^$' start/runs/one/config.ini | head -30)"
# with the configuration's file, of which only the run's folder counts from here
(cd elsewhere && "$TARE" train ../start/tiny.ini run.dir=../start/runs/one train.steps=4 --resume "${quiet[@]}" 2> ../err.txt) && ok || bad "--resume with the file: $(cat err.txt)"
"$TARE" diff start/runs/one start/runs/whole > out.txt && ok || bad "other bits: $(cat out.txt)"

# moved together
mv start there
rm -rf there/runs/one
mv kept there/runs/one
works "$WORK/elsewhere" ../there/runs/one
(cd elsewhere && "$TARE" train ../there/runs/one --resume --until 3 "${quiet[@]}" 2> ../err.txt) && ok || bad "--resume after the move: $(cat err.txt)"
grep -qx "paths_from = $WORK/there" there/runs/one/config.ini && ok || bad "the new folder is not recorded: $(head -8 there/runs/one/config.ini)"
"$TARE" diff there/runs/one there/runs/whole > out.txt || true # one has more steps
grep -q '^compared: 3 steps of metrics, 3 of rollouts' out.txt && ! grep -q 'step [1-3]:' out.txt && ok || bad "other bits after the move: $(cat out.txt)"

# a path on the command line counts from here, and is recorded so
cp there/files/train.jsonl elsewhere/mine.jsonl
(cd elsewhere && "$TARE" train ../there/runs/one --resume data.train=mine.jsonl "${quiet[@]}" 2> ../err.txt) && ok || bad "data.train=mine.jsonl: $(cat err.txt)"
grep -qx "train = $WORK/elsewhere/mine.jsonl" there/runs/one/config.ini && ok || bad "mine.jsonl: $(grep '^train' there/runs/one/config.ini)"
(cd there && "$TARE" data show runs/one rows=1 > ../out.txt 2> ../err.txt) && grep -q "$WORK/elsewhere/mine.jsonl" out.txt && ok || bad "data show: $(cat out.txt err.txt)"

# run.paths_from in a file of one's own: relative to that file
printf '[run]\npaths_from = .\n' > there/fixed.ini
printf 'include = tiny.ini\n%s\n' "$(cat there/fixed.ini)" > there/fixed.ini
(cd elsewhere && "$TARE" data show ../there/fixed.ini rows=1 > ../out.txt 2> ../err.txt) && ok || bad "paths_from = .: $(cat err.txt)"

# a supervised training
sed -i 's#^dir = sft#dir = runs/sft#; s/^steps = .*/steps = 4/' there/sft.ini
(cd there && "$TARE" sft sft.ini checkpoint.every=2 sft.out=tuned log.progress=none 2> ../err.txt) || bad "sft: $(cat err.txt)"
(cd there && killed_at update 3 "$TARE" sft sft.ini checkpoint.every=2 sft.out="$WORK/again" log.progress=none) || bad "not killed: $(cat there/log.txt)"
(cd elsewhere && "$TARE" sft ../there/sft.ini checkpoint.every=2 sft.out=../again --resume log.progress=none 2> ../err.txt) && ok || bad "sft --resume elsewhere: $(cat err.txt)"
cmp there/tuned/model.safetensors again/model.safetensors && ok || bad "another model after sft --resume"
# plugins: one named by a file, the others in plugins/ next to the configuration, which the run finds after a move, too
unset TARE_PLUGIN_PATH # it comes before the folder next to the file
mkdir -p mine/plugins/estimators
cp "${TARE%/*}/plugins/verifiers/exact.so" mine/plugins/estimators/../judge.so
cp "${TARE%/*}/plugins/estimators/grpo.so" mine/plugins/estimators/grpo.so
cp -r there/base mine/base
sed -e 's#^plugins = .*#plugins = ./plugins/judge.so:exact:2#; s#^plugin = bv_blend#plugin = grpo#; s#^plugin = field#plugin = none#; s#^dir = .*#dir = out#' -e '/^.codebook.field/,/^field/d' \
    -e '/^warm_start/d' tiny.ini > mine/own.ini
(cd mine && "$TARE" train own.ini train.steps=3 "${quiet[@]}" --until 1 2> ../err.txt) && ok || bad "own plugins: $(cat err.txt)"
grep -q "mine/plugins/estimators/grpo.so" mine/out/manifest.json && ok || bad "the plugin next to the file was not used: $(cat mine/out/manifest.json)"
(cd elsewhere && "$TARE" train ../mine/out --resume --until 2 "${quiet[@]}" 2> ../err.txt) && ok || bad "own plugins, --resume: $(cat err.txt)"
grep -qx 'plugins = ./plugins/judge.so:exact:2' mine/out/config.ini && ok || bad "verifier.plugins: $(grep plugins mine/out/config.ini)"
mv mine yours
(cd elsewhere && "$TARE" train ../yours/out --resume "${quiet[@]}" 2> ../err.txt && "$TARE" reproduce ../yours/out --steps 3-3 > ../out.txt 2>> ../err.txt) && ok ||
    bad "own plugins, moved: $(cat err.txt out.txt)"
grep -q "another plugin" err.txt && bad "moved plugins are said to differ: $(cat err.txt)" || ok
done_
