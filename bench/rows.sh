#!/usr/bin/env bash
# Measures the memory used by rows of data: peak memory for reading a whole set of ROWS rows, as training does (`tare data show`), and
# for a set of one row; `tare data check`, which keeps no rows, for comparison.
#   bench/rows.sh BUILD [ROWS]     ROWS: 10000000; the file (51 bytes per row) is created in TMPDIR and removed again
set -euo pipefail
build=$(cd "${1:?usage: rows.sh BUILD [ROWS]}" && pwd) rows=${2:-10000000}
export TARE_PLUGIN_PATH=${TARE_PLUGIN_PATH:-$build/plugins}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
most() { # command...: its peak memory in bytes, and the seconds
    python3 - "$build/tare" -q data "$@" << 'PY'
import resource, subprocess, sys, time
began = time.time()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024, round(time.time() - began, 1))
PY
}
awk -v n="$rows" 'BEGIN { for (i = 0; i < n; i++) printf "{\"question\":\"what is %07d plus 2\",\"answer\":\"7\"}\n", i }' > "$work/rows.jsonl"
head -1 "$work/rows.jsonl" > "$work/one.jsonl"
# `data show` needs only a model's tokenizer and config.json
here=$(cd "$(dirname "$0")/.." && pwd)
cp -r "$here/tests/data/models/tokenizers/smollm2" "$work/model"
cp "$here/tests/data/models/tiny/qwen3/config.json" "$work/model/"
printf '[model]\npath = model\n[data]\nprompt = plain\n' > "$work/run.ini"
cd "$work"
most show run.ini data.train=one.jsonl > told
read -r one _ < told
most show run.ini data.train=rows.jsonl > told
read -r all seconds < told
most check rows.jsonl > told
read -r checked check_seconds < told
awk -v n="$rows" -v size="$(($(stat -c %s rows.jsonl) / rows))" -v all="$all" -v one="$one" -v s="$seconds" -v checked="$checked" -v check_s="$check_seconds" 'BEGIN {
    printf "%d rows of %d bytes: read whole %.2f GB at most, %d bytes a row, in %s s; one row: %.1f MB; data check: %.2f GB, %s s\n", n, size, all / 1e9, (all - one) / n, s, one / 1e6, checked / 1e9, check_s }'
