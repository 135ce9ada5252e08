#!/usr/bin/env bash
# Checks tare audit: unchanged dumps of TRL's and verl's own writers and of a run of tare agree. For
# each planted error the first disagreement has the right field and row. Also tested: field maps,
# sums of rewards, conventions, and refused arguments.
. "$(dirname "$0")/common.inc"
DUMPS=$SOURCE/tests/data/dumps
EXACT='as=trl verifier.plugins=exact'
audit() { # STATUS arguments
    local want=$1 got=0
    shift
    "$TARE" audit "$@" > out.txt 2> err.txt || got=$?
    [ $got = "$want" ] && ok || { bad "audit $*: status $got, expected $want"; cat out.txt err.txt; }
}
says() { grep -q -- "$1" out.txt && ok || { bad "missing in the output: $1"; cat out.txt; }; }
last() { [ "$(tail -n 1 out.txt)" = "$1" ] && ok || { bad "not the last line: $1"; cat out.txt; }; }
errs() { grep -q -- "$1" err.txt && ok || { bad "missing in the error: $1"; cat err.txt; }; }
again() { rm -rf copy; cp -r "$DUMPS/$1" copy; chmod -R u+w copy; }

# ---------------------------------------------------------------- unchanged dumps
audit 0 "$DUMPS/trl" $EXACT
says '^trl: 2 files, 2 steps, 48 rows in 12 groups of 4$'
last 'no row disagrees'
says '^reward  *0 of 48 '
says '^advantage  *0 of 48 '
says '^exact disputes 0 % of 48 rewards$'
audit 0 "$DUMPS/trl2" as=trl 'verifier.plugins=exact regex as digits:0.5' 'verifier.digits.pattern=[0-9]+' verifier.digits.whole=true \
    --field reward=exact+0.5*digits
says '^reward  *0 of 48 '
says '^advantage  *0 of 48 '
audit 0 "$DUMPS/verl" as=verl verifier.plugins=exact data.train="$DUMPS/rows.jsonl"
says '^verl: 2 files, 2 steps, 48 rows in 12 groups of 4$'
says '^not checked: advantage: the dump has no advantages; set --field advantage=COLUMN'
says '^answer  *0 of 48 '
audit 2 "$DUMPS/trl2" $EXACT
errs 'exact, digits; name the reward with --field reward=COLUMN'

# The verifier math accepts a number in any notation; the output has the share of rewards that
# differ.
audit 1 "$DUMPS/trl" as=trl verifier.plugins=math
says '^math disputes [0-9.]* % of 48 rewards$'

