#!/usr/bin/env bash
# Checks tare report and tare watch on a real run and on a sweep.
. "$SOURCE/tests/e2e/common.inc"
tiny_config
"$TARE" -q train tiny.ini > /dev/null 2> err.txt || bad "train: $(cat err.txt)"
"$TARE" -q report run 2> err.txt && ok || bad "report: $(cat err.txt)"
for what in 'Response length' 'Policy entropy' 'Training reward' 'Effective-signal ratio' 'Gradient norm' 'Time by stage' 'Clusters' \
    'Baseline b against' 'Completions that changed most' 'config.ini'; do
    grep -q "$what" run/report.html && ok || bad "the report lacks '$what'"
done
grep -q 'https\?://' run/report.html && bad "the report needs a network" || ok
# Two rewards: a chart and a line of each; some completions always, also of one dump; marks where there are few points.
"$TARE" -q train tiny.ini run.dir=two train.steps=4 eval.every=2 eval.before=true verifier.plugins='exact length:0.5' rollout.prompts=2 train.minibatch=4 > /dev/null 2> err.txt || bad "two: $(cat err.txt)"
"$TARE" -q report two 2> err.txt && ok || bad "report: $(cat err.txt)"
for what in 'Components of the reward' '<figcaption>exact' '<figcaption>length' '<circle class="dot c0"'; do
    grep -q "$what" two/report.html && ok || bad "the report of two rewards lacks '$what'"
done
grep -q 'Components of the reward' run/report.html && bad "one reward has components" || ok
"$TARE" watch two > watch.txt && grep -q '^reward/exact ' watch.txt && grep -q '^reward/length ' watch.txt && ok || bad "watch has no components: $(cat watch.txt)"
"$TARE" -q train tiny.ini run.dir=once train.steps=1 eval.after=false > /dev/null 2> err.txt || bad "once: $(cat err.txt)"
"$TARE" -q report once 2> err.txt && ok || bad "report: $(cat err.txt)"
[ "$(grep -c 'Completions of step 1 ' once/report.html)" = 1 ] && [ "$(grep -o 'figure class="sample"' once/report.html | wc -l)" -gt 3 ] && ok || bad "a run of one step has no completions in its report"
# rows whose group is missing, negative or no number: refused with file and line, at the head of an early and of a late dump
mkdir -p rows/rollouts
echo '{"step":1,"reward/mean":0}' > rows/metrics.jsonl
good='{"group":0,"reward":1}'
for row in '{}' '{"group":-1}' '{"group":[[]]}' '{"group":"0"}'; do
    for at in 1 2; do
        for step in 1 2; do echo "$good" > rows/rollouts/step-00000$step.jsonl; done
        echo "$row" > rows/rollouts/step-00000$at.jsonl
        got=0; "$TARE" report rows -o rows.html > /dev/null 2> err.txt || got=$?
        [ $got = 1 ] && grep -q "rollouts/step-00000$at.jsonl:1: .*group" err.txt && ok || bad "$row in dump $at: status $got, $(cat err.txt)"
    done
