#!/usr/bin/env bash
# Runs every fuzz target for a while, with the address and undefined-behaviour sanitizers. There must
# be no crash, leak or hang.
#   tests/fuzz/run.sh [SECONDS each, default 60] [TARGET ...]    new inputs every time; earlier
#                                               discoveries are kept in build-fuzz/corpus
#   tests/fuzz/run.sh --inputs N [TARGET ...]   the same N inputs every time, for CI: a fixed seed,
#                                               from the corpus of the tree
#   tests/fuzz/run.sh --merge [TARGET ...]      adds to the tree's corpus the inputs of
#                                               build-fuzz/corpus that reach new code
#   tests/fuzz/run.sh --coverage [FOLDER] [TARGET ...]    prints the lines and regions of a target's
#                                               sources reached by the tree's corpus, or with FOLDER's
#   tests/fuzz/run.sh --sums [FILE]             prints the totals of each target in
#                                               build-fuzz/log.tsv (or FILE)
# FUZZ_IDLE=1: the targets (not their compilation) use only idle processor time.
# Needs clang; --coverage also llvm-profdata, llvm-cov and python3. A failing input is stored in
# build-fuzz/found. Each run of a target is a line of build-fuzz/log.tsv.
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=${FUZZ_DIR:-build-fuzz}
seconds=60 inputs='' mode=run beside=
case ${1:-} in
--inputs) inputs=$2 && shift 2 ;;
--merge) mode=merge && shift ;;
--coverage)
    mode=coverage
    shift
    if [ -d "${1:-}" ]; then
        beside=$1
        shift
    fi
    ;;
--sums)
    # date, commit, target, mode, seconds, seconds of processor time, inputs, findings
    awk -F '\t' '$1 != "date" { t = $3; if (!(t in runs)) name[n++] = t; runs[t]++; s[t] += $5; p[t] += $6; i[t] += $7; f[t] += $8 }
        END { for (k = 0; k < n; k++) { t = name[k]; printf "%-15s %5d runs %9.0f s %9.0f s of processor time %12d inputs %4d findings\n", t, runs[t], s[t], p[t], i[t], f[t]
                  S += s[t]; P += p[t]; I += i[t]; F += f[t]; R += runs[t] }
              printf "%-15s %5d runs %9.0f s %9.0f s of processor time %12d inputs %4d findings\n", "all", R, S, P, I, F }' "${2:-$dir/log.tsv}"
    exit
    ;;
*) if [ $# -gt 0 ]; then seconds=$1 && shift; fi ;;
esac
command -v clang > /dev/null || { echo "SKIP: clang is not installed (apt-get install clang); the corpus is replayed by ctest -R fuzz/"; exit 77; }
all='jsonl template tokenizer_json safetensors state chain ini json codebook wire ranks math plugin_state'
# The whole engine takes minutes to compile; the tests replay the corpus.
[ -n "$inputs" ] || all="$all train"

# ---- coverage, of a build without sanitizers

# A target's own sources, without those that they call.
about() {
    case $1 in
    jsonl) echo core/data/{dataset,files,tasks,choices}.c ;;
    template) echo core/template/*.c ;;
    tokenizer_json) echo core/data/{added_tokens,bpe,detokenize,normalize,pieces,pretokenize,regex,symbols,tokenizer,tokenizer_json,tokenizer_load,tokenizer_model,tokenizer_steps,trie,unigram,vocab}.c ;;
    safetensors) echo core/model/safetensors.c ;;
    state) echo core/checkpoint/state.c ;;
    chain) echo core/observe/chain.c ;;
    ini) echo core/config/*.c ;;
    json) echo sdk/include/tare/json.h ;;
    codebook) echo core/cluster/codebook_metadata.c plugins/clusterers/kmeans/*.c ;;
    wire) echo core/call/wire.c core/verify/{output,worker,reply}.c ;;
    ranks) echo core/dist/{agree,watch_net}.c core/batch/pack.c ;;
    math) echo plugins/verifiers/math/*.c ;;
    plugin_state) echo core/plugin/state.c plugins/estimators/{bv_beta,bv_blend,eb_blend,krpo,n_eff,naive,rae,sigma_hist,spo}.c plugins/estimators/common/{state,blend}.c plugins/curricula/{gfpo,mix,difficulty,replay,spo_priority}.c plugins/curricula/common/*.c plugins/clusterers/{hashed,prompt}.c plugins/clusterers/field/*.c ;;
    train) echo core/{batch,checkpoint,cluster,config,curriculum,data,engine,estimate,loop,model,observe,plan,preflight,rollout,settle,template,update,verify}/*.c ;;
    esac
}
cover() { # TARGET: prints one line of the table
    local name=$1 raw=$dir-coverage/raw/$1 object objects=() folders=("tests/fuzz/corpus/$1")
    [ ! -d "$beside/$1" ] || folders+=("$beside/$1")
    rm -rf "$raw"
    mkdir -p "$raw"
    LLVM_PROFILE_FILE=$PWD/$raw/%m-%p.profraw "$dir-coverage/replay_$name" "${folders[@]}" > "$raw.log" 2>&1 || { tail -5 "$raw.log"; return 1; }
    llvm-profdata merge -sparse "$raw"/*.profraw -o "$raw.profdata"
    case $name in
    wire | plugin_state | train) for object in "$dir-coverage"/plugins/*/*.so; do objects+=(-object "$object"); done ;;
    esac
    # shellcheck disable=SC2046 # a list of files without blanks
    llvm-cov export -summary-only "$dir-coverage/replay_$name" "${objects[@]}" -instr-profile="$raw.profdata" 2> /dev/null |
        python3 -c '
