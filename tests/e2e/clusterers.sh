#!/usr/bin/env bash
# Checks tare cluster: trains a codebook, assigns, inspects, embeds, and refuses invalid arguments.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
die() { echo "FAILED: $*"; exit 1; }
[ -x "${TARE:-}" ] || { echo "SKIP: no tare program"; exit 77; }
"$TARE" cluster --help >/dev/null 2>&1 || { echo "SKIP: this build has no cluster verb"; exit 77; }

for i in $(seq 60); do
    case $((i % 3)) in
    0) q="Ann adds $i apples and $((i * 7 % 13)) pears. How many has she?" ;;
    1) q="A train goes $i miles in $((i * 5 % 11)) hours. What is its speed?" ;;
    2) q="Factor the polynomial x^2 - ${i}x + $((i * 3 % 17))." ;;
    esac
    echo "{\"id\":\"r$i\",\"question\":\"$q\",\"subject\":\"s$((i % 3))\"}"
done >rows.jsonl

"$TARE" cluster train hashed dim=64 --clusters 3 --seed 1 --restarts 5 -o c.safetensors --json <rows.jsonl >first.json || die "training"
"$TARE" cluster train hashed dim=64 --clusters 3 --seed 1 --restarts 5 --threads 1 -o c1.safetensors <rows.jsonl >/dev/null || die "training on one thread"
cmp c.safetensors c1.safetensors || die "threads changed the codebook"
grep -q '"inertia"' first.json || die "no inertia in the output"

"$TARE" cluster assign c.safetensors <rows.jsonl >out.jsonl || die "cluster"
[ "$(wc -l <out.jsonl)" = 60 ] || die "lines"
"$TARE" cluster assign c.safetensors --threads 0 <rows.jsonl | cmp - out.jsonl || die "threads changed the clusters"
"$TARE" cluster assign kmeans path=c.safetensors --encoder hashed dim=64 <rows.jsonl | cmp - out.jsonl || die "encoder by its name"
for kind in 0 1 2; do
    n=$(awk -v k=$kind 'NR % 3 == k' out.jsonl | grep -o '"cluster":[0-9]*' | sort -u | wc -l)
    [ "$n" = 1 ] || die "questions of kind $kind are in $n clusters"
done

head -2 rows.jsonl | "$TARE" cluster embed hashed dim=16 | grep -c '"embedding":\[' | grep -qx 2 || die "embed"
"$TARE" cluster assign field --fit rows.jsonl <rows.jsonl | grep -q '"cluster":2,"distance":0.0,"name":"s2"' || die "field"
"$TARE" cluster inspect c.safetensors --corpus rows.jsonl --json | grep -q '"silhouette":0' || die "inspect"
"$TARE" cluster assign c.safetensors --embeddings c.safetensors --tensor centroids -o own.safetensors | grep -q '"rows":3,"clusters":3,"inertia":0,' || die "assign from a file"
"$TARE" cluster train --embeddings c.safetensors --tensor centroids --clusters 2 -o two.safetensors | grep -q '2 clusters of 3 rows' || die "train on embeddings"
head -2 rows.jsonl | "$TARE" cluster embed hashed dim=64 --codebook c.safetensors --threads 2 | grep -c '"id":"r' | grep -qx 2 || die "embed with a codebook"

refused() { # status, words of the message, words of the command
    want=$1 word=$2
    shift 2
    "$TARE" "$@" <rows.jsonl >/dev/null 2>err
    got=$?
    [ $got = "$want" ] || die "tare $*: status $got, not $want"
    grep -q -- "$word" err || die "tare $*: $(cat err)"
}
refused 3 "dim=32" cluster assign c.safetensors --encoder hashed dim=32
refused 1 "clusters" cluster train hashed --clusters 61 -o no.safetensors
refused 2 "--clusters = 0: must be at least 1" cluster train hashed --clusters 0 -o no.safetensors
refused 2 "usage" cluster train hashed --clusters 3
refused 2 "usage" cluster embed
refused 2 "'--nearest'" cluster embed hashed --nearest 3
refused 2 "'c.safetensors'" cluster c.safetensors
refused 2 "--threads = 5000: must be at most 4096" cluster embed hashed --threads 5000
head -c 300 c.safetensors >cut.safetensors
refused 1 "cut" cluster assign cut.safetensors
[ ! -e no.safetensors ] || die "a refused training wrote a file"
echo '{"id":1}' | "$TARE" cluster embed hashed >/dev/null 2>err && die "a line without a text was accepted"
grep -q "standard input:1" err || die "the message has no line number"
echo ok