# ---------------------------------------------------------------- planted errors, one in each copy
# planted DUMP sed-program FILE ROW FIELD [arguments]: checks that the first disagreement is in that
# row and field
planted() {
    local dump=$1 edit=$2 file=$3 row=$4 field=$5
    shift 5
    again "$dump"
    sed -i "$edit" "copy/$file"
    cmp -s "copy/$file" "$DUMPS/$dump/$file" && { bad "the sed program changed nothing: $edit"; return; }
    audit 1 copy "$@"
    grep -q "^first disagreement: copy/$file:$row, step [0-9]*, group [0-9]*, rollout [0-9]*: $field: " out.txt && ok || { bad "$dump: $edit: the error in row $row, $field was not found"; cat out.txt; }
}
T=completions_00001.jsonl
planted trl '3s/"exact": 0.0/"exact": 1.0/' $T 1 advantage $EXACT
says "$T:3, .* reward: 1, expected 0; the verifier reads \"-83\" and the answer is \"83\": wrong"
says '^reward  *1 of 48 '
planted trl '4s/"advantage": /"advantage": -/' $T 4 advantage $EXACT
says '^advantage  *1 of 48 '
# Divided by n instead of n - 1
planted trl '17,20s/"advantage": \(-\{0,1\}\)0.86[0-9]*/"advantage": \11.0/' $T 17 advantage $EXACT
says '^advantage  *4 of 48 '
# Without the division
planted trl '1,4s/"advantage": -0.49[0-9]*/"advantage": -0.25/; 4s/"advantage": 1.49[0-9]*/"advantage": 0.75/' $T 1 advantage $EXACT
# A group with equal rewards
planted trl '5s/"advantage": 0.0/"advantage": 0.3/' $T 5 advantage $EXACT
planted trl '6s/"advantage": [-0-9.]*/"advantage": "0.3"/' $T 6 advantage $EXACT                           # a text
planted trl '7s/"step": 1/"step": "one"/' $T 7 step $EXACT
planted trl '7s/"step": 1/"step": 1.5/' $T 7 step $EXACT
planted trl '10d' $T 9 group $EXACT
says 'group: 3 rollouts of this prompt, expected 4; incomplete group: the rows of a prompt must be consecutive'
planted trl '9{h;d};16{G}' $T 9 group $EXACT # a row in the place of another group's
planted trl '18s/"answer": "66"/"answer": "67"/' $T 18 answer $EXACT
says "$T:18, .* answer: 67, expected 66; differs from the rest of its group"
planted trl '12s/, "exact": 1.0//' $T 12 reward $EXACT
planted trl '22s/"step": 1/"step": 2/' $T 22 step $EXACT
planted trl '12s/"completion": "77"/"completion": "78"/' $T 12 reward $EXACT                                # the reward of another completion
planted trl '13s/, "advantage": 0.0//' $T 13 advantage $EXACT
planted trl2 '5s/"advantage": [-0-9.]*/"advantage": -0.49990001/; ' completions_00002.jsonl 5 advantage as=trl 'verifier.plugins=exact regex as digits:0.5' \
    'verifier.digits.pattern=[0-9]+' verifier.digits.whole=true --field reward=exact+0.5*digits # as if the second reward function were ignored
V='as=verl verifier.plugins=exact'
planted verl '2s/"score": 0.0/"score": 1.0/' 1.jsonl 2 reward $V
planted verl '4,22s/"input": "60+9=", \(.*\), "gts": "69"/"input": "60+9=", \1, "gts": "60"/' 1.jsonl 4 answer $V data.train="$DUMPS/rows.jsonl"
says 'answer: 60, expected 69; differs from the answer in data.train'
planted verl '7s/"input": "47/"input": "48/' 1.jsonl 1 group $V
planted verl '14s/"output": "8"/"output": "9"/' 1.jsonl 14 reward $V
planted verl '20d' 1.jsonl 11 group $V
planted verl '5s/"step": 1/"step": 7/' 1.jsonl 5 step $V
planted verl '3s/"gts": "71"/"gts": "17"/' 1.jsonl 3 answer $V

# The same rewards under another convention, which gives other advantages.
audit 1 "$DUMPS/trl" as=verl verifier.plugins=exact
says '^first disagreement: .*:1, .* advantage: -0.49[0-9]*, expected -0.4999990'
audit 1 "$DUMPS/trl" as=trl verifier.plugins=exact estimator.plugin=dr_grpo
says 'advantages by dr_grpo as trl'

# ---------------------------------------------------------------- other formats
sed 's/"prompt": \("[^"]*"\), "completion": \("[^"]*"\)/"meta": {"q": [{"role": "user", "content": \1}]}, "text": \2, "tokens": 3, "factor": 0.013888888888888888/' \
    "$DUMPS/trl/$T" > own.jsonl
audit 0 own.jsonl $EXACT --field prompt=meta.q.-1.content --field completion=text --field reward=exact --field answer=answer --field advantage=advantage \
    --field length=tokens --field loss_scale=factor
