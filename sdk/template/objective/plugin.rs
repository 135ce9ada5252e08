//! @NAME@: the clipped surrogate with its own bound.
//!
//!     v = -min(r A, clip(r, 1 - bound, 1 + bound) A)    r = pi / old, A: the token's advantage
//!
//! Replace this with your formula and its paper. compute writes v and its derivatives for each
//! token; the host weighs and adds them, adds the KL penalty and the entropy bonus, and computes
//! the gradient of the model. Numbers that depend on a whole sequence or group come from prepare
//! (set PREPARES). An objective with a state sets STATEFUL and adds collect_size, collect, apply,
//! save and load (see tare/objective.h for the order of the phases). A factor without a gradient is
//! computed from tokens.detached(). An Err, or a panic, reaches the user as an error that begins
//! with this plugin's name.
#[macro_use]
mod tare;
use tare::{Host, Loss, Param, TokenLoss, Tokens, Values};

static PARAMS: [Param; 1] = [Param::float(
    c!("bound"),
    c!("0.2"),
    c!("largest distance of the ratio from 1"),
    0.0,
    1.0,
    tare::ABOVE_MIN | tare::SWEEPABLE,
)];

struct Mine {
    bound: f64,
}

impl tare::Objective for Mine {
    fn new(_host: &Host, values: &Values, _loss: &Loss) -> tare::Result<Mine> {
        Ok(Mine { bound: values.float(0) })
    }

    fn compute(&self, tokens: &Tokens, out: &mut TokenLoss) -> tare::Result<()> {
        for i in 0..tokens.len() {
            let a = tokens.advantage()[i];
            let r = (tokens.logprob()[i] as f64 - tokens.old_logprob()[i] as f64).exp();
            let bounded = r.max(1.0 - self.bound).min(1.0 + self.bound);
            let clipped = bounded * a < r * a;
            out.value[i] = if clipped { -bounded * a } else { -r * a };
            out.dlogprob[i] = if clipped { 0.0 } else { -r * a }; // dr/dlogp = r
            out.clipped[i] = clipped as u8;
        }
        Ok(())
    }
}

tare_plugin!(
    tare::objective::<Mine>(
        tare::About::new(c!("@NAME@"), c!("0.1.0"), c!("the clipped surrogate with its own bound"), c!("Apache-2.0")),
        &PARAMS
    ),
    since = 2
);
