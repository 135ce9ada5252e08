#!/usr/bin/env bash
# Checks tare eval: the table is the same after interruptions and for any batch size and number of
# threads; a different evaluation in the same folder is refused; multiple choice; difficulty
# buckets. Checks tare data check: the rows it drops, with reasons.
. "$(dirname "$0")/common.inc"
export TARE_PLUGIN_PATH
tiny_config
"$TARE" sft sft.ini 2> /dev/null || { bad "the model was not made"; done_; }
N=120
SETTINGS="tiny.ini data.eval=builtin:arithmetic/heldout?rows=$N eval.samples=4 eval.name=heldout"
eval_() { "$TARE" eval $SETTINGS "$@" 2>> log.txt; }

eval_ eval.out=whole run.threads=1 rollout.batch=0 > whole.md || { bad "the evaluation failed"; cat log.txt; done_; }
grep -q 'pass@1 = avg@4' whole.md && grep -q 'pass@4' whole.md && ok || bad "no pass@k in the table"
grep -q '^| subject |' whole.md && ok || bad "no table by subject"
rows=$(wc -l < whole/questions.jsonl)
[ "$(wc -l < whole/samples.jsonl)" = $((4 * rows)) ] && ok || bad "not 4 samples per question"

# Samples do not depend on the batch size, the threads or the chunks.
eval_ eval.out=other run.threads=2 rollout.batch=5 eval.chunk=7 > other.md
cmp -s whole/samples.jsonl other/samples.jsonl && ok || bad "the samples depend on the batch size, the threads or the chunks"
cmp -s whole.md other.md && cmp -s whole/results.json other/results.json && ok || bad "the table depends on the batch size, the threads or the chunks"

# Killed and started again.
for questions in 1 50 $((rows - 1)); do
    killed_at questions $questions "$TARE" eval $SETTINGS eval.out=broken eval.chunk=1 && ok || bad "not killed after $questions questions"
    [ "$(wc -l < broken/samples.jsonl)" = $((4 * questions)) ] && ok || bad "$(wc -l < broken/samples.jsonl) samples after $questions questions"
done
printf '{"id":"half' >> broken/samples.jsonl
eval_ eval.out=broken eval.chunk=1 > broken.md || bad "the evaluation did not continue"
cmp -s whole/samples.jsonl broken/samples.jsonl && ok || bad "samples differ after kills"
cmp -s whole.md broken.md && cmp -s whole/results.json broken/results.json && ok || bad "the table differs after kills"
# A crash of the machine that damaged the samples: cut within a line, a page of zeros in the middle,
# zeros from a page to the end.
for torn in cut page end; do
    rm -rf torn
    killed_at questions 100 "$TARE" eval $SETTINGS eval.out=torn eval.chunk=1 && ok || bad "$torn: not killed after 100 questions"
    size=$(wc -c < torn/samples.jsonl)
    [ "$size" -gt 16384 ] && ok || bad "$torn: only $size bytes of samples"
    case $torn in
    cut)
        truncate -s $((size / 2)) torn/samples.jsonl
        [ -n "$(tail -c 1 torn/samples.jsonl)" ] || truncate -s $((size / 2 - 1)) torn/samples.jsonl
        ;;
    page) dd if=/dev/zero of=torn/samples.jsonl bs=4096 seek=2 count=1 conv=notrunc 2> /dev/null ;;
    end) truncate -s 8192 torn/samples.jsonl && truncate -s "$size" torn/samples.jsonl ;;
    esac
    eval_ eval.out=torn > torn.md && ok || bad "$torn: the evaluation did not continue: $(tail -1 log.txt)"
    cmp -s whole/samples.jsonl torn/samples.jsonl && ok || bad "$torn: samples differ"
    cmp -s whole.md torn.md && cmp -s whole/results.json torn/results.json && cmp -s whole/questions.jsonl torn/questions.jsonl && ok || bad "$torn: the table differs"
done
# A second call samples nothing and gives the same table.
eval_ eval.out=whole > again.md && cmp -s whole.md again.md && ok || bad "a second call gives another table"

# A folder holds one evaluation.
! eval_ eval.out=whole eval.temperature=1 > x.md && grep -q 'eval.temperature was 0.6' log.txt && ok || bad "another temperature was accepted"
! eval_ eval.out=whole run.seed=9 > x.md && ok || bad "another seed was accepted"

# Difficulty by the pass rates of the first evaluation; standard and complex by a rule.
printf '# long numbers\nlength(question) >= 5\n' > rules.txt
eval_ eval.out=later eval.difficulty=whole/questions.jsonl eval.complex_rules=rules.txt run.seed=3 > later.md || { bad "the evaluation by buckets failed"; tail -3 log.txt; }
grep -q '^| difficulty |' later.md && grep -qE '^\| (standard|complex) (Easy|Medium|Hard|Hardest) \|' later.md && ok || bad "no table of difficulties"
! eval_ eval.out=later2 eval.complex_rules=rules.txt > x.md && ok || bad "rules without an estimate were accepted"

