#!/usr/bin/env bash
# Checks tare plugin new --lang cpp | rust against an installed SDK without a source tree: plugins
# are built and checked; an exception and a panic are errors.
set -eu
build=${BUILD:-$(dirname "$TARE")}
PATH=$PATH:${HOME:-}/.cargo/bin
command -v make > /dev/null && command -v cmake > /dev/null || { echo "SKIP: make or cmake is missing"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" > "$work/install.log" || { cat "$work/install.log"; exit 1; }
unset TARE_PLUGIN_PATH
PATH=$work/prefix/bin:$PATH
cd "$work"
languages='' skipped=''
if command -v c++ > /dev/null; then languages="$languages cpp"; else skipped="c++ is not installed"; fi
if command -v rustc > /dev/null && rustc --version > /dev/null 2>&1; then languages="$languages rust"; else skipped="${skipped:+$skipped; }rustc is not installed"; fi
[ -n "$languages" ] || { echo "SKIP: neither c++ nor rustc is here"; exit 77; }
for lang in $languages; do
    for kind in estimator verifier encoder codebook objective curriculum; do
        name=${lang}_$kind
        tare plugin new $kind $name --lang $lang > /dev/null
        ! grep -rq '@[A-Z]*@' $name || { echo "a placeholder remains in $name"; exit 1; }
        make -s -C $name check > log 2>&1 || { cat log; exit 1; }
        grep -q ' 0 failed' log && tail -n 1 log | grep -q '^ok$' || { cat log; exit 1; }
    done
done
# Fields of the data set's rows as numbers, in each language: an advantage is the reward times the
# row's level, or 7 without a level.
case $languages in *cpp*)
    tare plugin new estimator cpp_fields --lang cpp > /dev/null
    cat > cpp_fields/cpp_fields.cpp <<'CPP'
#include <cmath>
#include <tare/sdk.hpp>
class fields : public tare::estimator_base
{
  public:
    fields(const tare_host *, const tare_value *, int64_t) {}
    const char *const *columns() const override
    {
        static const char *const names[] = {"weight", "level", nullptr};
        return names;
    }
    void compute(const tare_batch &b, const double *, tare_advantages &out) const override
    {
        for (int64_t m = 0; m < b.n_groups; m++) {
            const double level = b.column[m * b.n_columns + 1];
            out.baseline[m] = out.confidence[m] = 0;
            for (int64_t i = b.group_begin[m]; i < b.group_begin[m + 1]; i++) out.advantage[i] = b.reward[i] * (std::isnan(level) ? 7 : level);
        }
    }
};
static constexpr tare_descriptor DESCRIPTOR = tare::estimator<fields>({"cpp_fields", "0.1.0", "rewards times the row's level", "Apache-2.0"});
TARE_PLUGIN_ENTRY_SINCE(DESCRIPTOR, 2)
CPP
esac
case $languages in *rust*)
    tare plugin new estimator rust_fields --lang rust > /dev/null
    cat > rust_fields/rust_fields.rs <<'RUST'