import json, os, sys
name, inputs, files = sys.argv[1], sys.argv[2], {os.path.abspath(f) for f in sys.argv[3:]}
sums = {"lines": [0, 0], "regions": [0, 0]}
for f in json.load(sys.stdin)["data"][0]["files"]:
    # A compiler cache writes names relative to the build folder.
    if os.path.abspath(os.path.join("build", f["filename"])) in files:
        for what, s in sums.items():
            s[0] += f["summary"][what]["covered"]
            s[1] += f["summary"][what]["count"]
print("| `%s` | %s | %s |" % (name, inputs, " | ".join("%d of %d | %.1f %%" % (c, n, 100 * c / max(n, 1)) for c, n in sums.values())))' \
            "$name" "$(find "${folders[@]}" -type f | wc -l)" $(about "$name")
}
if [ $mode = coverage ]; then
    command -v llvm-cov > /dev/null && command -v llvm-profdata > /dev/null || { echo "llvm-cov or llvm-profdata is not installed (apt-get install llvm)" >&2; exit 1; }
    flags='-fprofile-instr-generate -fcoverage-mapping'
    cmake -S . -B "$dir-coverage" -DCMAKE_C_COMPILER=clang -DCMAKE_C_FLAGS="$flags" -DBUILD_TESTING=ON -DTARE_SANITIZE= > /dev/null
    mkdir -p "$dir-coverage/raw"
    echo "| target | inputs | lines | | regions | |"
    echo "|---|---|---|---|---|---|"
    for name in ${*:-$all}; do
        grep -q "/replay_$name.dir" "$dir-coverage/CMakeFiles/TargetDirectories.txt" || { echo "| \`$name\` | SKIP: a dependency is not installed |" && continue; }
        cmake --build "$dir-coverage" -j "$(nproc)" --target "replay_$name" > "$dir-coverage/build.log" 2>&1 || { tail -40 "$dir-coverage/build.log"; exit 1; }
        cover "$name"
    done
    exit
fi

# ---- libFuzzer

configure() { cmake -S . -B "$dir" -DCMAKE_C_COMPILER=clang -DTARE_FUZZ=ON -DTARE_SANITIZE=address,undefined > /dev/null; }
configure
# CMake loses the options when the compiler's path changes.
grep -q '^TARE_FUZZ:[A-Z]*=ON' "$dir/CMakeCache.txt" || configure
targets=
for name in ${*:-$all}; do
    if grep -q "/fuzz_$name.dir" "$dir/CMakeFiles/TargetDirectories.txt"; then
        targets="$targets $name"
    else
        echo "fuzz_$name: SKIP, a dependency is not installed"
    fi
done
mkdir -p "$dir/found"
found=$(cd "$dir/found" && pwd) # train works in a separate folder
# shellcheck disable=SC2086 # a list
cmake --build "$dir" -j "$(nproc)" --target $(printf 'fuzz_%s ' $targets) > "$dir/build.log" 2>&1 || { tail -40 "$dir/build.log"; exit 1; }

