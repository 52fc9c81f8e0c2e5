//! What the drives of a run did, as results tell it.

use crate::result::Spent;
use crate::run::Run;
use trueline_sim::counters::Counters;
use trueline_sim::time::seconds;

/// Quantiles of a latency curve.
const QUANTILES: [f64; 15] = [0.0, 0.01, 0.05, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0];

/// The sum over the drives.
pub(super) fn spent(drives: &[Counters]) -> Spent {
    let mut sum = Counters::default();
    for drive in drives {
        sum += *drive;
    }
    #[allow(clippy::cast_precision_loss, reason = "for people")]
    let write_amplification = (sum.bytes_written > 0).then(|| sum.media_written as f64 / sum.bytes_written as f64);
    Spent {
        drives: drives.len(),
        media_ops: sum.media_ops,
        rmw: sum.rmw,
        rmw_reads: sum.rmw_reads,
        lost_revolutions: sum.lost_revolutions,
        write_amplification,
        host_reads: 0,
        setup: seconds(sum.setup),
        seek: seconds(sum.seek),
        rotate: seconds(sum.rotate),
        transfer: seconds(sum.transfer),
        idle: seconds(sum.idle),
    }
}

/// Latency at quantiles, ascending.
pub(super) fn curve(run: &Run) -> Vec<(f64, u64)> {
    if run.latency.is_empty() {
        return Vec::new();
    }
    QUANTILES.iter().map(|&quantile| (quantile, run.latency.value_at_quantile(quantile))).collect()
}
