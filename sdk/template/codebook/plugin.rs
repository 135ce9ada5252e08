//! @NAME@: a row's cluster is a hash of its text, modulo K.
//!
//! Replace this with your assignment. A codebook that takes embeddings returns their width from
//! dim; one that takes rows returns 0. The cluster of a row may not depend on the other rows in the
//! call (see tare/clusterer.h).
#[macro_use]
mod tare;
use tare::{Host, Param, Text, Values};

static PARAMS: [Param; 1] =
    [Param::int(c!("clusters"), c!("8"), c!("K, how many clusters"), 1.0, 1000000.0, tare::LOCKED_ON_RESUME)];

struct Mine {
    clusters: i64,
}

impl tare::Codebook for Mine {
    fn new(_host: &Host, values: &Values) -> tare::Result<Mine> {
        Ok(Mine { clusters: values.int(0) })
    }

    fn size(&self) -> i64 {
        self.clusters
    }

    fn dim(&self) -> i64 {
        0 // rows, not embeddings
    }

    fn assign(&self, _embedding: &[f32], rows: &[Text], cluster: &mut [i32], distance: &mut [f32]) -> tare::Result<()> {
        for (row, k) in rows.iter().zip(cluster.iter_mut()) {
            let fnv = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(1099511628211);
            *k = (row.bytes().iter().fold(14695981039346656037, fnv) % self.clusters as u64) as i32;
        }
        distance.fill(0.0);
        Ok(())
    }
}

tare_plugin!(tare::codebook::<Mine>(
    tare::About::new(c!("@NAME@"), c!("0.1.0"), c!("a hash of the row, modulo K"), c!("Apache-2.0")),
    &PARAMS
));