if [ $mode = merge ]; then
    most=1000000 # bytes of the tree's corpus
    for name in $targets; do
        [ -d "$dir/corpus/$name" ] || continue
        before=$(find "tests/fuzz/corpus/$name" -type f | wc -l)
        # The fewest inputs that take every edge, whatever the number of times: a corpus small
        # enough for a repository.
        "$dir/fuzz_$name" -set_cover_merge=1 -use_counters=0 -print_funcs=0 -timeout=60 -rss_limit_mb=2048 -max_len=4096 \
            "tests/fuzz/corpus/$name" "$dir/corpus/$name" > "$dir/$name-merge.log" 2>&1 || { tail -20 "$dir/$name-merge.log"; exit 1; }
        echo "fuzz_$name: $before inputs and $(($(find "tests/fuzz/corpus/$name" -type f | wc -l) - before)) new ones"
    done
    bytes=$(find tests/fuzz/corpus -type f -printf '%s\n' | awk '{ n += $1 } END { print n }')
    echo "the tree's corpus has $bytes bytes"
    [ "$bytes" -le $most ] || { echo "that is more than $most; remove the inputs that add least" >&2; exit 1; }
    exit
fi

log_line() { # TARGET SECONDS PROCESSOR INPUTS FINDINGS
    [ -s "$dir/log.tsv" ] || printf 'date\tcommit\ttarget\tmode\tseconds\tprocessor\tinputs\tfindings\n' >> "$dir/log.tsv"
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$commit" "$1" "$how" "$2" "$3" "$4" "$5" >> "$dir/log.tsv"
}
how=new
[ -z "$inputs" ] || how=fixed
idle=${FUZZ_IDLE:+chrt -i 0 nice -n 19}
commit=$(git describe --always --dirty --abbrev=9 2> /dev/null || echo '?')

# An input that was slow once but is fast alone shows a busy machine, not a hang.
only_late() { # NAME LIMIT
    local input
    input=$(sed -n 's/.*Test unit written to \(.*-timeout-.*\)/\1/p' "$dir/$1.log" | tail -1)
    [ -n "$input" ] && "$dir/fuzz_$1" -timeout="$2" "$input" > "$dir/$1-again.log" 2>&1 || return 1
    echo "fuzz_$1: an input was late once, but not when run alone; continuing"
    rm -f "$input"
}
run_one() {
    local name=$1 log=$dir/$1.log kept=$dir/corpus/$1 began=$SECONDS total=0 late=0 until limit=10 words='' took spent=0 failed=0
    local TIMEFORMAT='%U %S'
    [ "$name" != train ] || limit=60
    [ ! -e "tests/fuzz/$name.dict" ] || words=-dict=tests/fuzz/$name.dict
    if [ -n "$inputs" ]; then
        kept=$dir/inputs/$name
        rm -rf "$kept"
    fi
    mkdir -p "$kept"
    while :; do
        until=-max_total_time=$((seconds - SECONDS + began))
        if [ -n "$inputs" ]; then
            until="-runs=$inputs -seed=1"
            # Half of the inputs of wire open plugins; those of ini are loaded up to four times from
            # files; plugin_state makes up to five instances per input.
            case $name in
            wire | ini | plugin_state) until="-runs=$((inputs / 10)) -seed=1" ;;
            # For these targets, changes of trees with half of the runs reach more code than changes of
            # bytes with all of them.
            jsonl | tokenizer_json) until="-runs=$((inputs / 2)) -seed=1" ;;
            esac
        fi
        local status=0
        # shellcheck disable=SC2086 # a list
        { time $idle "$dir/fuzz_$name" $until $words -print_funcs=0 -timeout=$limit -rss_limit_mb=2048 -max_len=65536 -len_control=100 -print_final_stats=1 \
            -artifact_prefix="$found/$name-" "$kept" "tests/fuzz/corpus/$name" > "$log" 2>&1; } 2> "$dir/$name.time" || status=$?
        total=$((total + $(grep -ao 'stat::number_of_executed_units: *[0-9]*' "$log" | grep -o '[0-9]*$' || echo 0)))
        took=$(awk 'END { printf "%.1f", $1 + $2 }' "$dir/$name.time")
        spent=$(awk "BEGIN { print $spent + $took }")
        [ $status != 0 ] || break
        late=$((late + 1))
        [ $late -le 3 ] && only_late "$name" $limit || { tail -40 "$log"; echo "fuzz_$name: failed; the input is in $dir/found"; failed=1; break; }
        [ -n "$inputs" ] || [ $((SECONDS - began)) -lt "$seconds" ] || break
    done
    log_line "$name" $((SECONDS - began)) "$spent" "$total" $failed
    [ $failed = 0 ] || return 1
    echo "fuzz_$name: $total inputs in $((SECONDS - began)) s, $spent s of them on a processor"
}

# Two at a time: a target is one thread.
failed=0
set -- $targets
while [ $# -gt 0 ]; do
    run_one "$1" & first=$!
    second=
    if [ $# -gt 1 ]; then run_one "$2" & second=$!; shift; fi
    shift
    wait $first || failed=1
    if [ -n "$second" ]; then wait "$second" || failed=1; fi
done
exit $failed
