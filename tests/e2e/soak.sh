#!/usr/bin/env bash
# Checks the soak's driver (tests/soak/soak.sh). Its seeds 1 to 4 draw each kind of one process
# once, and a run of two ranks. No promise is broken, its log records its work, and it finds a
# planted error of each kind.
. "$(dirname "$0")/common.inc"
[ -n "${INTERPOSE:-}" ] && [ -f "$INTERPOSE" ] || skip "a sanitizer's build has an allocator of its own: faults are not injected"
export TMPDIR=$WORK
soak() { bash "$SOURCE/tests/soak/soak.sh" "$(dirname "$TARE")" 0 "$1" > out.txt 2>&1; }
SOAK_KINDS="train sft eval sweep" SOAK_RUNS=4 SOAK_LOG=log.tsv soak 1 && ok || bad "$(tail -5 out.txt)"
grep -q '^4 runs, .* 4 continued to the end, 0 promises broken' out.txt && ok || bad "$(tail -1 out.txt)"
awk -F '\t' 'NR == 2 && NF == 11 && $3 == 1 && $4 == 4 && $6 == 4 && $7 >= 4 && $10 == 0 && $11 ~ /train 1/ && $11 ~ /sft 1/ && $11 ~ /eval 1/ && $11 ~ /sweep 1/ { told = 1 } END { exit !told }' log.tsv && ok ||
    bad "the log: $(cat log.tsv)"
if command -v mpirun > /dev/null && "$TARE" doctor 2> /dev/null | grep -q '^ok *mpi '; then
    SOAK_KINDS=ranks SOAK_RUNS=1 SOAK_LOG=log.tsv soak 1 && grep -q '^1 runs, .* 1 continued to the end, 0 promises broken' out.txt && ok || bad "two ranks: $(tail -5 out.txt)"
    [ "$(wc -l < log.tsv)" = 3 ] && ok || bad "the log after two soaks: $(cat log.tsv)"
fi
for kind in train sft eval sweep; do
    SOAK_KINDS=$kind SOAK_RUNS=1 SOAK_PLANT=1 soak 2 && bad "$kind: the planted error was not found" || ok
    grep -q '^BROKEN: ' out.txt && ok || bad "$kind: $(tail -1 out.txt)"
done
# Random choices depend only on the seed.
RANDOM=7
draw 1000000 && first=$drawn
RANDOM=7
draw 1000000
[ $drawn = $first ] && ok || bad "one seed draws two numbers"
grep -rnE '^[^#]*\$\((draw|[^(]*RANDOM)' "$SOURCE/tests/soak" "$SOURCE/tests/e2e" --include='*.sh' --include='*.inc' | grep -v 'e2e/soak.sh' && bad "drawn in \$(...), where bash seeds RANDOM again" || ok
done_
