//! closeness: the distance between the last number of the completion and the answer.
//!
//!     reward = exp(-|x - y| / scale)    x: the completion's last number, y: the answer; 1 when equal
#[macro_use]
mod tare;
use tare::{Answer, Host, Param, Values, Verdict};

static PARAMS: [Param; 1] =
    [Param::float(c!("scale"), c!("1"), c!("distance at which the reward falls to 1/e"), 0.0, 1e300, tare::ABOVE_MIN)];

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

impl tare::Verifier for Closeness {
    fn new(_host: &Host, values: &Values) -> tare::Result<Closeness> {
        Ok(Closeness { scale: values.float(0) })
    }

    fn verify(&mut self, a: &Answer) -> tare::Result<Verdict> {
        let nothing = |code, reason| Ok(Verdict { code, reward: 0.0, extracted: Vec::new(), reason });
        let y = match last_number(a.answer).and_then(value) {
            Some(y) => y,
            None => return nothing(tare::UNPARSABLE, c!("the answer of the row has no number")),
        };
        let said = match last_number(a.completion) {
            Some(said) => said,
            None => return nothing(tare::NO_ANSWER, c!("no number in the completion")),
        };
        let x = match value(said) {
            Some(x) => x,
            None => return nothing(tare::UNPARSABLE, c!("not a finite number")),
        };
        let reward = (-(x - y).abs() / self.scale).exp();
        let code = if x == y {
            tare::CORRECT
        } else if reward > 0.0 && reward < 1.0 {
            tare::PARTIAL
        } else {
            tare::WRONG
        };
        let (reward, reason) = if code == tare::WRONG { (0.0, c!("another number")) } else { (reward, c!("distance")) };
        Ok(Verdict { code, reward, extracted: said.to_vec(), reason })
    }
}

tare_plugin!(tare::verifier::<Closeness>(
    tare::About {
        threading: tare::INSTANCE_PER_THREAD,
        ..tare::About::new(c!("closeness"), c!("1.0.0"), c!("how near the last number is to the answer"), c!("Apache-2.0"))
    },
    &PARAMS
));
