//! @NAME@: the plain order, without groups that give no learning signal.
//!
//!     a group is left out when max R - min R <= spread    and another one is sampled
//!
//! Replace this with your rule and its paper. keep chooses the rollouts that enter the loss
//! (KEEPS). A curriculum that chooses the rows itself sets CHOOSES and adds next, and one with a
//! state sets STATEFUL and adds apply, save and load (see tare/curriculum.h for the order of the
//! phases). Every rank calls it with equal arguments, and the results must be equal: random choices
//! use the host's random numbers. An Err, or a panic, reaches the user as an error that begins with
//! this plugin's name.
#[macro_use]
mod tare;
use tare::{Batch, Param, Setup};

struct Mine {
    spread: f64,
}

impl tare::Plugin for Mine {
    const PARAMS: &'static [Param] = &[Param::float(c!("spread"), c!("0"), c!("largest spread of rewards that gives no learning signal"))
        .min(0.0)
        .flags(tare::PARAM_SWEEPABLE)];

    fn new(setup: &Setup) -> tare::Result<Mine> {
        Ok(Mine { spread: setup.values.float(0) })
    }
}

impl tare::Curriculum for Mine {
    const KEEPS: bool = true;

    fn keep(&self, groups: &Batch, fate: &mut [u8]) -> tare::Result<i64> {
        let mut extra_groups = 0;
        for m in 0..groups.groups() {
            let reward = &groups.reward[groups.group(m)];
            let low = reward.iter().cloned().fold(f64::INFINITY, f64::min);
            let high = reward.iter().cloned().fold(f64::NEG_INFINITY, f64::max);
            if high - low > self.spread {
                continue;
            }
            fate[groups.group(m)].fill(tare::FATE_LEFT_OUT);
            extra_groups += 1;
        }
        Ok(extra_groups)
    }
}

tare_plugin!(tare::curriculum::<Mine>(tare::About::new(
    c!("@NAME@"),
    c!("0.1.0"),
    c!("the plain order, without groups that give no learning signal"),
    c!("Apache-2.0")
)));
