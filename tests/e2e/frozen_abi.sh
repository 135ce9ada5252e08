#!/usr/bin/env bash
# Checks that plugins built against every released header still load and work, that no released
# member has moved or changed its type, and that a member which does is noticed. A host of 1.0
# refuses plugins of ABI 1.1 and 1.2, because it does not know what they need.
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
sed -n 's/^MEMBER(\([a-z0-9_]*\), \([a-z0-9_]*\)).*/\1 \2/p' "$SOURCE/tests/abi/members.def" | sort > listed
sed -n 's/^TYPE(\([a-z0-9_]*\), \([a-z0-9_]*\),.*/\1 \2/p' "$SOURCE/tests/abi/types.def" | sort > typed
if diff listed typed > unlisted; then ok; else bad "members without a type, or types without a member: $(cat unlisted)"; fi
for release in "$SOURCE"/tests/abi/frozen/v*; do
    layout "$release/include" "$release/members.def" > then
    # Sizes may have grown; nothing else may have changed.
    if [ -z "$(grep -v ' size ' then | grep -vxF -f now)" ]; then ok; else bad "$release: members that moved: $(grep -v ' size ' then | grep -vxF -f now)"; fi
    for file in "$release"/frozen_*.c; do
        kind=$(basename "$file" .c)
        kind=${kind#frozen_}
        cc $flags -I"$release/include" -o frozen_$kind.so "$file" -lm || { bad "$release: frozen_$kind does not build"; continue; }
        if "$TARE" plugin check ./frozen_$kind.so > check 2>&1 && grep -q ' 0 failed' check; then ok; else bad "$release $kind: $(cat check)"; fi
    done
    got=$(printf '%s\n' '{"groups":[{"rewards":[1,0]}]}' '{"groups":[{"rewards":[1,0]}]}' | "$TARE" estimate ./frozen_estimator.so weight=2 | grep -o '"advantages":[^"]*' | tr -d '\n')
    if [ "$got" = '"advantages":[[2,0]],"advantages":[[1,-1]],' ]; then ok; else bad "$release estimator: $got"; fi
    got=$(echo '{"completion":"it is 42","answer":"42"}' | "$TARE" verify ./frozen_verifier.so | grep -o '"verdict":"[a-z]*"')
    if [ "$got" = '"verdict":"correct"' ]; then ok; else bad "$release verifier: $got"; fi
    got=$(echo '{"text":"aab"}' | "$TARE" cluster embed ./frozen_encoder.so dim=2)
    case $got in *0.447213*0.894427*) ok ;; *) bad "$release encoder: $got" ;; esac
done
# The check itself: two members are swapped in a copy, and in another one a member is inserted.
cp -r "$SOURCE/sdk/include" swapped
sed -i '/int64_t (\*prepare_size)/{h;d};/int64_t (\*collect_size)/{G}' swapped/tare/estimator.h
cp -r "$SOURCE/sdk/include" inserted
sed -i 's|^    double reward;|    double inserted;\n    double reward;|' inserted/tare/verifier.h
for change in swapped inserted; do
    layout "$PWD/$change" "$SOURCE/tests/abi/members.def" > changed
    if [ -n "$(grep -v ' size ' now | grep -vxF -f changed)" ]; then ok; else bad "the check does not see members $change"; fi
done
# Two types that keep every size and offset: a pointer to another number, and a function with one
# more argument.
cp -r "$SOURCE/sdk/include" narrower
sed -i 's|^    const double \*reward;|    const float *reward; |' narrower/tare/estimator.h
cp -r "$SOURCE/sdk/include" longer
sed -i 's|void (\*destroy)(void \*self);|void (*destroy)(void *self, int now);|' longer/tare/verifier.h
for change in narrower longer; do
    layout "$PWD/$change" "$SOURCE/tests/abi/members.def" > changed
    if cmp -s now changed && ! types "$PWD/$change"; then ok; else bad "the check does not see a type that is $change"; fi
done
# An old host: what a program of ABI 1.0, compiled with the headers of that release, does with a
# plugin.
cc -std=c11 -I"$SOURCE/tests/abi/frozen/v1_0/include" -o host_1_0 "$SOURCE/tests/abi/host_1_0.c" -ldl -Wl,-z,defs || bad "host_1_0.c does not build"
for release in v1_0:0 v1_1:1 v1_2:2; do
    cc $flags -I"$SOURCE/tests/abi/frozen/${release%:*}/include" -o yesterday.so "$SOURCE/tests/abi/frozen/${release%:*}/frozen_estimator.c" -lm
    want=$([ "${release#*:}" = 0 ] && echo "advantages 2 0" || echo "refused: needs ABI 1.${release#*:}")
    if [ "$(./host_1_0 ./yesterday.so)" = "$want" ]; then ok; else bad "a host of 1.0 with a plugin of ${release%:*}: $(./host_1_0 ./yesterday.so)"; fi
done
done_