done
grep '<span>groups with an advantage, mean</span>' run/report.html > found.txt && ok || bad "the report's head has no share of groups with an advantage"
"$TARE" watch run > watch.txt && grep 'groups with an advantage' watch.txt > found.txt && ok || bad "watch has no groups with an advantage: $(cat watch.txt)"
"$TARE" watch run > watch.txt && grep -q 'training reward' watch.txt && ok || bad "watch: $(cat watch.txt)"
LC_ALL=C "$TARE" watch run | LC_ALL=C grep -q '[^ -~]' && bad "watch prints more than ASCII in the C locale" || ok
"$TARE" watch nowhere > /dev/null 2> err.txt && bad "watch of a folder without a run was accepted" || grep -q nowhere err.txt && ok || bad "watch: $(cat err.txt)"
"$TARE" report nowhere > /dev/null 2> err.txt && bad "report of a folder without a run was accepted" || grep -q nowhere err.txt && ok || bad "report: $(cat err.txt)"
"$TARE" report > /dev/null 2>&1 && bad "report without arguments was accepted" || [ $? = 2 ] && ok || bad "the exit status of a usage error is not 2"
cat >> tiny.ini <<'INI'
[sweep]
name = s
metric = reward/mean:tail
baseline = estimator.plugin=grpo
run.seed = 1..2
estimator.plugin = grpo, bv_blend
train.lr = 1e-3, 1e-4
INI
sed -i 's/^steps = 12/steps = 4/' tiny.ini
"$TARE" -q sweep tiny.ini > /dev/null 2> err.txt || bad "sweep: $(cat err.txt)"
"$TARE" -q report runs/s -o s.html 2> err.txt && ok || bad "report: $(cat err.txt)"
grep -q 'class="heat"' s.html && grep -q 'class="band' s.html && ok || bad "no heat map or band in a sweep's report"
# Each strength of its cells has a rule in the style sheet.
heats=$(grep -o '<td class="h[0-9]*"' s.html | grep -o 'h[0-9]*' | sort -u)
[ "$(wc -l <<< "$heats")" -gt 1 ] && for h in $heats; do grep -q "\.$h{--t:${h#h}%}" s.html && ok || bad "the style sheet has no rule for a heat map's $h"; done || bad "a heat map has cells of one colour: $heats"
# A narrow window cuts off no table: each one scrolls separately.
grep -q '<table' s.html && ok || bad "no table in a sweep's report"
for page in run/report.html s.html; do
    [ "$(grep -o '<table' $page | wc -l)" = "$(grep -o '<div class="scroll"><table' $page | wc -l)" ] && ok || bad "$page: a table that does not scroll"
done
# No interval is computed from fewer than five runs.
grep -q 'no interval below 5 seeds' s.html && grep -q 'data-h="95 % interval"' s.html &&
    [ -z "$(grep -o '<td data-h="[a-z ]*95 % interval"[^<]*' s.html | grep -vE 'class="none">-?$')" ] && ok || bad "an interval of two seeds"
