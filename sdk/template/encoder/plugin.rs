//! @NAME@: counts of bytes, hashed into D buckets, scaled to length one.
//!
//!     e[d] = #{bytes b of the text: b mod D = d},   E(q) = e / |e|    zero for the empty text
//!
//! Replace this with your encoder. A text's embedding may not depend on the other texts in the
//! call. An encoder that learns from a corpus sets STATEFUL and FITS and adds fit, save and load;
//! one whose weights come from a file adds identity (see tare/encoder.h).
#[macro_use]
mod tare;
use tare::{Param, Setup, Sizes, Text};

struct Mine {
    dim: usize,
}

impl tare::Plugin for Mine {
    const PARAMS: &'static [Param] = &[Param::int(c!("dim"), c!("32"), c!("number of buckets D")).min(1.0).max(4096.0)];
    const CALLS: u32 = tare::CALLS_CONCURRENT; // an instance changes nothing, so any thread may call it

    fn new(setup: &Setup) -> tare::Result<Mine> {
        Ok(Mine { dim: setup.values.int(0) as usize })
    }

    fn sizes(&self) -> Sizes {
        Sizes { dim: self.dim as i64, ..Sizes::default() }
    }
}

impl tare::Encoder for Mine {
    fn encode(&self, texts: &[Text], out: &mut [f32]) -> tare::Result<()> {
        for (text, e) in texts.iter().zip(out.chunks_mut(self.dim)) {
            e.fill(0.0);
            for byte in text.bytes() {
                e[*byte as usize % self.dim] += 1.0;
            }
            let length = e.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
            if length > 0.0 {
                e.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
            }
        }
        Ok(())
    }
}

tare_plugin!(tare::encoder::<Mine>(tare::About::new(
    c!("@NAME@"),
    c!("0.1.0"),
    c!("counts of bytes in buckets"),
    c!("Apache-2.0")
)));