says '^own: 1 file, 1 step, 24 rows in 6 groups of 4$'
says '^loss_scale  *0 of 24 '
says '^share of a rollout in its step'
sed -i '6s/"factor": 0.0138/"factor": 0.0139/' own.jsonl
audit 1 own.jsonl $EXACT --field prompt=meta.q.-1.content --field completion=text --field reward=exact --field answer=answer --field advantage=advantage \
    --field length=tokens --field loss_scale=factor
says '^first disagreement: own.jsonl:6, .*loss_scale: 0.0139'
printf '%s\n' '{"group_index":0,"prompt":"1+1=","response":"2","label":"2","reward":1,"response_length":1}' \
    '{"group_index":0,"prompt":"1+1=","response":"3","label":"2","reward":-1,"response_length":1}' > slime.jsonl
audit 0 slime.jsonl as=slime verifier.plugins=exact --rewards -1,1
says '^slime: '
printf '%s\n' '{"input":"1+1=","output":"2","label":2,"reward":0}' > openrlhf.jsonl
audit 1 openrlhf.jsonl as=openrlhf
says '^openrlhf: '
says '^openrlhf: 1 file, 1 step, 1 row in 1 group of 1$'
says '^recomputed: rewards by math$'
says '^math disputes 100 % of 1 reward$'
audit 1 openrlhf.jsonl as=openrlhf --json
checked "invalid JSON output" << 'PY'
import json
r = json.load(open("out.txt"))
assert not r["agrees"] and r["first"] == r["disagreements"][0] and r["first"]["row"] == 1 and r["first"]["field"] == "reward", r
assert r["fields"]["reward"] == {"checked": 1, "disagree": 1, "why": None} and r["fields"]["advantage"]["why"], r["fields"]
PY

# ---------------------------------------------------------------- a run of tare, with the
# estimator's states
tiny_config
easy_judge
"$TARE" -q train tiny.ini log.rollouts=true log.progress=none train.steps=4 > /dev/null 2> err.txt || bad "train: $(cat err.txt)"
audit 0 run
says '^tare: 4 files, 4 steps, 128 rows in 32 groups of 4$'
says '^advantage  *0 of 128 '
says '^reward  *0 of 128 '
says '^weight  *0 of 128 '
says '^answer  *0 of 128 '
cp run/rollouts/step-000002.jsonl kept.jsonl
sed -i '5s/"answer":"/"answer":"9/' run/rollouts/step-000002.jsonl
audit 1 run
says '^first disagreement: run/rollouts/step-000002.jsonl:5, step 2, group 1, rollout 0: answer: 9'
cp kept.jsonl run/rollouts/step-000002.jsonl
# records of a build that did not write answers
cp -r run older
sed -i 's/"answer":"[^"]*",//' older/rollouts/*.jsonl
audit 0 older
says '^not checked: answer: the dump has no answers$'
"$TARE" diff run older > out.txt 2> err.txt && ok || bad "diff: records without answers: $(cat out.txt err.txt)"
# rows with the same question and other answers, and options in another order
for i in 1 2 3 4; do
    echo "{\"id\":\"$i\",\"subject\":\"s\",\"question\":\"Which?\",\"answer\":\"B\",\"choices\":[\"one\",\"two\",\"three\",\"$i\"]}"
    echo "{\"id\":\"n$i\",\"subject\":\"s\",\"question\":\"1+$((i % 2))=\",\"answer\":\"$i\"}"
done > options.jsonl
"$TARE" -q train tiny.ini run.dir=options data.train=options.jsonl data.eval= data.permute_choices=true log.progress=none train.steps=2 > /dev/null 2> err.txt ||
    bad "train: $(cat err.txt)"
[ "$(grep -o '"question":"Which?","answer":"."' options/rollouts/step-000001.jsonl | sort -u | wc -l)" -gt 1 ] && ok || bad "the options are in one order"
audit 0 options
says '^answer  *0 of 64 '
sed -i '7s/"advantage":[^,]*/"advantage":9/' run/rollouts/step-000003.jsonl
audit 1 run
says '^first disagreement: run/rollouts/step-000003.jsonl:7, step 3, group 1, rollout 2: advantage: 9, expected '

