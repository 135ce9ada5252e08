#!/usr/bin/env bash
# Checks that bad input gives one line on standard error with the cause and the place, and a
# non-zero exit status, and that nothing is written.
. "$(dirname "$0")/common.inc"
tiny_config
"$TARE" sft sft.ini 2> /dev/null || bad "warm start"

# refused PATTERN ARGS...: checks that the command fails, prints one line with PATTERN and leaves no
# run behind.
refused() {
    pattern=$1
    shift
    rm -rf run
    if "$TARE" "$@" > out.txt 2> err.txt < "${INPUT:-/dev/null}"; then
        bad "accepted: tare $*"
        return
    fi
    if ! grep -qE "$pattern" err.txt; then
        bad "tare $*: the message is: $(head -2 err.txt)"
    elif [ "$(grep -c '^tare: ' err.txt)" != 1 ]; then
        bad "tare $*: more than one line: $(head -5 err.txt)"
    elif [ -e run/metrics.jsonl ] || [ -d run/checkpoints ]; then
        bad "tare $*: files were written"
    else
        ok
    fi
}
q="log.level=warn log.progress=none"

refused 'stepz.*did you mean' train tiny.ini $q train.stepz=3
printf 'include = tiny.ini\n[train]\nlrr = 3\n' > x.ini
refused 'x.ini:3.*lrr.*did you mean' train x.ini $q
refused 'train.steps.*(whole|number)' train tiny.ini $q train.steps=many
refused 'rollout.top_p' train tiny.ini $q rollout.top_p=1.5
refused 'estimator.bv_blend.*gamma|gamma.*range|gamma' train tiny.ini $q estimator.bv_blend.gamma=7
refused 'gama.*did you mean' train tiny.ini $q estimator.bv_blend.gama=0.5
refused 'nowhere' train tiny.ini $q model.path=nowhere model.warm_start=
refused 'nofile.jsonl' train tiny.ini $q data.train=nofile.jsonl
refused 'gropo|not found' train tiny.ini $q estimator.plugin=gropo
refused 'exact.*(kind|verifier)|estimator' train tiny.ini $q estimator.plugin=exact

