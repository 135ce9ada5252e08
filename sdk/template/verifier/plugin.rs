//! @NAME@: correct when the completion contains the answer.
//!
//! Replace this with your rule. A verdict is not a status: return Err only when the call could not
//! be served at all. Check deadline_ns in long loops. The text taken as the answer goes into
//! `extracted`; the host copies as much of it as its buffer holds.
#[macro_use]
mod tare;
use tare::{Answer, Host, Param, Values, Verdict};

static PARAMS: [Param; 1] = [Param::float(c!("reward"), c!("1"), c!("reward of a right completion"), 0.0, 0.0, 0)];

struct Mine {
    reward: f64,
}

impl tare::Verifier for Mine {
    fn new(_host: &Host, values: &Values) -> tare::Result<Mine> {
        Ok(Mine { reward: values.float(0) })
    }

    fn verify(&mut self, a: &Answer) -> tare::Result<Verdict> {
        let right = !a.answer.is_empty() && a.completion.windows(a.answer.len()).any(|part| part == a.answer);
        Ok(if right {
            Verdict {
                code: tare::CORRECT,
                reward: self.reward,
                extracted: a.answer.to_vec(),
                reason: c!("the completion contains the answer"),
            }
        } else {
            Verdict {
                code: tare::WRONG,
                reward: 0.0,
                extracted: Vec::new(),
                reason: c!("the completion does not contain the answer"),
            }
        })
    }
}

tare_plugin!(tare::verifier::<Mine>(
    tare::About {
        threading: tare::INSTANCE_PER_THREAD,
        ..tare::About::new(c!("@NAME@"), c!("0.1.0"), c!("right when the completion contains the answer"), c!("Apache-2.0"))
    },
    &PARAMS
));
