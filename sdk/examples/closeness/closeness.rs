//! closeness: the distance between the last number of the completion and the answer.
//!
//!     reward = exp(-|x - y| / scale)    x: the completion's last number, y: the answer; 1 when equal
#[macro_use]
mod tare;
use tare::{Completion, Param, Setup, Verdict};

struct Closeness {
    scale: f64,
}

/// Returns the last run of digits with sign and point, and its position.
fn last_number(text: &[u8]) -> Option<&[u8]> {
    let end = text.iter().rposition(u8::is_ascii_digit)? + 1;
    let mut begin = end;
    while begin > 0 && (text[begin - 1].is_ascii_digit() || (text[begin - 1] == b'.' && begin > 1 && text[begin - 2].is_ascii_digit())) {
        begin -= 1;
    }
    if begin > 0 && text[begin - 1] == b'-' {
        begin -= 1;
    }
    Some(&text[begin..end])
}

fn value(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok().filter(|x: &f64| x.is_finite())
}

impl tare::Plugin for Closeness {
    const PARAMS: &'static [Param] =
        &[Param::float(c!("scale"), c!("1"), c!("distance at which the reward falls to 1/e")).above(0.0)];
    const FLAGS: u32 = tare::VERIFIER_REPEATS;
    const CALLS: u32 = tare::CALLS_CONCURRENT;

    fn new(setup: &Setup) -> tare::Result<Closeness> {
        Ok(Closeness { scale: setup.values.float(0) })
    }
}

impl tare::Verifier for Closeness {
    fn verify(&self, c: &Completion) -> tare::Result<Verdict> {
        let nothing = |code, note: &str| Ok(Verdict::new(code, 0.0).note(note));
        let y = match last_number(c.answer).and_then(value) {
            Some(y) => y,
            None => return nothing(tare::VERDICT_UNPARSABLE, "the answer of the row has no number"),
        };
        let said = match last_number(c.text) {
            Some(said) => said,
            None => return nothing(tare::VERDICT_NO_ANSWER, "no number in the completion"),
        };
        let x = match value(said) {
            Some(x) => x,
            None => return nothing(tare::VERDICT_UNPARSABLE, "not a finite number"),
        };
        let reward = (-(x - y).abs() / self.scale).exp();
        Ok(if x == y {
            Verdict::new(tare::VERDICT_CORRECT, reward).note("equal")
        } else if reward > 0.0 && reward < 1.0 {
            Verdict::new(tare::VERDICT_PARTIAL, reward).note(format!("the distance is {}", (x - y).abs()))
        } else {
            Verdict::new(tare::VERDICT_WRONG, 0.0).note("another number")
        }
        .extracted(said))
    }
}

tare_plugin!(tare::verifier::<Closeness>(tare::About::new(
    c!("closeness"),
    c!("1.0.0"),
    c!("how near the last number is to the answer"),
    c!("Apache-2.0")
)));
