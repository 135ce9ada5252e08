#!/usr/bin/env bash
# Checks tools/to_jsonl.py: the formats of public data sets, and that tare reads its output.
. "$(dirname "$0")/common.inc"
command -v python3 > /dev/null || skip "python3 is not installed"
convert() { python3 "$SOURCE/tools/to_jsonl.py" "$@" 2>> log.txt; }
same() { # NAME FILE: compares it with standard input
    diff - "$2" > diff.txt && ok || { bad "$1"; cat diff.txt; }
}
cat > gsm.jsonl <<'ROWS'
{"question":"How many?","answer":"2 + 1,000\n#### 1,002"}
{"question":"No mark?","answer":"3"}
ROWS
convert gsm.jsonl -o out.jsonl --after '####' --prefix gsm- || bad "gsm"
same "the answer after a mark" out.jsonl <<'ROWS'
{"id": "gsm-0", "question": "How many?", "answer": "1002"}
ROWS
tail -3 log.txt > told.txt
same "the row left out, with its reason" told.txt <<'ROWS'
to_jsonl: gsm.jsonl: row 2: left out: no answer: no #### in answer: '3'
to_jsonl: 1 row left out: no answer: no #### in answer
to_jsonl: 2 rows read, 1 written, 1 left out
ROWS
# each kind of row that cannot be trained on, in two files; only the first 20 are named
printf '{"question":" ","answer":"1"}\n{"answer":"1"}\n{"question":3,"answer":"1"}\n{"question":"a?"}\n{"question":"a?","answer":" "}\n{"question":"a?","answer":"1"}\n' > kinds-1.jsonl
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo '{"question":"b?","answer":null}'; done > kinds-2.jsonl
python3 "$SOURCE/tools/to_jsonl.py" kinds-1.jsonl kinds-2.jsonl -o out.jsonl 2> told.txt || bad "kinds"
[ "$(grep -c ': row [0-9]*: left out: ' told.txt)" = 20 ] && grep -q '^to_jsonl: kinds-2.jsonl: row 15: left out: no answer: answer is missing or null$' told.txt && ok || bad "the rows named: $(cat told.txt)"
sed -n '/rows* left out:/p; $p' told.txt > counts.txt
same "the counts of each reason" counts.txt <<'ROWS'
to_jsonl: 1 row left out: no question: question is empty or blank
to_jsonl: 1 row left out: no question: question is missing or null
to_jsonl: 1 row left out: no question: question is not a text
to_jsonl: 21 rows left out: no answer: answer is missing or null
to_jsonl: 1 row left out: no answer: answer is empty
to_jsonl: 26 rows read, 1 written, 25 left out
ROWS
convert gsm.jsonl -o x.jsonl --after '####' --strict && bad "--strict accepted an invalid row" || ok
cat > math.json <<'ROWS'
[{"problem":"Half?","solution":"so \\boxed{1}, no: $\\boxed{\\frac{1}{2}}$.","level":"Level 3","type":"Algebra","uid":7}]
ROWS
convert math.json -o out.jsonl --question problem --answer solution --boxed --level level --subject type --id uid || bad "math"
same "the last box, level and subject" out.jsonl <<'ROWS'
{"id": "7", "question": "Half?", "answer": "\\frac{1}{2}", "level": 3, "subject": "Algebra"}
ROWS
cat > mc.jsonl <<'ROWS'
{"question":"a?","options":["x","y","z"],"answer":"C"}
{"question":"b?","options":["x","y","z"],"answer":1}
{"question":"c?","options":["x","y","z"],"answer":"x"}
{"question":"d?","options":["x","y","z"],"answer":"Q"}
ROWS
convert mc.jsonl -o out.jsonl --choices options || bad "choices"
same "options with a letter, an index, a text" out.jsonl <<'ROWS'
{"id": "row-0", "question": "a?", "choices": ["x", "y", "z"], "answer": "C"}
{"id": "row-1", "question": "b?", "choices": ["x", "y", "z"], "answer": "B"}
{"id": "row-2", "question": "c?", "choices": ["x", "y", "z"], "answer": "A"}
ROWS
"$TARE" data check out.jsonl verifier=choice > /dev/null 2>> log.txt && ok || bad "tare data check refuses the rows"
printf 'Question,Correct Answer,Wrong\nq?,right,wrong\n' > gpqa.csv
convert gpqa.csv -o out.jsonl --question Question --choices-from 'Correct Answer' Wrong || bad "gpqa"
same "options from columns" out.jsonl <<'ROWS'
{"id": "row-0", "question": "q?", "choices": ["right", "wrong"], "answer": "A"}
ROWS
echo '{"prompt":[{"role":"system","content":"s"},{"role":"user","content":"u?"}],"reward_model":{"ground_truth":5.0},"traces":["t1"]}' > verl.jsonl
convert verl.jsonl -o out.jsonl --question prompt.-1.content --answer reward_model.ground_truth --completion traces.0 || bad "nested"
same "nested columns" out.jsonl <<'ROWS'
{"id": "row-0", "question": "u?", "answer": "5", "completion": "t1"}
ROWS
echo '{"prompt":[{"role":"user","content":"1+1="}],"solution":"2","source":"mine"}' > trl.jsonl
convert trl.jsonl -o out.jsonl --question prompt --answer solution --keep solution --keep source || bad "messages"
same "TRL's messages, and columns that stay" out.jsonl <<'ROWS'
{"id": "row-0", "messages": [{"role": "user", "content": "1+1="}], "answer": "2", "solution": "2", "source": "mine"}
ROWS
"$TARE" data check out.jsonl verifier=number > /dev/null 2>> log.txt && ok || bad "tare data check refuses TRL's rows"
convert trl.jsonl -o out.jsonl --question prompt --answer '' --keep source && ! grep -q '"answer"' out.jsonl && ok || bad "rows without an answer"
"$TARE" data check out.jsonl verifier=length,length=3 > /dev/null 2>> log.txt && ok || bad "tare data check refuses rows without an answer"
python3 "$SOURCE/tools/to_jsonl.py" trl.jsonl -o x.jsonl 2> err.txt && bad "no row, exit status 0" || ok
grep -q "none has a question (question) and an answer (answer); the first one's columns: prompt, solution, source" err.txt && ok || bad "$(cat err.txt)"
echo '{"question":"arc?","choices":{"text":["p","q"],"label":["1","2"]},"answerKey":"2"}' > arc.jsonl
convert arc.jsonl -o out.jsonl --choices choices --answer answerKey || bad "arc"
same "ARC's labels" out.jsonl <<'ROWS'
{"id": "row-0", "question": "arc?", "choices": ["p", "q"], "answer": "B"}
ROWS
# Parquet. Debian has no pyarrow: without it the error names the package to install, and a stand-in
# with the two calls that the tool makes gives the rows.
PYTHON=${TARE_PYARROW:-python3}
if "$PYTHON" -c 'import pyarrow' 2> /dev/null; then
    "$PYTHON" -c 'import pyarrow as pa, pyarrow.parquet as pq
