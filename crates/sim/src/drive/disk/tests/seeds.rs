//! Published measurements.

use super::*;
use crate::time::seconds;

/// Megabytes a second of a stream of commands of 64 KiB, one at a time.
fn stream(model: &Model, op: Op, offset: u64, commands: u64) -> f64 {
    let mut bench = Bench::new(model, 1);
    for k in 0..commands {
        bench.one(op, offset + k * 65_536, 65_536);
    }
    if op == Op::Write {
        bench.flush();
    }
    #[allow(clippy::cast_precision_loss, reason = "a rate")]
    let bytes = (commands * 65_536) as f64;
    bytes / seconds(bench.now) / 1e6
}

#[test]
fn streams_are_read_as_fast_as_published_aligned_or_not() {
    for (name, published) in [("wd10ears", 104.5), ("wd10eads", 84.6), ("seed-004", 132.5)] {
        for offset in [0, 512] {
            let rate = stream(&model(name, &[]), Op::Read, offset, 2048);
            assert!((rate / published - 1.0).abs() < 0.02, "{name}+{offset}: {rate:.1} MB/s, published {published}");
        }
    }
}
