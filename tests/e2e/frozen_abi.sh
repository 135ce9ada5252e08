# Plugins built against every released header still load and work, no released member has moved, and a member that moves is noticed.
source "$(dirname "$0")/common.inc"
command -v cc > /dev/null || skip "no C compiler"
flags="-std=c11 -O1 -fPIC -fvisibility=hidden -shared -Wl,-z,defs"
# layout INCLUDE MEMBERS: a line for each struct and member
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
layout "$SOURCE/sdk/include" "$SOURCE/tests/abi/members.def" > now
for release in "$SOURCE"/tests/abi/frozen/v*; do
    layout "$release/include" "$release/members.def" > then
    # sizes may have grown; nothing else may have changed
    if [ -z "$(grep -v ' size ' then | grep -vxF -f now)" ]; then ok; else bad "$release: members that moved: $(grep -v ' size ' then | grep -vxF -f now)"; fi
    for kind in estimator verifier encoder codebook; do
        cc $flags -I"$release/include" -o frozen_$kind.so "$release/frozen_$kind.c" -lm || { bad "$release: frozen_$kind does not build"; continue; }
        if "$TARE" plugin check ./frozen_$kind.so > check 2>&1 && grep -q ' 0 failed' check; then ok; else bad "$release $kind: $(cat check)"; fi
    done
    got=$(printf '%s\n' '{"groups":[{"rewards":[1,0]}]}' '{"groups":[{"rewards":[1,0]}]}' | "$TARE" estimate ./frozen_estimator.so weight=2 | grep -o '"advantages":[^"]*' | tr -d '\n')
    if [ "$got" = '"advantages":[[2,0]],"advantages":[[1,-1]],' ]; then ok; else bad "$release estimator: $got"; fi
    got=$(echo '{"completion":"it is 42","answer":"42"}' | "$TARE" verify ./frozen_verifier.so | grep -o '"verdict":"[a-z]*"')
    if [ "$got" = '"verdict":"correct"' ]; then ok; else bad "$release verifier: $got"; fi
    got=$(echo '{"text":"aab"}' | "$TARE" embed ./frozen_encoder.so dim=2)
    case $got in *0.447213*0.894427*) ok ;; *) bad "$release encoder: $got" ;; esac
done
# the gate itself: two members change places in a copy, and in another one is inserted
cp -r "$SOURCE/sdk/include" swapped
sed -i '/int64_t (\*prepare_size)/{h;d};/int64_t (\*collect_size)/{G}' swapped/tare/estimator.h
cp -r "$SOURCE/sdk/include" inserted
sed -i 's|^    double reward;|    double inserted;\n    double reward;|' inserted/tare/verifier.h
for change in swapped inserted; do
    layout "$PWD/$change" "$SOURCE/tests/abi/members.def" > changed
    if [ -n "$(grep -v ' size ' now | grep -vxF -f changed)" ]; then ok; else bad "the gate does not see members $change"; fi
done
done_
