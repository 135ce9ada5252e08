#!/usr/bin/env bash
# Compiles every SDK header alone, as C11, C17 and C++17, with every installed compiler, without a
# warning.
set -eu
root=${SOURCE:-$(dirname "$0")/../..}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
compiled=0
for header in base batch limits estimator verifier encoder codebook objective curriculum plugin text sdk; do
    printf '#include <tare/%s.h>\n#include <tare/%s.h>\ntypedef int not_empty;\n' $header $header > "$work/$header.c"
    cp "$work/$header.c" "$work/$header.cpp"
    for cc in gcc clang; do
        command -v $cc > /dev/null || continue
        for std in c11 c17; do
            $cc -std=$std -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wpadded -Werror -I"$root/sdk/include" -c "$work/$header.c" -o "$work/out.o"
            compiled=$((compiled + 1))
        done
    done
    for cxx in g++ clang++; do
        command -v $cxx > /dev/null || continue
        $cxx -std=c++17 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wpadded -Werror -I"$root/sdk/include" -c "$work/$header.cpp" -o "$work/out.o"
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
# plugin MESSAGE BASE BODY: compiles a class with this body; it fails with MESSAGE, or compiles when
# MESSAGE is empty
plugin() {
    cat > "$work/plugin.cpp" <<CPP
#include <tare/sdk.hpp>
class mine $2
{
public:
    mine(const tare_host *, const tare_value *, int64_t) {}
    $3
};
constexpr tare_descriptor DESCRIPTOR = tare::estimator<mine>({"mine", "1.0.0", "a test", "Apache-2.0"});
TARE_PLUGIN_ENTRY(DESCRIPTOR)
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
sums="int64_t collect_size() const { return 1; } void collect(const tare_batch &, int64_t, double *) const {} void apply(int64_t, const double *) {}"
plugin "" "" "$compute {} $state $sums"
own="void save(const tare_stream &) const override {} void load(const tare_stream &) override {}"
plugin "" "$base" "$compute override {} $own"
plugin "" "final $base" "$compute override {} $own"
plugin "override" "$base" "$compute override {} void descripe(const tare_stream &) const override {}"
plugin "override" "$base" "$compute override {} int64_t prepare_size() override { return 1; }"
plugin "save and load require each other" "" "$compute {} void save(const tare_stream &) const {} void laod(const tare_stream &) {}"
plugin "collect and collect_size require each other" "" "$compute {} void collect(const tare_batch &, int64_t, double *) const {} int64_t colect_size() const { return 1; } void apply(int64_t, const double *) {}"
plugin "collect requires apply or apply_records" "" "$compute {} int64_t collect_size() const { return 1; } void collect(const tare_batch &, int64_t, double *) const {} void aply(int64_t, const double *) {}"
plugin "describe of this plugin cannot be called" "" "$compute {} private: void describe(const tare_stream &) const {}"
plugin "describe of this plugin cannot be called" "" "$compute {} void describe(const tare_stream &) const {} void describe(int) const {}"
compiled=$((compiled + tried))
[ $compiled -gt 0 ] || { echo "SKIP: no compiler is here"; exit 77; }
echo "$compiled compilations"
