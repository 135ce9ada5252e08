#!/usr/bin/env bash
# Checks that plugins built against every released header still load and give their results, that no
# released member has moved or changed its type, and that a member which does is noticed. Checks the
# rules that keep the ABI able to grow, and that their checks see a violation.
source "$(dirname "$0")/common.inc"
command -v cc > /dev/null || skip "no C compiler"
flags="-std=c11 -O1 -fPIC -fvisibility=hidden -shared -Wl,-z,defs"
# layout INCLUDE MEMBERS: prints a line for each struct and member.
layout() {
    cat > layout.c <<C
#include <stdio.h>
#include <tare/plugin.h>
#define LAYOUT(S) printf(#S " size %zu align %zu\n", sizeof(S), _Alignof(S));
#define MEMBER(S, M) printf(#S "  %4zu %4zu " #M "\n", offsetof(S, M), sizeof(((S *)0)->M));
#define CONSTANT(C) printf(#C " = %d\n", (int)(C));
int main(void) {
#include "$2"
}
C
    cc -std=c11 -I"$1" -o layout layout.c && ./layout
}
# types INCLUDE: compiles when every member has the type of its release.
types() {
    cat > types.c <<C
#include <tare/plugin.h>
#define TYPE(S, M, ...) _Static_assert(__builtin_types_compatible_p(__typeof__(((S *)0)->M), __VA_ARGS__), #S "." #M " has another type");
#include "$SOURCE/tests/abi/types.def"
C
    cc -std=c11 -fsyntax-only -I"$1" types.c 2> types.log
}
layout "$SOURCE/sdk/include" "$SOURCE/tests/abi/members.def" > now
if types "$SOURCE/sdk/include"; then ok; else bad "types: $(grep error types.log | head -5)"; fi
if has_python; then
    if python3 "$SOURCE/tests/abi/tables.py" check 2> tables.txt; then ok; else bad "$(cat tables.txt)"; fi
    if python3 "$SOURCE/tests/abi/lint.py" > lint.txt; then ok; else bad "rules of the ABI: $(cat lint.txt)"; fi
fi
# digests RELEASE: each file of a released folder has its digest, except for drafts.
digests() {
    (
        cd "$1"
        find . -type f ! -name SHA256SUMS ! -path './include/tare/draft/*' ! -name frozen_environment.c | LC_ALL=C sort | xargs sha256sum | cmp - SHA256SUMS
    )
}
# limits INCLUDE: the host's limits. lowered THEN NOW: prints those that are missing or lower NOW.
limits() { sed -n 's|^ *\(TARE_LIMIT_[A-Z_]*\) = \([0-9]*\),\{0,1\}.*|\1 \2|p' "$1/tare/limits.h"; }
lowered() { awk 'NR == FNR { now[$1] = $2; next } !($1 in now) || now[$1] + 0 < $2 + 0' "$2" "$1"; }
limits "$SOURCE/sdk/include" > limits_now
[ -s limits_now ] && ok || bad "limits.h has no limits"
for release in "$SOURCE"/tests/abi/frozen/v*; do
    if digests "$release" > digests.txt 2>&1; then ok; else bad "$release: a released file was changed; put it back: $(cat digests.txt)"; fi
    limits "$release/include" > limits_then
    if [ -s limits_then ] && [ -z "$(lowered limits_then limits_now)" ]; then ok; else bad "$release: limits that became lower: $(lowered limits_then limits_now)"; fi
    layout "$release/include" "$release/members.def" > then
    # Sizes may have grown; nothing else may have changed.
    if [ -z "$(grep -v ' size ' then | grep -vxF -f now)" ]; then ok; else bad "$release: members that moved: $(grep -v ' size ' then | grep -vxF -f now)"; fi
    for file in "$release"/frozen_*.c; do
        kind=$(basename "$file" .c)
        kind=${kind#frozen_}
        cc $flags -I"$release/include" -o frozen_$kind.so "$file" -lm || { bad "$release: frozen_$kind does not build"; continue; }
        if "$TARE" plugin check ./frozen_$kind.so > check 2>&1 && grep -q ' 0 failed' check; then ok; else bad "$release $kind: $(cat check)"; fi
    done
    got=$(printf '%s\n' '{"groups":[{"rewards":[1,0],"row":{}}]}' '{"groups":[{"rewards":[1,0],"row":{}}]}' | "$TARE" estimate ./frozen_estimator.so weight=2 | grep -o '"advantages":[^"]*' | tr -d '\n')
    if [ "$got" = '"advantages":[[2,0]],"advantages":[[1,-1]],' ]; then ok; else bad "$release estimator: $got"; fi
    got=$(echo '{"completion":"it is 42","answer":"42"}' | "$TARE" verify ./frozen_verifier.so | grep -o '"verdict":"[a-z]*"')
    if [ "$got" = '"verdict":"correct"' ]; then ok; else bad "$release verifier: $got"; fi
    got=$(echo '{"text":"aab"}' | "$TARE" cluster embed ./frozen_encoder.so dim=2)
    case $got in *0.447213*0.894427*) ok ;; *) bad "$release encoder: $got" ;; esac
