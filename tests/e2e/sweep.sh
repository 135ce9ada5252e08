#!/usr/bin/env bash
# Checks tare sweep: a killed sweep repeats no finished run and gives the same table; failed cells
# are reported, and retried on request.
. "$SOURCE/tests/e2e/common.inc"
tiny_config
sed -i 's/^out = base/out = base-${run.seed}/' sft.ini
sed 's/^path = base/path = base-${run.seed}/; s/^samples = 1/samples = 1\nafter = true/; s/^steps = 12/steps = 40/' tiny.ini > one.ini
cat >> one.ini <<'INI'
[sweep]
name = one
baseline = estimator.plugin=grpo
run.seed = 1..2
estimator.plugin = grpo, bv_blend
estimator.bv_blend.temperature = 0.1, 0.3
INI
sed 's/^name = one/name = two/' one.ini > two.ini

# The plan.
"$TARE" sweep one.ini --dry-run > cells.txt
grep -q '^6 cells' cells.txt && ok || bad "the grid does not have 6 cells: $(tail -1 cells.txt)"
[ ! -e runs ] && ok || bad "--dry-run wrote files"

# An undisturbed sweep.
"$TARE" -q sweep one.ini > one.md 2> one.err && ok || bad "sweep: $(cat one.err)"
grep -q '| bv_blend, temperature 0.3 | 2 |' one.md && ok || bad "the table lacks a row: $(cat one.md)"
[ "$(ls -d runs/one/*_seed-* | wc -l)" = 6 ] && ok || bad "not 6 runs"
ls ./*.making > left.txt 2> /dev/null && bad "locks remain" || ok

# Each warm start was made once: the second sweep finds them.
stamp=$(stat -c %Y base-1 base-2)
MARK=sweep-$$ # the command lines of its runs have it
killed_at cell 2 env MARK=$MARK "$TARE" -q sweep two.ini sweep.concurrent=2 && ok || bad "not killed when two cells were done"
# A run that it had started continues alone, also one that has made no folder yet.
until_ '! grep -lzx "MARK=$MARK" /proc/[0-9]*/environ > left.txt 2> /dev/null' || bad "a run does not end: $(cat left.txt)"
for run in runs/two/*_seed-*; do
    if grep -q '"step":40' "$run/metrics.jsonl" 2> /dev/null; then cksum "$run/manifest.json"; fi
done > finished.txt
n=$(wc -l < finished.txt)
[ "$n" -ge 1 ] && [ "$n" -lt 6 ] && ok || bad "$n of 6 runs had finished at the kill: this does not test continuing"
"$TARE" -q sweep two.ini > two.md 2> two.err && ok || bad "the resumed sweep: $(cat two.err)"
cksum $(awk '{print $3}' finished.txt) > again.txt
cmp -s finished.txt again.txt && ok || bad "a finished run was run again (a resumed run changes its manifest)"
sed 's/^### two:/### one:/' two.md > renamed.md
cmp -s one.md renamed.md && ok || bad "the table differs after the kill: $(diff one.md renamed.md)"
[ "$stamp" = "$(stat -c %Y base-1 base-2)" ] && ok || bad "a warm start was made again"

# A third time: nothing is left to do.
"$TARE" sweep two.ini > two.md 2> two.err
grep -q '6 cells, 6 done, 0 to run' two.err && ok || bad "finished cells are not recognised: $(cat two.err)"

# Other tables.
for option in --dry-run ''; do
    # shellcheck disable=SC2086 # an empty option is not an argument
    "$TARE" sweep two.ini sweep.name=other sweep.baseline=estimator.plugin=gropo $option > refused.txt 2>&1 && bad "a baseline without a cell was accepted"
    grep -q "baseline 'estimator.plugin=gropo': no row" refused.txt || { bad "a baseline without a cell: wrong message"; cat refused.txt; }
done
"$TARE" sweep two.ini --table --metric reward/maen > refused.txt 2>&1 && bad "a metric that no run has was accepted"
grep -q 'unknown metric reward/maen; .* has: .*reward/mean' refused.txt || { bad "a metric that no run has: wrong message"; cat refused.txt; }
"$TARE" sweep two.ini --table --csv --metric reward/mean:tail --metric eval/reward > two.csv
[ "$(grep -c '^variant,' two.csv)" = 2 ] && grep -q 'bv_blend,0.3,reward/mean:tail,2,2,' two.csv && ok || bad "CSV: $(cat two.csv)"

# Settings that would be dropped, run twice, or found invalid at the end are refused before the
# first run, and leave no folder.
refused() { # MESSAGE LINES [argument ...]: lines of [sweep]
    local message=$1
    { sed '/^\[sweep\]/,$d' one.ini; printf '[sweep]\nname = refused\n%b\n' "$2"; } > refused.ini
    shift 2
    local status=0
    "$TARE" sweep refused.ini "$@" > refused.txt 2>&1 || status=$?
    [ $status = 3 ] && grep -q -- "$message" refused.txt && [ ! -e runs/refused ] && ok || bad "$message: status $status, $(cat refused.txt)"
}
refused_dry() { # the same without a run
    refused "$@"
    refused "$@" --dry-run
    refused "$@" --dry-run --slurm
}
mkdir folder
refused 'refused.ini:[0-9]*: the axis estimator.bv_blnd.gamma changes nothing: no cell runs' 'estimator.bv_blnd.gamma = 0.1, 0.9'
refused 'estimator.bv_blend.gama = 0.1): .*did you mean gamma' 'estimator.bv_blend.gama = 0.1, 0.9'
refused_dry 'verifier.math.timout = 1, .*unknown key' 'verifier.math.timout = 1, 2\nverifier.plugins = math | exact'
refused_dry 'no verifier named .mth.' 'verifier.plugins = exact | mth'
refused "no estimator named 'GRPO'" 'estimator.plugin = bv_blend, GRPO'
refused "no estimator named 'GRPO'" 'train.lr = 1e-3, 2e-3' estimator.plugin=GRPO
refused 'train.lr has 1e-3 twice' 'train.lr = 1e-3, 0.001'
refused 'train.lr=1e-4 has no effect: the axis train.lr of \[sweep\] (refused.ini:[0-9]*) decides; sweep.train.lr=1e-4' 'train.lr = 1e-3, 2e-3' train.lr=1e-4
refused 'run.dir=x has no effect: the sweep sets run.dir' 'train.lr = 1e-3, 2e-3' run.dir=x
refused 'sweep.metric = eval/rewrd: no run of this sweep records it; did you mean eval/reward' 'run.seed = 1, 2\nmetric = eval/rewrd'
refused 'sweep.metric: .*:tial.*allowed after the colon' 'run.seed = 1, 2\nmetric = eval/reward:tial'
refused '--metric = reward/maen: .*reward/mean' 'run.seed = 1, 2' --metric reward/maen
refused_dry 'cell train-no.jsonl (data.train = no.jsonl): .*No such file' 'data.train = builtin:arithmetic/train?rows=500, no.jsonl'
refused 'cell train-folder .*folder' 'data.train = builtin:arithmetic/train?rows=500, folder'
refused_dry 'model.path = nosuch does not exist' 'model.path = base-1, nosuch' model.warm_start=
refused 'model.reference = nosuch does not exist' 'model.reference = base-1, nosuch' loss.kl_coef=0.1
"$TARE" -q sweep one.ini sweep.name=narrow sweep.estimator.plugin=grpo sweep.estimator.bv_blend.temperature= --dry-run > cells.txt 2>&1 && grep -q '^2 cells' cells.txt && ok || bad "a disabled axis: $(cat cells.txt)"
# A sweep accepts every metric of a run.
for metric in $(grep -oh '"[^" ]*":' runs/one/*_seed-1/metrics.jsonl | tr -d '":' | sort -u); do
    [ "$metric" = step ] || "$TARE" -q sweep one.ini --dry-run "sweep.metric=$metric" > out.txt 2>&1 || bad "the metric $metric of a run is refused: $(cat out.txt)"
done

# A plugin's own metric is looked for as soon as a run has made a step. A missing one is reported
# with the existing names; an existing one is not.
for metric in estimator/promts estimator/prompts:tail; do
    sed "s/^name = one/name = own-${metric##*/}/; s/^estimator.plugin = .*/estimator.plugin = spo/; /^estimator.bv_blend/d; s/^baseline = .*/metric = $(echo $metric | sed 's|/|\\/|')/; s/^steps = 40/steps = 3/; s/^run.seed = .*/run.seed = 1/" one.ini > own.ini
    "$TARE" sweep own.ini > out.txt 2> err.txt || true
    if [ $metric = estimator/promts ]; then
        [ "$(grep -c 'warning: sweep.metric = estimator/promts: runs/own-promts/.* has made [123] steps\{0,1\} without recording it; did you mean estimator/prompts? it records .*estimator/prompts' err.txt)" = 1 ] && ok ||
            bad "a misspelt metric of a plugin: $(cat err.txt)"
    else
        grep -q 'without recording it' err.txt && bad "a metric that is recorded: $(cat err.txt)" || ok
    fi