# Every chart as a separate SVG file, with its colours and a key; the sweep's table as LaTeX.
"$TARE" -q report runs/s -o s.html --svg figures --latex tables 2> err.txt && ok || bad "report --svg --latex: $(cat err.txt)"
"$TARE" report runs/s -o s2.html --svg figures2 2>&1 | grep -q "figures2: every chart as an SVG file" && ok || bad "report --svg does not list its files"
charts=$(grep -o '<svg ' s.html | wc -l)
[ "$(find figures -name '*.svg' | wc -l)" = "$charts" ] && [ "$charts" -gt 5 ] && ok || bad "$charts charts, and $(find figures -name '*.svg' | wc -l) SVG files"
grep -l 'bv_blend' figures/training-reward.svg > /dev/null && grep -q 'fill:#2b6cb0' figures/training-reward.svg && ok || bad "a figure has no key or no colours"
grep -q 'var(' figures/*.svg && bad "a figure depends on the page's style sheet" || ok
if has_python; then
    python3 -c 'import sys, xml.etree.ElementTree as t
for f in sys.argv[1:]: assert t.parse(f).getroot().tag == "{http://www.w3.org/2000/svg}svg", f' figures/*.svg 2> err.txt && ok || bad "not SVG: $(cat err.txt)"
fi
# Colours have a meaning: green is right, orange is wrong.
"$TARE" -q report run -o run.html --svg runfigures 2> err.txt || bad "report run --svg: $(cat err.txt)"
find runfigures -name '*group-s-*' > found.txt # of "a group's"
[ ! -s found.txt ] && ok || bad "the name of a chart's file has the rest of a genitive: $(cat found.txt)"
# A full disk (here: a limit under which only the first chart, of the length, fits) leaves no chart,
# instead of some of them.
limit=$((($(stat -c %s runfigures/response-length.svg) + 1023) / 1024))
[ -n "$(find runfigures -size +$((limit * 1024))c)" ] && ok || bad "no chart is larger than the first one"
(ulimit -f $limit && "$TARE" -q report run -o /dev/null --svg part > out.txt 2> err.txt) && bad "charts beyond the limit were written" || ok
grep 'cannot be written: File too large' err.txt > found.txt && ok || bad "the full disk is not reported: $(cat err.txt)"
[ -z "$(ls -A part)" ] && ok || bad "some charts remain: $(ls -A part)"
grep -o 'area c[0-9]"[^>]*/><text[^>]*>[a-z_]*<' runfigures/verdicts.svg | sed 's/area \(c[0-9]\).*>\([a-z_]*\)</\2 \1/' | sort > colours.txt
grep -q '^wrong c1$' colours.txt && [ -z "$(grep '^correct' colours.txt | grep -v c2)" ] && ok || bad "colours of verdicts: $(cat colours.txt)"
tex=$(find tables -name '*.tex')
[ "$tex" = tables/s.tex ] && grep -q '\\toprule' "$tex" && grep -q 'bv\\_blend' "$tex" && ok || bad "LaTeX: $(cat "$tex")"
[ "$(grep '\\\\$' "$tex" | tr -cd '&\n' | sort -u | wc -l)" = 1 ] && [ "$(grep -c '\\\\$' "$tex")" = 5 ] && ok || bad "LaTeX: rows of several lengths: $(cat "$tex")"
"$TARE" -q sweep tiny.ini --table --latex 2> err.txt | cmp - "$tex" && ok || bad "sweep --table --latex: $(cat err.txt)"
"$TARE" -q report run --latex tables > /dev/null 2> err.txt && bad "a table of a run without a sweep" || grep -q -- '--latex needs a sweep' err.txt && ok || bad "report run --latex: $(cat err.txt)"
# No output into a run's folder, where reproduce would report it as an unknown file.
mkdir -p link && ln -s "$PWD/run" link/run
for to in '--svg run' '--svg run/' '--latex run/tables' '--png run/png' '-o run/page.html' '--svg ./run/rollouts/x' "--svg $PWD/run/new/deep" '--svg link/run/figures'; do
    got=0
    # shellcheck disable=SC2086
    "$TARE" report run $to > out.txt 2> err.txt || got=$?
    [ $got = 1 ] && grep -q 'folder of a run.*unknown file' err.txt && ok || bad "report run $to: status $got: $(cat err.txt)"
done
(cd run && "$TARE" report . --svg figures > /dev/null 2> "$WORK/err.txt") && bad "report . --svg figures in a run's folder" || { grep -q 'unknown file' err.txt && ok || bad "$(cat err.txt)"; }
"$TARE" -q report run --svg run/report-figures -o run/report-own.html 2> err.txt && "$TARE" -q reproduce run > out.txt 2>&1 && ok || bad "report-figures: $(cat err.txt out.txt)"
"$TARE" -q report run runs/s/grpo* -o several.html && grep -q 'class="key"' several.html && ok || bad "several runs in one report"
# A plugin given as a file appears in tables and folders by its name, not by its path.
cp "$(find "$(dirname "$TARE")" -name rloo.so | head -1)" third.so
sed -e 's/^name = s/name = files/' -e "s|^estimator.plugin = .*|estimator.plugin = grpo, $PWD/third.so|" -e '/^baseline/d' -e 's/^run.seed = .*/run.seed = 1/' -e '/^train.lr = 1e-3, /d' \
    -e 's/^steps = 4/steps = 2/' tiny.ini > files.ini
"$TARE" -q sweep files.ini > files.md 2> err.txt && grep -q '^| third.so |' files.md && [ -d runs/files/third_seed-1 ] && ok || bad "a plugin's file in a sweep: $(cat err.txt files.md)"
done_
