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
    for kind in estimator verifier encoder codebook objective curriculum environment; do
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
enum { W_WEIGHT, W_LEVEL, W_COUNT };
static constexpr tare_want WANTS[W_COUNT] = {{"row.weight", TARE_AXIS_GROUP, TARE_F64, 0, 1}, {"row.level", TARE_AXIS_GROUP, TARE_F64, 0, 1}};
class fields : public tare::estimator_base
{
  public:
    explicit fields(const tare_setup &) {}
    void compute(const tare_batch &b, const double *, tare_advantages &out) const override
    {
        const double *level = tare::column<double>(b, W_LEVEL);
        for (int64_t m = 0; m < b.n_groups; m++)
            for (int64_t i = b.group_begin[m]; i < b.group_begin[m + 1]; i++) out.advantage[i] = b.reward[i] * (std::isnan(level[m]) ? 7 : level[m]);
    }
};
static constexpr tare_descriptor DESCRIPTOR = tare::estimator<fields>({"cpp_fields", "0.1.0", "rewards times the row's level", "Apache-2.0"}, {}, WANTS);
TARE_PLUGIN_ENTRY(&DESCRIPTOR)
CPP
esac
case $languages in *rust*)
    tare plugin new estimator rust_fields --lang rust > /dev/null
    cat > rust_fields/rust_fields.rs <<'RUST'
#[macro_use]
mod tare;
const W_LEVEL: usize = 1;
struct Fields;
impl tare::Plugin for Fields {
    const WANTS: &'static [tare::Want] = &[
        tare::Want::new(c!("row.weight"), tare::AXIS_GROUP, tare::F64),
        tare::Want::new(c!("row.level"), tare::AXIS_GROUP, tare::F64),
    ];
    fn new(_: &tare::Setup) -> tare::Result<Fields> {
        Ok(Fields)
    }
}
impl tare::Estimator for Fields {
    fn compute(&self, batch: &tare::Batch, _: &[f64], out: &mut tare::Advantages) -> tare::Result<()> {
        let level = batch.columns.get::<f64>(W_LEVEL);
        for m in 0..batch.groups() {
            for i in batch.group(m) {
                out.advantage[i] = batch.reward[i] * if level[m].is_nan() { 7.0 } else { level[m] };
            }
        }
        Ok(())
    }
}
tare_plugin!(tare::estimator::<Fields>(tare::About::new(c!("rust_fields"), c!("0.1.0"), c!("rewards times the row's level"), c!("Apache-2.0"))));
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
case $languages in *cpp*) no_answer cpp cpp 's|^  public:|  public:\n    static uint32_t uses(const tare_value *) { return 0; }|' ;; esac
case $languages in *rust*) no_answer rust rs 's|^    fn verify(|    fn uses(_: \&tare::Values) -> u32 {\n        0\n    }\n    fn verify(|' ;; esac
case $languages in *cpp*)
    cmake -S cpp_verifier -B cmake_cpp -DCMAKE_PREFIX_PATH="$work/prefix" -DTARE_INCLUDE=/nowhere > log 2>&1 && cmake --build cmake_cpp >> log 2>&1 || { cat log; exit 1; }
    sed -i 's|const auto answer = tare::view|if (c.text.size == 3) throw std::runtime_error("three is too few");\n        const auto answer = tare::view|; s|<tare/sdk.hpp>|<tare/sdk.hpp>\n#include <stdexcept>|' cpp_verifier/cpp_verifier.cpp
    make -s -C cpp_verifier
    if echo '{"completion":"abc","answer":"b"}' | tare verify cpp_verifier/cpp_verifier.so 2> log; then echo "an exception was not an error"; exit 1; fi
    grep -q 'verifier cpp_verifier: verify: three is too few' log || { cat log; exit 1; } ;;
esac
case $languages in *rust*)
    sed -i 's|let right = |assert!(c.text.len() != 3, "three is too few"); let right = |' rust_verifier/rust_verifier.rs
    make -s -C rust_verifier
    if echo '{"completion":"abc","answer":"b"}' | tare verify rust_verifier/rust_verifier.so 2> log; then echo "a panic was not an error"; exit 1; fi
    grep -q 'verifier rust_verifier: verify: panicked: three is too few' log && [ "$(wc -l < log)" = 1 ] || { cat log; exit 1; } ;;
esac
if tare plugin new verifier other --lang fortran 2> log; then echo "an unknown language was accepted"; exit 1; fi
grep -q 'must be c, cpp or rust' log && [ ! -e other ]
echo "languages:$languages; seven kinds each"
[ -z "$skipped" ] || { echo "SKIP: $skipped"; exit 77; }