done

# A plugin that was built again: the table would mix results of two builds, which is reported before
# the runs and with the table.
"$TARE" -q plugin new estimator mine > plugin.txt 2>&1 && make -s -C mine > plugin.txt 2>&1 || bad "a user's plugin: $(cat plugin.txt)"
sed 's/^name = one/name = four/; s/^estimator.plugin = .*/estimator.plugin = grpo, mine\/mine.so/; /^estimator.bv_blend/d; s/^steps = 40/steps = 2/; s/^run.seed = .*/run.seed = 1/' one.ini > four.ini
"$TARE" sweep four.ini > out.txt 2> err.txt && ! grep -q 'of this sweep started with' err.txt && ok || bad "a sweep with a user's plugin: $(cat err.txt)"
sed -i 's/"0.1.0"/"0.1.1"/' mine/mine.c && make -s -C mine > plugin.txt 2>&1 || bad "built again: $(cat plugin.txt)"
for option in '' --table; do
    # shellcheck disable=SC2086 # an empty option is not an argument
    "$TARE" sweep four.ini $option > out.txt 2> err.txt
    [ "$(grep -c 'mine/mine.so differs from the file that 1 run of this sweep started with (runs/four/mine_seed-1)' err.txt)" = 1 ] && ok || bad "another build is not reported ($option): $(cat err.txt)"
