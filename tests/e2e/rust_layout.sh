#!/usr/bin/env bash
# Compares the structs and constants of sdk/rust/tare.rs with the golden layout of the C headers:
# every size, offset and number.
source "$(dirname "$0")/common.inc"
command -v rustc > /dev/null || skip "no rustc"
cp "$SOURCE/sdk/rust/tare.rs" .
# A program inside the module, so that it sees private members.
awk '
BEGIN {
    split("tare_error ErrorBuffer tare_text Text tare_param Param tare_value Value tare_want Want tare_column RawColumn tare_stream Stream " \
          "tare_host RawHost tare_embed_v1 EmbedExtension tare_progress_v1 ProgressExtension tare_setup RawSetup tare_sizes RawSizes tare_update RawUpdate tare_head Head " \
          "tare_batch RawBatch tare_advantages RawAdvantages tare_estimator EstimatorTable tare_completion RawCompletion " \
          "tare_verdict RawVerdict tare_segment Segment tare_waiting RawWaiting tare_verifier VerifierTable tare_encoder EncoderTable " \
          "tare_prompts RawPrompts tare_assignment RawAssignment tare_codebook CodebookTable tare_loss Loss tare_tokens RawTokens " \
          "tare_token_loss RawTokenLoss tare_objective ObjectiveTable tare_dataset RawDataset tare_draw RawDraw tare_choice RawChoice " \
          "tare_kept RawKept tare_curriculum CurriculumTable tare_message RawMessage tare_call Call tare_episode RawEpisode tare_act RawAct " \
          "tare_observation Observation tare_environment EnvironmentTable tare_descriptor Descriptor tare_plugin PluginFile", pair)
    split("struct_size flags create destroy save load describe identity select", names)
    for (i in names) in_head[names[i]] = 1
    for (i = 1; i in pair; i += 2) rust[pair[i]] = pair[i + 1]
    print "macro_rules! member { ($t:ty, $name:expr, $($f:tt)+) => {{ let u = std::mem::MaybeUninit::<$t>::uninit(); unsafe {"
    print "  let p = std::ptr::addr_of!((*u.as_ptr()).$($f)+); fn size<T>(_: *const T) -> usize { std::mem::size_of::<T>() }"
    print "  println!(\"  {:4} {:4} {}\", p as usize - u.as_ptr() as usize, size(p), $name); } }} }"
    print "fn main() {"
}
$2 == "size" {
    s = rust[$1]
    if (s == "") { print "compile_error!(\"" $1 " is not in tare.rs\");"; next }
    printf "println!(\"%s size {} align {}\", std::mem::size_of::<%s>(), std::mem::align_of::<%s>());\n", $1, s, s
    next
}
$2 == "=" { name = $1; sub(/^TARE_/, "", name); printf "println!(\"%s = {}\", %s as i64);\n", $1, name; next }
{ field = (s ~ /Table$/ && $3 in in_head ? "head." : "") ($3 == "type" ? "kind" : $3); printf "member!(%s, \"%s\", %s);\n", s, $3, field }
END { print "}" }' "$SOURCE/sdk/abi/v1.layout" > main.rs
cat tare.rs main.rs > layout.rs
rustc -A warnings --edition 2021 -o layout layout.rs 2> rustc.log || bad "tare.rs lacks a part of the headers: $(head -n 20 rustc.log)"
if ./layout > now && diff now "$SOURCE/sdk/abi/v1.layout" > difference; then ok; else bad "tare.rs differs from the headers: $(cat difference)"; fi
[ "$(wc -l < now)" -gt 200 ] && ok || bad "only $(wc -l < now) lines were compared"
# The comparison notices two swapped members.
sed -i '/^    baseline: \*mut f64,$/{N;s/\(.*\)\n\(.*\)/\2\n\1/}' tare.rs
cat tare.rs main.rs > layout.rs
rustc -A warnings --edition 2021 -o layout layout.rs 2> rustc.log && ./layout > changed
if [ -s changed ] && ! diff -q changed now > /dev/null; then ok; else bad "two swapped members were not noticed"; fi
# A plugin that threads could break does not compile, and rustc prints the reason.
cp "$SOURCE/sdk/rust/tare.rs" .
# plugin MESSAGE MEMBER [OPTION]: compiles a verifier with this member; it fails with MESSAGE, or compiles when
# MESSAGE is empty
plugin() {
    cat > plugin.rs <<RUST
#[macro_use]
mod tare;
struct Mine {
    #[allow(dead_code)]
    member: $2,
}
impl tare::Plugin for Mine {
    const CALLS: u32 = tare::CALLS_CONCURRENT;
    fn new(_: &tare::Setup) -> tare::Result<Mine> {
        Ok(Mine { member: Default::default() })
    }
}
impl tare::Verifier for Mine {
    fn verify(&self, _: &tare::Completion) -> tare::Result<tare::Verdict> {
        Ok(tare::Verdict::new(tare::VERDICT_CORRECT, 1.0))
    }
}
tare_plugin!(tare::verifier::<Mine>(tare::About::new(c!("mine"), c!("1.0.0"), c!("a test"), c!("Apache-2.0"))));
RUST
    local status=0
    rustc -A warnings --edition 2021 --crate-type cdylib ${3:-} -o plugin.so plugin.rs 2> said || status=$?
    if { [ -z "$1" ] && [ $status = 0 ]; } || { [ -n "$1" ] && [ $status != 0 ] && grep -q "$1" said; }; then ok
    else bad "$2: expected '$1', got: $(head -n 20 said)"; fi
}
plugin "cannot be sent between threads" "std::rc::Rc<i32>"
plugin "cannot be shared between threads" "std::cell::Cell<i32>"
plugin "must not end the program" i32 "-C panic=abort"
plugin "" "std::sync::Mutex<i32>"
if echo '{"completion":"a","answer":"b"}' | "$TARE" verify ./plugin.so 2> said | grep -q '"verdict":"correct"'; then ok; else bad "a verifier of several threads: $(cat said)"; fi
done_