#[macro_use]
mod tare;
struct Fields;
impl tare::Estimator for Fields {
    const COLUMNS: &'static [*const std::os::raw::c_char] = &[c!("weight"), c!("level"), std::ptr::null()];
    fn new(_: &tare::Host, _: &tare::Values, _: i64) -> tare::Result<Fields> {
        Ok(Fields)
    }
    fn compute(&self, batch: &tare::Batch, _: &[f64], out: &mut tare::Advantages) -> tare::Result<()> {
        for m in 0..batch.groups() {
            let level = batch.column(m)[1];
            out.baseline[m] = 0.0;
            out.confidence[m] = 0.0;
            for i in batch.group(m) {
                out.advantage[i] = batch.reward()[i] * if level.is_nan() { 7.0 } else { level };
            }
        }
        Ok(())
    }
}
tare_plugin!(tare::estimator::<Fields>(tare::About::new(c!("rust_fields"), c!("0.1.0"), c!("rewards times the row's level"), c!("Apache-2.0")), &[]), since = 2);
RUST
esac
for lang in $languages; do
    make -s -C ${lang}_fields > log 2>&1 || { cat log; exit 1; }
    tare plugin check ./${lang}_fields/${lang}_fields.so > log && grep -q ' 0 failed' log || { cat log; exit 1; }
    got=$(echo '{"groups":[{"rewards":[1,2],"row":{"level":3}},{"rewards":[1],"row":{"weight":1}}]}' | tare estimate ./${lang}_fields/${lang}_fields.so)
    case $got in *'"advantages":[[3,6],[7]]'*) ;; *) echo "$lang: fields of rows: $got"; exit 1 ;; esac
    if echo '{"groups":[{"rewards":[1],"row":{"level":"x"}}]}' | tare estimate ./${lang}_fields/${lang}_fields.so 2> log; then echo "$lang: a text was accepted as a number"; exit 1; fi
    grep -q '"level" is a text' log || { cat log; exit 1; }
done
# By default a verifier compares with the answer; `uses` changes that.
# no_answer LANG ENDING CHANGE: checks that the template refuses a line without an answer, and that
# it verifies the line after its text was changed
no_answer() {
    if echo '{"completion":"abcd"}' | tare verify $1_verifier/$1_verifier.so 2> log; then echo "$1: a row without an answer was accepted"; exit 1; fi
    grep -q '"answer" (or "gold") is missing' log || { cat log; exit 1; }
    sed -i "$3" $1_verifier/$1_verifier.$2
    make -s -C $1_verifier > log 2>&1 || { cat log; exit 1; }
    echo '{"completion":"abcd"}' | tare verify $1_verifier/$1_verifier.so > log 2>&1 && grep -q '"verdict"' log || { cat log; exit 1; }
}
case $languages in *cpp*) no_answer cpp cpp 's|^public:|public:\n    static uint32_t uses(const tare_value *) { return 0; }|' ;; esac
case $languages in *rust*) no_answer rust rs 's|^    fn verify(|    fn uses(_: \&Values) -> u32 {\n        0\n    }\n    fn verify(|' ;; esac
case $languages in *cpp*)
    cmake -S cpp_verifier -B cmake_cpp -DCMAKE_PREFIX_PATH="$work/prefix" -DTARE_INCLUDE=/nowhere > log 2>&1 && cmake --build cmake_cpp >> log 2>&1 || { cat log; exit 1; }
    sed -i 's|const auto answer = view|if (a.completion.size == 3) throw std::runtime_error("three is too few");\n        const auto answer = view|; s|<string_view>|<string_view>\n#include <stdexcept>|' cpp_verifier/cpp_verifier.cpp
    make -s -C cpp_verifier
    if echo '{"completion":"abc","answer":"b"}' | tare verify cpp_verifier/cpp_verifier.so 2> log; then echo "an exception was not an error"; exit 1; fi
    grep -q 'verifier cpp_verifier: verify: three is too few' log || { cat log; exit 1; } ;;
esac
case $languages in *rust*)
    sed -i 's|let right = |assert!(a.completion.len() != 3, "three is too few"); let right = |' rust_verifier/rust_verifier.rs
    make -s -C rust_verifier
    if echo '{"completion":"abc","answer":"b"}' | tare verify rust_verifier/rust_verifier.so 2> log; then echo "a panic was not an error"; exit 1; fi
    grep -q 'verifier rust_verifier: verify: panicked: three is too few' log && [ "$(wc -l < log)" = 1 ] || { cat log; exit 1; } ;;
esac
if tare plugin new verifier other --lang fortran 2> log; then echo "an unknown language was accepted"; exit 1; fi
grep -q 'must be c, cpp or rust' log && [ ! -e other ]
echo "languages:$languages; four kinds each"
[ -z "$skipped" ] || { echo "SKIP: $skipped"; exit 77; }
