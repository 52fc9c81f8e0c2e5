//! What one run of a workload measured.

use crate::error::Error;
use hdrhistogram::Histogram;
use trueline_geom::error::Errno;

/// One run.
#[derive(Clone, Debug)]
pub struct Run {
    /// From the first request to the end of the last.
    pub ns: u64,
    /// Requests done.
    pub ops: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Requests that failed, and the first failure in words.
    pub errors: u64,
    /// The first of them.
    pub first_error: Option<String>,
    /// From asking to done, in ns: 1 ns to an hour, to three digits.
    pub latency: Histogram<u64>,
    /// The sum of them, exact.
    pub waited_ns: u64,
    /// The longest of them, exact.
    pub longest_ns: u64,
}

/// The longest latency that is told apart: an hour.
const LONGEST: u64 = 3_600_000_000_000;

impl Run {
    /// Nothing yet.
    pub fn new() -> Run {
        #[allow(clippy::expect_used, reason = "the bounds are constants that the histogram takes")]
        let latency = Histogram::new_with_bounds(1, LONGEST, 3).expect("constant bounds");
        Run { ns: 0, ops: 0, bytes: 0, errors: 0, first_error: None, latency, waited_ns: 0, longest_ns: 0 }
    }

    /// Seconds.
    #[allow(clippy::cast_precision_loss, reason = "for people and statistics")]
    pub fn seconds(&self) -> f64 {
        self.ns as f64 / 1e9
    }

    /// Requests a second; 0 if no time passed.
    #[allow(clippy::cast_precision_loss, reason = "for people and statistics")]
    pub fn rate(&self) -> f64 {
        if self.ns == 0 { 0.0 } else { self.ops as f64 / self.seconds() }
    }

    /// ns from asking to done, the mean; 0 of no requests.
    #[allow(clippy::cast_precision_loss, reason = "for people and statistics")]
    pub fn mean_ns(&self) -> f64 {
        if self.ops == 0 { 0.0 } else { self.waited_ns as f64 / self.ops as f64 }
    }

    /// One request failed: what was attempted, and where.
    pub fn fail(&mut self, attempt: &str, offset: u64, errno: Errno) {
        self.errors += 1;
        self.first_error.get_or_insert_with(|| Error::io(attempt, offset, errno).to_string());
    }

    /// One request is done.
    pub fn record(&mut self, bytes: u64, latency_ns: u64) {
        self.record_alike(&mut Alike { latency_ns, ops: 1, bytes });
    }

    /// Requests that took equally long are done; `alike` is empty afterwards.
    pub fn record_alike(&mut self, alike: &mut Alike) {
        let Alike { latency_ns, ops, bytes } = std::mem::take(alike);
        if ops > 0 {
            self.ops += ops;
            self.bytes = self.bytes.saturating_add(bytes);
            self.waited_ns = self.waited_ns.saturating_add(latency_ns.saturating_mul(ops));
            self.longest_ns = self.longest_ns.max(latency_ns);
            self.latency.saturating_record_n(latency_ns.max(1), ops);
        }
    }

    /// This run and another after it.
    pub fn and(&mut self, other: &Run) {
        self.ns += other.ns;
        self.ops += other.ops;
        self.bytes += other.bytes;
        self.errors += other.errors;
        self.first_error = self.first_error.take().or_else(|| other.first_error.clone());
        // Both histograms have the same bounds, so this cannot fail.
        let _ = self.latency.add(&other.latency);
        self.waited_ns = self.waited_ns.saturating_add(other.waited_ns);
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

/// Requests that took equally long, not yet recorded: looking up a latency's place costs more than the rest of a request's way back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alike {
    /// How long each of them took.
    pub latency_ns: u64,
    /// How many there are.
    pub ops: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Default for Run {
    fn default() -> Run {
        Run::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_alike_and_runs_together_count_as_one_by_one() {
        let (mut each, mut alike, mut other) = (Run::new(), Run::new(), Run::new());
        for latency_ns in [700, 700, 700, 9, 9] {
            each.record(512, latency_ns);
        }
        alike.record_alike(&mut Alike { latency_ns: 700, ops: 3, bytes: 1536 });
        alike.record_alike(&mut Alike::default());
        other.record(512, 9);
        other.record(512, 9);
        alike.and(&other);
        let told = |run: &Run| (run.ops, run.bytes, run.waited_ns, run.longest_ns, run.latency.len(), run.latency.max());
        assert_eq!(told(&alike), told(&each));
        assert_eq!(told(&each), (5, 2560, 2118, 700, 5, 700));
    }
}