done
rm -r runs/four/mine_seed-1
"$TARE" sweep four.ini > out.txt 2> err.txt && grep -q '2 cells, 1 done, 1 to run' err.txt && ! grep -q 'of this sweep started with' err.txt && ok || bad "a removed run is not made again: $(cat err.txt)"

# Another configuration in the same folders is refused, with the key.
"$TARE" sweep two.ini train.lr=1e-4 > out.txt 2> err.txt && bad "another configuration was accepted" || ok
grep -q 'lr' err.txt && ok || bad "the message does not name the key: $(cat err.txt)"

# Cells that fail.
sed 's/^name = one/name = bad/; s/^run.seed.*/rollout.max_prompt_tokens = 2, 32/; s/^estimator.plugin = .*/run.seed = 1/; /^estimator.bv_blend/d; /^baseline/d' one.ini > bad.ini
"$TARE" sweep bad.ini > out.txt 2> err.txt && bad "a failed cell does not fail the sweep" || ok
grep -q '1 of 2 cells failed' err.txt && grep -q 'tokens' err.txt && ok || bad "the reason is missing: $(cat err.txt)"
"$TARE" sweep bad.ini > out.txt 2> err.txt || true
grep -q '0 to run, some failed before' err.txt && ok || bad "a failed cell was run again without --retry: $(cat err.txt)"
"$TARE" sweep bad.ini --retry > out.txt 2> err.txt || true
grep -q '1 to run' err.txt && ok || bad "--retry does not retry: $(cat err.txt)"

# Slurm: the script, and one of its tasks.
"$TARE" sweep two.ini --slurm --dry-run 'sweep.slurm=--partition=p' > none.txt
grep -q '^#SBATCH --array=%' none.txt && ok || bad "finished cells are submitted again: $(cat none.txt)"
sed 's/^name = one/name = three/' one.ini > three.ini
"$TARE" sweep three.ini --slurm --dry-run 'sweep.slurm=--partition=p' > script.txt
grep -q '^#SBATCH --array=0-5%' script.txt && grep -q '^#SBATCH --partition=p' script.txt && bash -n script.txt && ok || bad "script: $(cat script.txt)"
"$TARE" -q sweep three.ini --cell 1 > out.txt 2> err.txt && ok || bad "--cell: $(cat err.txt)"
[ "$(ls -d runs/three/*_seed-* | wc -l)" = 1 ] && ok || bad "--cell did not run exactly one cell"
done_