# Every verb gives the same status for the same cause: 3 when something named by the configuration
# cannot be used. No verb waits for such an input or reads it without a limit.
status3() { # PATTERN ARGS...
    local pattern=$1 status=0
    shift
    timeout 60 "$TARE" "$@" > out.txt 2> err.txt < "${INPUT:-/dev/null}" || status=$?
    [ $status = 3 ] && grep -qE "$pattern" err.txt && ok || bad "tare $*: status $status, $(head -2 err.txt)"
}
mkfifo pipe && mkdir folder && printf '{"question":"a","answer":"b"}\n\0\0\n' > nul.jsonl
{ cat tiny.ini; printf '[sweep]\nrun.seed = 1, 2\nmetric = reward/mean\n'; } > grid.ini
for verb in train plan variance 'config check' 'eval codebook.plugin=auto' sweep; do
    file=tiny.ini
    [ "$verb" != sweep ] || file=grid.ini
    # shellcheck disable=SC2086 # a verb and its settings
    case $verb in eval*) set -- eval $file ${verb#eval} ;; *) set -- $verb $file ;; esac
    status3 "no estimator named 'GRPO'; did you mean grpo" "$@" estimator.plugin=GRPO
done
for verb in train eval 'config check' sweep; do
    file=tiny.ini key=data.train
    [ "$verb" != sweep ] || file=grid.ini
    [ "$verb" != eval ] || key=data.eval
    # shellcheck disable=SC2086 # config check
    {
        status3 "$key: pipe is a pipe; name a regular file" $verb $file $key=pipe
        status3 "$key: folder is a folder; name a regular file" $verb $file $key=folder
        status3 "$key: /dev/zero is a device" $verb $file $key=/dev/zero
        status3 'nul.jsonl:2: not a row' $verb $file $key=nul.jsonl
        INPUT=/dev/zero status3 "$key: /dev/stdin: a line is longer than 64 MiB" $verb $file $key=/dev/stdin
        status3 'no verifier named' $verb $file verifier.plugins=EXACT
    }
done
# One JSON list: its last element alone looks like a row.
printf '[{"question":"a","answer":"b"},\n {"question":"c","answer":"d"}]\n' > list.json
printf '\xEF\xBB\xBF\n[\n  {"question":"a","answer":"b"},\n  {"question":"c","answer":"d"}\n]\n' > wide.json
printf '[{"question":"a","answer":"b"}]' > flat.json
printf '{\n"question":"a","answer":"b"}\n' > object.json
for file in list wide flat; do
    status3 "^tare: $file.json is a JSON list, but a data file has one JSON object per line.*tools/to_jsonl.py" data check $file.json write=rows.jsonl
    [ ! -s out.txt ] && [ ! -e rows.jsonl ] && ok || bad "$file.json: rows were counted or written: $(cat out.txt)"
    status3 "data.train: $file.json is a JSON list" train tiny.ini data.train=$file.json
done
status3 'object.json:1: not valid JSON: .*; the line ends within an object; write each row as one object on one line' train tiny.ini data.train=object.json
for file in pipe folder /dev/zero; do status3 "$file is a [a-z ]*; name a regular file" data check $file; done

# Rows.
printf '{"id":"a","question":"1+1=","answer":"2"}\n{"id":"b","question":"1+2="}\n' > rows.jsonl
refused 'rows.jsonl:2.*answer' train tiny.ini $q data.train=rows.jsonl
printf '{"id":"a","question":"1+\xff1=","answer":"2"}\n' > rows.jsonl
refused 'rows.jsonl:1' train tiny.ini $q data.train=rows.jsonl
printf '{"id":"a","question":"1+1=","answer":"2"\n' > rows.jsonl
refused 'rows.jsonl:1' train tiny.ini $q data.train=rows.jsonl
printf '{"id":"a","question":"%s1=","answer":"2","subject":"x"}\n' "$(printf '1+%.0s' $(seq 200))" > rows.jsonl
refused 'rows.jsonl:1.*(token|context|position)' train tiny.ini $q data.train=rows.jsonl data.eval= eval.before=false eval.after=false

# Checkpoints.
# refused_broken NAME PATTERN CHANGE: a checkpoint whose bytes d are changed by the Python
# statements
refused_broken() {
    has_python || return 0
    rm -rf "$1"
    cp -r base "$1" && rm "$1/sums.json"
    python3 - "$1/model.safetensors" "$3" <<'PY'
import sys, json
path, change = sys.argv[1:]
d = open(path, "rb").read()
n = int.from_bytes(d[:8], "little")
head = json.loads(d[8:8 + n])
names = [k for k in head if k != "__metadata__"]
def pack(h, body):
    t = json.dumps(h).encode()
    return len(t).to_bytes(8, "little") + t + body
exec(change)
open(path, "wb").write(d)
PY
    refused "$2" train tiny.ini $q model.path="$1"
}
refused_broken cut 'model.safetensors.*(truncat|short|end|beyond|size)' 'd = d[:-100]'
refused_broken longhead 'model.safetensors.*header' 'd = (1 << 40).to_bytes(8, "little") + d[8:]'
refused_broken overlap 'model.safetensors.*(overlap|gap)' 'head[names[1]]["data_offsets"] = [o - 8 for o in head[names[1]]["data_offsets"]]; d = pack(head, d[8 + n:])'
refused_broken missing 'q_proj.weight' 'k = [x for x in names if "q_proj.weight" in x][0]; head["other"] = head.pop(k); d = pack(head, d[8 + n:])'
refused_broken shape 'q_proj.weight.*' 'k = [x for x in names if "q_proj.weight" in x][0]; head[k]["shape"] = head[k]["shape"][::-1]; head[k]["shape"] = [head[k]["shape"][0] // 2, head[k]["shape"][1] * 2]; d = pack(head, d[8 + n:])'

# A codebook made for another encoder.
for i in 1 2 3 4 5 6 7 8; do printf '{"text":"row number %d of the corpus"}\n' $i; done > corpus.jsonl
if "$TARE" cluster train hashed --clusters 2 --seed 1 --restarts 1 -o cb.safetensors < corpus.jsonl > /dev/null 2>&1; then
    refused 'encoder' train tiny.ini $q codebook.plugin=kmeans encoder.plugin=hashed codebook.kmeans.path=cb.safetensors encoder.hashed.dim=128
else
    bad "tare cluster train hashed"
fi

# A full disk, imitated by a limit on the size of files.
rm -rf run
if (ulimit -f 40; trap '' XFSZ; "$TARE" train tiny.ini $q checkpoint.every=1 > out.txt 2> err.txt); then
    bad "the full disk was not noticed"
else
    grep -qE 'cannot be written|File too large|space' err.txt && ok || bad "full disk: $(head -2 err.txt)"
    [ -z "$(ls run/checkpoints 2> /dev/null | grep -E '^step-[0-9]+$')" ] && ok || bad "full disk: an incomplete checkpoint counts as complete"
fi
done_