: > run/estimator/step-000002.state
audit 2 run
errs 'step-000002.state: cut short: 0 bytes; a saved state has at least'
again trl
sed -i '1s/^/\xEF\xBB\xBF/' copy/$T # the byte order mark that some editors write
audit 0 copy $EXACT
sed -i 's/"exact": 0.0/"exact": null/' copy/$T
audit 2 copy $EXACT
errs 'no column of this row is a number, and some are null; name the reward with --field reward=COLUMN'
audit 2 "$DUMPS/trl" verifier.plugins=exact
errs 'completions_00001.jsonl: the rows have advantages of an unknown estimator; set as=trl .*the columns match trl.*or estimator.plugin=NAME (bv_blend was tried: .*no clusters'

# ---------------------------------------------------------------- fields that could not be checked
mkdir lacks
sed 's/"step": [0-9]*, //; s/"answer"/"solution"/; s/, "advantage": [-0-9.]*//' "$DUMPS/trl/$T" > lacks/rows.jsonl
grep -q solution lacks/rows.jsonl && ok || bad "no column was renamed"
audit 2 lacks $EXACT
says '^recomputed: nothing$'
says '^not checked: reward: the dump has no answers; set data.train=FILE or --field answer=COLUMN; unused columns: solution$'
says '^not checked: advantage: the dump has no advantages; set --field advantage=COLUMN; unused columns: solution$'
says '^not checked: step: the dump has no steps; set --field step=COLUMN; unused columns: solution$'
last 'nothing could be checked: neither rewards nor advantages'
audit 2 lacks $EXACT --json
errs 'nothing could be checked: neither rewards nor advantages'
audit 0 lacks $EXACT --field answer=solution
says '^recomputed: rewards by exact$'
says '^reward  *0 of 24 '
last 'no row disagrees'
sed 's/"answer"/"solution"/' "$DUMPS/trl/$T" > lacks/rows.jsonl
audit 0 lacks $EXACT
says '^recomputed: advantages by grpo as trl$'
says '^not checked: reward: the dump has no answers'
says "^not checked: step: no file name has the number of a step"
last 'no row disagrees'

# ---------------------------------------------------------------- refused
audit 2
audit 2 nowhere.jsonl
errs 'nowhere.jsonl: No such file'
: > empty.jsonl
audit 2 empty.jsonl
errs 'empty.jsonl: must have at least one row'
mkdir none
audit 2 none
errs 'none: no .jsonl file in it'
mkfifo none/1.jsonl
audit 2 none
errs 'none: invalid file of rows: none/1.jsonl is a '
cp own.jsonl bad.jsonl; printf '{"input":NaN}\n' >> bad.jsonl
audit 2 bad.jsonl --field prompt=text --field completion=text --field reward=exact
errs 'bad.jsonl:25: not valid JSON'
: > x.parquet
audit 2 x.parquet
errs 'tools/to_jsonl.py x.parquet --rows -o x.jsonl'
audit 2 own.jsonl
errs 'no field map fits the columns (step, meta, text'
audit 2 "$DUMPS/trl" --format nothing
errs 'use tare, verl, slime, openrlhf or trl'
audit 2 "$DUMPS/trl" --field rewad=exact
errs 'NAME=COLUMN, where NAME is step, group'
audit 2 "$DUMPS/trl" --field reward=missing
errs 'completions_00001.jsonl:1: missing, the column of the reward, must be a number'
audit 2 "$DUMPS/trl" --field reward=x*exact
audit 2 "$DUMPS/trl" --rewards 1
audit 2 "$DUMPS/trl" --tolerance 2
audit 2 "$DUMPS/trl" estimator.plugin=grpoo
errs 'grpoo'
audit 2 "$DUMPS/trl" data.train=nowhere.jsonl
done_
