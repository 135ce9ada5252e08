//! @NAME@: a row's cluster is a hash of its text, modulo K.
//!
//! Replace this with your assignment. A codebook of embeddings gives their width as dim; one of
//! rows leaves it 0. The cluster of a row may not depend on the other rows in the call. A codebook
//! that learns the values that occur sets STATEFUL and FITS and adds fit, save and load (see
//! tare/codebook.h).
#[macro_use]
mod tare;
use tare::{Param, Prompts, Setup, Sizes};

struct Mine {
    clusters: i64,
}

impl tare::Plugin for Mine {
    const PARAMS: &'static [Param] = &[Param::int(c!("clusters"), c!("8"), c!("number of clusters K"))
        .min(1.0)
        .max(1000000.0)
        .flags(tare::PARAM_LOCKED_ON_RESUME)];
    const CALLS: u32 = tare::CALLS_CONCURRENT; // an instance changes nothing, so any thread may call it

    fn new(setup: &Setup) -> tare::Result<Mine> {
        Ok(Mine { clusters: setup.values.int(0) })
    }

    fn sizes(&self) -> Sizes {
        Sizes { clusters: self.clusters, ..Sizes::default() } // dim stays 0: rows, not embeddings
    }
}

impl tare::Codebook for Mine {
    fn assign(&self, prompts: &Prompts, cluster: &mut [i32], _distance: &mut [f32]) -> tare::Result<()> {
        if prompts.rows.len() != prompts.n {
            return tare::fail(tare::E_INVALID, "the rows are missing");
        }
        for (row, k) in prompts.rows.iter().zip(cluster.iter_mut()) {
            let fnv = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(1099511628211);
            *k = (row.bytes().iter().fold(14695981039346656037, fnv) % self.clusters as u64) as i32;
        }
        Ok(())
    }
}

tare_plugin!(tare::codebook::<Mine>(tare::About::new(
    c!("@NAME@"),
    c!("0.1.0"),
    c!("a hash of the row, modulo K"),
    c!("Apache-2.0")
)));
