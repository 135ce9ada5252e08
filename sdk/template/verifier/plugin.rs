//! @NAME@: correct when the completion contains the answer.
//!
//! Replace this with your rule. A verdict is not a status: return Err only when the call could not
//! be served at all. Long loops check deadline_ns. The text taken as the answer is written to
//! `extracted`, the reason to `note`; the host cuts both. Other fields of the row are in `row`, as
//! JSON (with a crate of your choice). A verifier that does not read the answer says so with uses.
#[macro_use]
mod tare;
use tare::{Completion, Param, Setup, Verdict};

struct Mine {
    reward: f64,
}

impl tare::Plugin for Mine {
    const PARAMS: &'static [Param] = &[Param::float(c!("reward"), c!("1"), c!("reward of a correct completion"))];
    const FLAGS: u32 = tare::VERIFIER_REPEATS; // the same completion, the same verdict
    const CALLS: u32 = tare::CALLS_CONCURRENT; // an instance changes nothing, so any thread may call it

    fn new(setup: &Setup) -> tare::Result<Mine> {
        Ok(Mine { reward: setup.values.float(0) })
    }
}

impl tare::Verifier for Mine {
    fn verify(&self, c: &Completion) -> tare::Result<Verdict> {
        let right = !c.answer.is_empty() && c.text.windows(c.answer.len()).any(|part| part == c.answer);
        Ok(if right {
            Verdict::new(tare::VERDICT_CORRECT, self.reward).extracted(c.answer).note("the completion contains the answer")
        } else {
            Verdict::new(tare::VERDICT_WRONG, 0.0).note("the completion does not contain the answer")
        })
    }
}

tare_plugin!(tare::verifier::<Mine>(tare::About::new(
    c!("@NAME@"),
    c!("0.1.0"),
    c!("correct when the completion contains the answer"),
    c!("Apache-2.0")
)));