done
# The checks themselves: a released plugin is edited, a file is added, a limit becomes lower, and one
# is removed.
for change in edited added; do
    cp -r "$SOURCE/tests/abi/frozen/v1_0" $change
    [ $change = edited ] && echo >> $change/frozen_verifier.c || touch $change/another.c
    if digests $change > /dev/null 2>&1; then bad "the check does not see a released folder that was $change"; else ok; fi
done
for change in 's/_PARAMS 256/_PARAMS 255/' /_PARAMS/d; do
    sed "$change" limits_now > limits_changed
    if [ -n "$(lowered limits_now limits_changed)" ]; then ok; else bad "the check does not see the change $change of the limits"; fi
done
# Two members are swapped in a copy, and in another one a member is inserted.
cp -r "$SOURCE/sdk/include" swapped
sed -i 's|^    double \*baseline; .*|    double *scale;|;t;s|^    double \*scale; .*|    double *baseline;|' swapped/tare/estimator.h
cp -r "$SOURCE/sdk/include" inserted
sed -i 's|^    double reward;|    double inserted;\n    double reward;|' inserted/tare/verifier.h
for change in swapped inserted; do
    layout "$PWD/$change" "$SOURCE/tests/abi/members.def" > changed
    if [ -n "$(grep -v ' size ' now | grep -vxF -f changed)" ]; then ok; else bad "the check does not see members $change"; fi
done
# Two types that keep every size and offset: a pointer to another number, and a function with one
# more argument.
cp -r "$SOURCE/sdk/include" narrower
sed -i 's|^    const double \*reward;|    const float *reward; |' narrower/tare/batch.h
cp -r "$SOURCE/sdk/include" longer
sed -i 's|void (\*destroy)(void \*self);|void (*destroy)(void *self, int now);|' longer/tare/base.h
for change in narrower longer; do
    layout "$PWD/$change" "$SOURCE/tests/abi/members.def" > changed
    if cmp -s now changed && ! types "$PWD/$change"; then ok; else bad "the check does not see a type that is $change"; fi
done
# The rules: each is broken in a copy.
if has_python; then
    mkdir broken && cp -r "$SOURCE/sdk" "$SOURCE/core" broken/
    breaks() { # RULE FILE EXPRESSION: the rule is found broken after this edit
        cp "broken/$2" saved
        sed -i "$3" "broken/$2"
        python3 "$SOURCE/tests/abi/lint.py" "$PWD/broken" > broken.txt || true
        if grep -q ": $1: " broken.txt; then ok; else bad "the rule '$1' does not see $3 in $2"; fi
        mv saved "broken/$2"
    }
    breaks types sdk/include/tare/batch.h 's|^    const uint8_t \*sampled;|    const bool *sampled;|'
    breaks arrays sdk/include/tare/draft/environment.h 's|const tare_call \*const \*call;|tare_call call[4];|'
    breaks tags sdk/include/tare/curriculum.h 's|\[serial\] \[const\] Chooses rows|Chooses rows|'
    breaks prefixes sdk/include/tare/verifier.h 's|TARE_VERIFIER_TOGETHER = 1|TARE_JUDGES_TOGETHER = 1|'
    breaks columns core/plugin/columns.h 's|"fate", |"fate_of_it", |'
    breaks sizes core/plugin/calls.c 's|^static void clear_verdict.*|static int odd(tare_verdict *v) { return v->struct_size < sizeof *v; }\n&|'
fi
done_