# Multiple choice: the options are permuted by the seed, and the answer's letter follows.
cat > mc.jsonl <<'ROWS'
{"id":"m1","question":"1+1=","choices":["2","3","4","5"],"answer":"A"}
{"id":"m2","question":"2+1=","choices":["2","3","4","5"],"answer":"B"}
{"id":"m3","question":"2+2=","choices":["2","3","4","5"],"answer":"C"}
ROWS
eval_ eval.out=mc data.eval=mc.jsonl verifier.plugins=choice > mc.md || { bad "multiple choice failed"; tail -3 log.txt; }
if has_python; then
    checked "the answer's letter does not follow the options" <<'PY'
import json
right = {"m1": "A", "m2": "B", "m3": "C"}
orders = set()
for line in open("mc/samples.jsonl"):
    s = json.loads(line)
    orders.add(s["choice_order"])
    assert sorted(s["choice_order"]) == list("ABCD")
    assert s["choice_order"]["ABCD".index(s["answer"])] == right[s["id"]]
assert len(orders) > 1
PY
fi
eval_ eval.out=mc2 data.eval=mc.jsonl verifier.plugins=choice data.permute_seed=5 > /dev/null
cmp -s mc/samples.jsonl mc2/samples.jsonl && bad "the permutation does not depend on the seed" || ok
# Options that speak of others keep their places, and data check names the rows.
cat > places.jsonl <<'ROWS'
{"id":"p1","question":"1+1=","choices":["2","3","Both A and B","5"],"answer":"A"}
{"id":"p2","question":"2+1=","choices":["2","3","4","None of the above"],"answer":"B"}
{"id":"p3","question":"2+2=","choices":["2","3","4","5"],"answer":"C"}
ROWS
"$TARE" data check places.jsonl verifier=choice > places.out 2> places.err && ok || bad "data check of options: $(cat places.err)"
[ ! -s places.out ] && grep -q 'places.jsonl:1: .*letters' places.err && grep -q 'places.jsonl:2: .*stays last' places.err && ! grep -q 'jsonl:3' places.err && ok ||
    bad "rows with options that keep their places: $(cat places.err)"

# tare data check
cat > train.jsonl <<'ROWS'
{"id":"a","question":"What is one plus one?","answer":"2"}
{"id":"b","question":"What is one plus one?","answer":"2"}
{"id":"c","question":"What is two plus two?","answer":"no number here"}
{"id":"d","question":"Say,  THIS is in the evaluation file?","answer":"7"}
{"id":"e","question":"What is a long trace?","answer":"7","completion":"one two three four five six seven eight nine ten"}
{"id":"f","question":"What is good?","answer":"8"}
ROWS
echo '{"id":"t","question":"Say: this is in the evaluation file","answer":"7"}' > test.jsonl
! "$TARE" data check train.jsonl verifier=number model=base max_tokens=20 against=test.jsonl > report.jsonl 2>> log.txt && ok || bad "bad rows, exit status 0"
[ "$(wc -l < report.jsonl)" = 4 ] && ok || { bad "not exactly the 4 bad rows"; cat report.jsonl; }
for i in 1 2 3; do printf '{"id":"%s","question":"What is %s?","answer":"none"}\n' $i $i; done > none.jsonl
"$TARE" data check none.jsonl verifier=number > /dev/null 2> err.txt && bad "bad rows, exit status 0" || ok
for n in 1 2 3 4; do echo '{"question":"1+1=","answer":"2"}'; done > again.jsonl
echo '{"question":"1+2=","answer":"3"}' >> again.jsonl
"$TARE" data check again.jsonl again.jsonl > again.txt 2> again.err || true
grep '^tare: 8 rows: duplicate question$' again.err > found.txt && ok || bad "duplicates are not counted together: $(cat again.err)"
grep '"duplicate question, first in line 1"' again.txt > found.txt && ok || bad "a duplicate's line has no place: $(cat again.txt)"
grep -q '^tare: 3 rows: the verifier number cannot read the answer' err.txt && ok || bad "the reasons are not counted: $(cat err.txt)"
for id in b c d e; do grep -q "\"id\":\"$id\"" report.jsonl && ok || bad "row $id was not dropped"; done
"$TARE" data check train.jsonl verifier=number model=base max_tokens=20 against=test.jsonl write=clean.jsonl > /dev/null 2>> log.txt && ok || bad "write= failed"
[ "$(wc -l < clean.jsonl)" = 2 ] && [ "$(head -1 clean.jsonl)" = "$(head -1 train.jsonl)" ] && ok || bad "the rows that are kept differ from those of the file"
# Verifiers that compare with no answer: rows without one are valid, and each row that they cannot
# read is reported with its place.
cat > instructed.jsonl <<'ROWS'
{"prompt":"a","instruction_id_list":["punctuation:no_comma"],"kwargs":[{}]}
{"prompt":"b","answer":"","instruction_id_list":["no:such"],"kwargs":[{}]}
{"prompt":"c","instruction_id_list":["length_constraints:number_words"],"kwargs":[{}]}
{"prompt":"d","answer":"x, y","instruction_id_list":["punctuation:no_comma"],"kwargs":[{}]}
{"prompt":"e"}
ROWS
status=0
printf 'no row\n' > none.jsonl
cp clean.jsonl before.jsonl
"$TARE" data check none.jsonl write=clean.jsonl > /dev/null 2> err.txt && bad "write= without a valid row was accepted" || { cmp -s clean.jsonl before.jsonl && grep -q 'not written, because no row is valid' err.txt && ok || bad "write= without a valid row: $(cat err.txt)"; }
ln clean.jsonl linked.jsonl && ln -s ../"$(basename "$PWD")"/clean.jsonl symbolic.jsonl
for name in clean.jsonl ./clean.jsonl linked.jsonl symbolic.jsonl; do # the source under any name
    status=0
    "$TARE" data check clean.jsonl,none.jsonl write=$name > /dev/null 2> err.txt || status=$?
    [ $status = 3 ] && cmp -s clean.jsonl before.jsonl && grep -q "write=$name is the input file" err.txt && ok || bad "write= to the input file: status $status, $(cat err.txt)"
