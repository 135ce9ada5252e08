//! @NAME@: the clipped surrogate with its own bound.
//!
//!     v = -min(r A, clip(r, 1 - bound, 1 + bound) A)    r = pi / old, A: the token's advantage
//!
//! Replace this with your formula and its paper. compute writes v and its derivatives for each
//! token; the host weighs and adds them, adds the KL penalty and the entropy bonus, and computes
//! the gradient of the model. Numbers that depend on a whole rollout or group come from annotate
//! (set ANNOTATES). An objective with a state sets STATEFUL and COLLECTS and adds sizes, collect,
//! apply, save and load (see tare/objective.h for the order of the phases). A factor without a
//! gradient is computed from `detached`. An Err, or a panic, reaches the user as an error that
//! begins with this plugin's name.
#[macro_use]
mod tare;
use tare::{Param, Setup, TokenLoss, Tokens};

struct Mine {
    bound: f64,
}

impl tare::Plugin for Mine {
    const PARAMS: &'static [Param] = &[Param::float(c!("bound"), c!("0.2"), c!("largest distance of the ratio from 1"))
        .above(0.0)
        .max(1.0)
        .flags(tare::PARAM_SWEEPABLE)];
    const FLAGS: u32 = tare::OBJECTIVE_OWN_CLIP; // loss.clip is not read
    const CALLS: u32 = tare::CALLS_CONCURRENT; // an instance changes nothing, so any thread may call it

    fn new(setup: &Setup) -> tare::Result<Mine> {
        Ok(Mine { bound: setup.values.float(0) })
    }
}

impl tare::Objective for Mine {
    fn compute(&self, tokens: &Tokens, out: &mut TokenLoss) -> tare::Result<()> {
        for i in 0..tokens.len() {
            let a = tokens.advantage[i];
            let r = (tokens.logprob[i] as f64 - tokens.old_logprob[i] as f64).exp();
            let bounded = r.max(1.0 - self.bound).min(1.0 + self.bound);
            let clipped = bounded * a < r * a;
            out.value[i] = if clipped { -bounded * a } else { -r * a };
            out.dlogprob[i] = if clipped { 0.0 } else { -r * a }; // dr/dlogp = r
            out.clipped[i] = clipped as u8;
        }
        Ok(())
    }
}

tare_plugin!(tare::objective::<Mine>(tare::About::new(
    c!("@NAME@"),
    c!("0.1.0"),
    c!("the clipped surrogate with its own bound"),
    c!("Apache-2.0")
)));
