#!/usr/bin/env bash
# Compiles every SDK header alone, as C11, C17 and C++17, with every installed compiler, without a
# warning.
set -eu
root=${SOURCE:-$(dirname "$0")/../..}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
compiled=0
for header in base batch estimator objective curriculum verifier encoder codebook draft/environment limits plugin text json sdk; do
    name=${header#draft/}
    printf '#include <tare/%s.h>\n#include <tare/%s.h>\ntypedef int not_empty;\n' $header $header > "$work/$name.c"
    cp "$work/$name.c" "$work/$name.cpp"
    for cc in gcc clang; do
        command -v $cc > /dev/null || continue
        for std in c11 c17; do
            $cc -std=$std -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wpadded -Werror -I"$root/sdk/include" -c "$work/$name.c" -o "$work/out.o"
            compiled=$((compiled + 1))
        done
    done
    for cxx in g++ clang++; do
        command -v $cxx > /dev/null || continue
        $cxx -std=c++17 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wpadded -Werror -I"$root/sdk/include" -c "$work/$name.cpp" -o "$work/out.o"
        compiled=$((compiled + 1))
    done
done
printf '#include <tare/sdk.hpp>\n#include <tare/sdk.hpp>\ntypedef int not_empty;\n' > "$work/hpp.cpp"
for cxx in g++ clang++; do
    command -v $cxx > /dev/null || continue
    for std in c++17 c++20; do
        $cxx -std=$std -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wpadded -Werror -I"$root/sdk/include" -c "$work/hpp.cpp" -o "$work/out.o"
        compiled=$((compiled + 1))
    done
done
# Plugins in C++: a function that the host would never find does not compile, and the compiler
# prints the reason.
tried=0
# plugin MESSAGE BASE BODY [KIND]: compiles a class with this body; it fails with MESSAGE, or compiles
# when MESSAGE is empty
plugin() {
    cat > "$work/plugin.cpp" <<CPP
#include <tare/sdk.hpp>
class mine $2
{
public:
    explicit mine(const tare_setup &) {}
    $3
};
constexpr tare_descriptor DESCRIPTOR = tare::${4:-estimator}<mine>({"mine", "1.0.0", "a test", "Apache-2.0"});
TARE_PLUGIN_ENTRY(&DESCRIPTOR)
CPP
    for cxx in g++ clang++; do
        command -v $cxx > /dev/null || continue
        tried=$((tried + 1))
        status=0
        $cxx -std=c++17 -Wall -Wextra -Werror -I"$root/sdk/include" -c "$work/plugin.cpp" -o "$work/out.o" 2> "$work/said" || status=$?
        if [ -z "$1" ] && [ $status -ne 0 ]; then echo "$cxx: $3: $(cat "$work/said")"; exit 1; fi
        if [ -n "$1" ] && { [ $status -eq 0 ] || ! grep -q "$1" "$work/said"; }; then echo "$cxx: $3: expected '$1', got: $(cat "$work/said")"; exit 1; fi
    done
}
base=": public tare::estimator_base"
compute="void compute(const tare_batch &, const double *, tare_advantages &) const"
state="void save(const tare_stream &) const {} void load(const tare_stream &) {}"
sizes="void sizes(tare_sizes &out) const { out.collect = 1; }"
collect="void collect(const tare_batch &, int64_t, double *) const {}"
plugin "" "" "$compute {} $state $sizes $collect void apply(const tare_update &) {}"
own="void save(const tare_stream &) const override {} void load(const tare_stream &) override {}"
plugin "" "$base" "$compute override {} $own"
plugin "" "final $base" "$compute override {} $own"
plugin "" "" "$compute {} static void select(const tare_value *, uint8_t *) {}"
plugin "override" "$base" "$compute override {} void descripe(const tare_stream &) const override {}"
plugin "override" "$base" "$compute override {} void sizes(tare_sizes &) override {}"
plugin "save and load require each other" "" "$compute {} void save(const tare_stream &) const {} void laod(const tare_stream &) {}"
plugin "sizes and at least one of prepare, collect and record require each other" "" "$compute {} $collect void size(tare_sizes &) const {} void apply(const tare_update &) {}"
plugin "collect and record require apply" "" "$compute {} $sizes $collect void aply(const tare_update &) {}"
plugin "describe of this plugin cannot be called" "" "$compute {} private: void describe(const tare_stream &) const {}"
plugin "describe of this plugin cannot be called" "" "$compute {} void describe(const tare_stream &) const {} void describe(int) const {}"
verify="void verify(const tare_completion &, tare_verdict &)"
plugin "" "" "$verify {}" verifier
plugin "" ": public tare::verifier_base" "static constexpr uint32_t flags = TARE_VERIFIER_TOGETHER; void verify_all(const tare_completion *const *, tare_verdict *const *, int64_t) override {}" verifier
plugin "a verifier needs verify" ": public tare::verifier_base" "void verifi(const tare_completion &, tare_verdict &) {}" verifier
plugin "submit, poll, take and cancel require each other" "" "$verify {} void submit(const tare_completion &, int64_t) {}" verifier
compiled=$((compiled + tried))
[ $compiled -gt 0 ] || { echo "SKIP: no compiler is here"; exit 77; }
echo "$compiled compilations"