done
rm linked.jsonl symbolic.jsonl
mkfifo pipe
timeout 300 "$TARE" data check train.jsonl write=pipe > /dev/null 2> err.txt && bad "write= to a pipe was accepted" || { grep -q 'write: pipe is a pipe; name a regular file' err.txt && ok || bad "write= to a pipe: $(cat err.txt)"; }
"$TARE" data check instructed.jsonl verifier=ifeval > report.jsonl 2>> log.txt || status=$?
[ $status = 1 ] && [ "$(grep -o '"where":"[^"]*"' report.jsonl | tr '\n' ' ')" = '"where":"instructed.jsonl:2" "where":"instructed.jsonl:3" "where":"instructed.jsonl:5" ' ] &&
    ok || { bad "status $status; not exactly the rows with unreadable instructions"; cat report.jsonl; }
"$TARE" data check instructed.jsonl verifier=ifeval write=clean.jsonl > /dev/null 2>> log.txt && [ "$(wc -l < clean.jsonl)" = 2 ] && ok || bad "write= with ifeval"
for verifier in ifeval format length repetition json,compare=none regex,pattern=x python,file=none.py; do
    [ $verifier != python,file=none.py ] || { has_python && echo 'def reward(prompts, completions, **rest): return [0.0] * len(prompts)' > none.py || continue; }
    rows=clean.jsonl
    [ $verifier != python,file=none.py ] || { rows=first.jsonl && head -1 clean.jsonl > first.jsonl; }
    "$TARE" data check $rows verifier=$verifier > report.jsonl 2>> log.txt && ok || { bad "$verifier refuses rows without an answer"; cat report.jsonl; }
done
for verifier in math number exact choice json,compare=answer regex,pattern=x,group=0; do
    ! "$TARE" data check clean.jsonl verifier=$verifier > report.jsonl 2>> log.txt && grep -q '"where":"clean.jsonl:1".*is missing or empty, and the verifier compares' report.jsonl && ok ||
        { bad "$verifier accepts a row without an answer"; cat report.jsonl; }
done
! "$TARE" data check clean.jsonl > report.jsonl 2>> log.txt && grep -q 'is missing or empty; verifier=NAME' report.jsonl && ok || bad "a row without an answer and without verifier="

# The evaluation within a training run equals `tare eval` of its checkpoint: the samples are the
# same, also where completions run past end-of-sequence tokens.
same="tiny.ini train.steps=1 data.eval=builtin:arithmetic/heldout?rows=6 eval.samples=2 rollout.ignore_eos=true"
"$TARE" train $same run.dir=trained eval.after=true 2>> log.txt > /dev/null || bad "the run with an evaluation failed"
"$TARE" eval $same model.path=trained/checkpoints/step-000001 eval.out=trained-eval 2>> log.txt > /dev/null || bad "the evaluation of its checkpoint failed"
# The folder of a run instead of a configuration: the answers are written into that folder, also
# when it is a copy whose config.ini names another one.
cp -r trained copied && before=$(find trained -type f | sort)
"$TARE" eval copied data.eval="builtin:arithmetic/heldout?rows=2" 2>> log.txt > /dev/null || bad "the evaluation of a copied run failed"
[ -d copied/eval ] && [ "$before" = "$(find trained -type f | sort)" ] && ok || bad "the evaluation of a copy wrote into the original run"
checked "a run's evaluation differs from tare eval" <<'PY'
import json
run = json.loads(open("trained/metrics.jsonl").read().splitlines()[-1])
samples = [json.loads(line) for line in open("trained-eval/samples.jsonl")]
assert len(samples) == 6 * 8 * 2
assert abs(run["eval/reward"] - sum(s["reward"] for s in samples) / len(samples)) < 1e-12, run["eval/reward"]
assert run["eval/response_length"] == 6 and all(s["length"] == 6 for s in samples)
PY
done_
