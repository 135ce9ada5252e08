#!/usr/bin/env bash
# The soak's driver (tests/soak/soak.sh) on three seeds: no promise is broken; and it finds what is planted.
. "$(dirname "$0")/common.inc"
[ -n "${INTERPOSE:-}" ] && [ -f "$INTERPOSE" ] || skip "a sanitizer's build has an allocator of its own: faults are not injected"
export TMPDIR=$WORK
SOAK_RUNS=3 bash "$SOURCE/tests/soak/soak.sh" "$(dirname "$TARE")" 0 > out.txt 2>&1 && ok || bad "$(tail -5 out.txt)"
grep -q '^3 runs, .* 3 continued to the end, 0 promises broken' out.txt && ok || bad "$(tail -1 out.txt)"
SOAK_RUNS=1 SOAK_PLANT=1 bash "$SOURCE/tests/soak/soak.sh" "$(dirname "$TARE")" 0 > out.txt 2>&1 && bad "what is planted is not found" || ok
grep -q '^BROKEN: ' out.txt && ok || bad "$(tail -1 out.txt)"
# What is drawn depends on the seed alone.
RANDOM=7
draw 1000000 && first=$drawn
RANDOM=7
draw 1000000
[ $drawn = $first ] && ok || bad "one seed draws two numbers"
grep -rnE '^[^#]*\$\((draw|[^(]*RANDOM)' "$SOURCE/tests/soak" "$SOURCE/tests/e2e" --include='*.sh' --include='*.inc' | grep -v 'e2e/soak.sh' && bad "drawn in \$(...), where bash begins RANDOM anew" || ok
done_