pq.write_table(pa.table({"q": ["one?", "two?"], "a": [1, 2], "m": [[{"content": "c"}], [{"content": "d"}]]}), "x.parquet")'
else
    : > x.parquet
    convert x.parquet -o out.jsonl && bad "Parquet without a reader was accepted" || ok
    grep -q 'pip install pyarrow' log.txt && ok || bad "the message does not name the package"
    mkdir -p stand-in/pyarrow
    : > stand-in/pyarrow/__init__.py
    cat > stand-in/pyarrow/parquet.py <<'PY'
class Batch(list):
    def to_pylist(self):
        return list(self)


class ParquetFile:
    def __init__(self, path):
        assert str(path) == "x.parquet"

    def iter_batches(self, batch_size):
        yield Batch([{"q": "one?", "a": 1, "m": [{"content": "c"}]}])
        yield Batch([{"q": "two?", "a": 2, "m": [{"content": "d"}]}])
PY
    export PYTHONPATH=$PWD/stand-in
fi
"$PYTHON" "$SOURCE/tools/to_jsonl.py" x.parquet -o out.jsonl --question q --answer a --completion m.0.content 2>> log.txt || bad "parquet"
same "Parquet" out.jsonl <<'ROWS'
{"id": "row-0", "question": "one?", "answer": "1", "completion": "c"}
{"id": "row-1", "question": "two?", "answer": "2", "completion": "d"}
ROWS
# An incomplete file does not appear, and an older file stays.
printf 'a;b\n1;2\n' > semicolon.csv
"$PYTHON" "$SOURCE/tools/to_jsonl.py" semicolon.csv -o none.jsonl > /dev/null 2> err.txt && bad "missing columns were accepted" || ok
"$PYTHON" "$SOURCE/tools/to_jsonl.py" semicolon.csv -o out.jsonl > /dev/null 2> err.txt && bad "missing columns were accepted" || ok
[ ! -e none.jsonl ] && [ -z "$(ls -A | grep '^\.to_jsonl')" ] && [ "$(wc -l < out.jsonl)" = 2 ] && ok || bad "files remain: $(ls)"
printf '{"question":"q","answer":"1"}\n' > one.jsonl
# Files that are not regular stay as they are, a link leads to its target, and a source is not
# overwritten.
mkfifo pipe
cat pipe > through.txt &
"$PYTHON" "$SOURCE/tools/to_jsonl.py" one.jsonl -o pipe 2>> log.txt && wait $! && [ -p pipe ] && [ "$(wc -l < through.txt)" = 1 ] && ok || bad "a pipe"
ln -s target.jsonl link.jsonl
: > target.jsonl
"$PYTHON" "$SOURCE/tools/to_jsonl.py" one.jsonl -o link.jsonl 2>> log.txt && [ -L link.jsonl ] && [ "$(wc -l < target.jsonl)" = 1 ] && ok || bad "a link"
for args in 'one.jsonl -o one.jsonl' 'one.jsonl -o .' 'one.jsonl -o nowhere/x.jsonl' 'missing.jsonl -o x.jsonl' 'one.jsonl -o x.jsonl --limit -1'; do
    # shellcheck disable=SC2086
    "$PYTHON" "$SOURCE/tools/to_jsonl.py" $args > /dev/null 2> err.txt && bad "accepted: $args" || { [ "$(wc -l < err.txt)" = 1 ] && grep -q '^to_jsonl: ' err.txt && ok || bad "$args: $(tail -1 err.txt)"; }
done
[ "$(cat one.jsonl)" = '{"question":"q","answer":"1"}' ] && [ ! -e x.jsonl ] && ok || bad "a source was changed"
done_
