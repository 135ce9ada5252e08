//! @NAME@: rewards minus the mean of their group.
//!
//!     A[i] = scale (R[i] - mu)    R: rewards of one group, n rollouts; mu: their mean
//!
//! Replace this with your formula, its paper and its conventions: the advantage in a group of one
//! rollout, and in a group of equal rewards. Tokens, verdicts or fields of the data set's rows come
//! as columns: name them in a table of wants (see tare/base.h, `tare plugin columns`). An estimator
//! with a state sets STATEFUL and COLLECTS and adds sizes, collect, apply, save and load (see
//! tare/estimator.h for the order of the phases). An Err, or a panic, reaches the user as an error
//! that begins with this plugin's name.
#[macro_use]
mod tare;
use tare::{Advantages, Batch, Param, Setup};

struct Mine {
    scale: f64,
}

impl tare::Plugin for Mine {
    const PARAMS: &'static [Param] = &[Param::float(c!("scale"), c!("1"), c!("multiplies the advantages"))
        .above(0.0)
        .flags(tare::PARAM_SWEEPABLE)];
    const CALLS: u32 = tare::CALLS_CONCURRENT; // an instance changes nothing, so any thread may call it

    fn new(setup: &Setup) -> tare::Result<Mine> {
        Ok(Mine { scale: setup.values.float(0) })
    }
}

impl tare::Estimator for Mine {
    fn compute(&self, batch: &Batch, _prepared: &[f64], out: &mut Advantages) -> tare::Result<()> {
        for m in 0..batch.groups() {
            let rollouts = batch.group(m);
            let rewards = &batch.reward[rollouts.clone()];
            // relative to the first reward, so that equal rewards give exactly 0
            let shift: f64 = rewards.iter().map(|r| r - rewards[0]).sum();
            let mu = rewards[0] + shift / rewards.len() as f64;
            for i in rollouts {
                out.advantage[i] = self.scale * (batch.reward[i] - mu);
            }
            out.baseline[m] = mu; // for the metrics; scale and confidence stay NaN, which means none
        }
        Ok(())
    }
}

tare_plugin!(tare::estimator::<Mine>(tare::About::new(
    c!("@NAME@"),
    c!("0.1.0"),
    c!("rewards minus the mean of their group"),
    c!("Apache-2.0")
)));
