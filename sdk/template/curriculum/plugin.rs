//! @NAME@: the plain order, without groups that give no learning signal.
//!
//!     a group is left out when max R - min R <= spread    and another one is sampled
//!
//! Replace this with your rule and its paper. keep chooses the rollouts that enter the loss
//! (KEEPS). A curriculum that chooses the rows itself sets CHOOSES and adds next; one with a state
//! sets STATEFUL and adds apply, save and load (see tare/curriculum.h for the order of the phases).
//! Every rank calls it with equal arguments, and the results must be equal: random choices use
//! host.random. An Err, or a panic, reaches the user as an error that begins with this plugin's
//! name.
#[macro_use]
mod tare;
use tare::{Groups, Host, Param, Rows, Values};

static PARAMS: [Param; 1] = [Param::float(
    c!("spread"),
    c!("0"),
    c!("the largest spread of rewards that gives no learning signal"),
    0.0,
    1e9,
    tare::SWEEPABLE,
)];

struct Mine {
    spread: f64,
}

impl tare::Curriculum for Mine {
    const KEEPS: bool = true;

    fn new(_host: &Host, values: &Values, _rows: &'static Rows) -> tare::Result<Mine> {
        Ok(Mine { spread: values.float(0) })
    }

    fn keep(&self, groups: &Groups, fate: &mut [u8]) -> tare::Result<i64> {
        let mut replace = 0;
        for m in 0..groups.groups() {
            let reward = &groups.reward()[groups.group(m)];
            let low = reward.iter().cloned().fold(f64::INFINITY, f64::min);
            let high = reward.iter().cloned().fold(f64::NEG_INFINITY, f64::max);
            if high - low > self.spread {
                continue;
            }
            fate[groups.group(m)].fill(tare::ROLLOUT_LEFT_OUT);
            replace += 1;
        }
        Ok(replace)
    }
}

tare_plugin!(
    tare::curriculum::<Mine>(
        tare::About::new(
            c!("@NAME@"),
            c!("0.1.0"),
            c!("the plain order, without groups that give no learning signal"),
            c!("Apache-2.0")
        ),
        &PARAMS
    ),
    since = 2
);
