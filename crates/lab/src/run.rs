//! The measurements of one run of a workload.

use crate::error::Error;
use hdrhistogram::Histogram;
use trueline_geom::base::error::Errno;

/// The figures of one run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Nanoseconds from the first request to the completion of the last.
    pub ns: u64,
    /// The number of requests done.
    pub ops: u64,
    /// The bytes of these requests.
    pub bytes: u64,
    /// The number of failed requests.
    pub errors: u64,
    /// The message of the first failure.
    pub first_error: Option<String>,
    /// Latencies in nanoseconds from submission to completion, to three digits: 1 ns to thirty
    /// years.
    pub latency: Histogram<u64>,
    /// The exact sum of the latencies in nanoseconds.
    pub waited_ns: u64,
    /// The exact longest latency in nanoseconds.
    pub longest_ns: u64,
}

/// The greatest latency the histogram holds, in ns. A request of a slow drive may take hours of
/// virtual time, at no real cost.
const LONGEST: u64 = 1_000_000_000_000_000_000;

/// The longest rest after a run, in ns. Assumed: the garbage that a drive collects after writes is
/// its own affair, and a measurement of 22 runs is to gain no more than 22 s.
const LONGEST_REST: u64 = 1_000_000_000;

impl Run {
    /// A run without any requests.
    pub fn new() -> Run {
        #[allow(clippy::expect_used, reason = "the bounds are constants that the histogram takes")]
        let latency = Histogram::new_with_bounds(1, LONGEST, 3).expect("constant bounds");
        Run {
            ns: 0,
            ops: 0,
            bytes: 0,
            errors: 0,
            first_error: None,
            latency,
            waited_ns: 0,
            longest_ns: 0,
        }
    }

    /// The duration in seconds.
    #[allow(clippy::cast_precision_loss, reason = "for people and statistics")]
    pub fn seconds(&self) -> f64 {
        self.ns as f64 / 1e9
    }

    /// Requests a second; 0 if no time passed.
    #[allow(clippy::cast_precision_loss, reason = "for people and statistics")]
    pub fn rate(&self) -> f64 {
        if self.ns == 0 { 0.0 } else { self.ops as f64 / self.seconds() }
    }

    /// The mean latency in nanoseconds; 0 without requests.
    #[allow(clippy::cast_precision_loss, reason = "for people and statistics")]
    pub fn mean_ns(&self) -> f64 {
        if self.ops == 0 { 0.0 } else { self.waited_ns as f64 / self.ops as f64 }
    }

    /// The rest after this run before one that writes, in ns: as long as it took, at most a second.
    pub fn rest_ns(&self) -> u64 {
        self.ns.min(LONGEST_REST)
    }

    /// Counts a failed request; the first one's attempt, offset and error are kept.
    pub fn fail(&mut self, attempt: &str, offset: u64, errno: Errno) {
        self.errors += 1;
        self.first_error.get_or_insert_with(|| Error::io(attempt, offset, errno).to_string());
    }

    /// Counts a finished request of `bytes`.
    pub fn record(&mut self, bytes: u64, latency_ns: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.record_alike(latency_ns, 1);
    }

    /// Adds the requests of a tally.
    pub fn add(&mut self, tally: &Tally) {
        self.bytes = self.bytes.saturating_add(tally.bytes);
        for (latency_ns, &ops) in (0..).zip(&tally.counts) {
            if ops > 0 {
                self.record_alike(latency_ns, ops);
            }
        }
    }

    fn record_alike(&mut self, latency_ns: u64, ops: u64) {
        self.ops += ops;
        self.waited_ns = self.waited_ns.saturating_add(latency_ns.saturating_mul(ops));
        self.longest_ns = self.longest_ns.max(latency_ns);
        self.latency.saturating_record_n(latency_ns.max(1), ops);
    }

    /// Adds another run, made after this one.
    pub fn append(&mut self, other: &Run) {
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

/// Finished requests not yet recorded in the histogram, counted by latency in nanoseconds. A lookup
/// of the histogram's bucket costs more than all other work on a fast request's completion.
#[derive(Clone, Debug)]
pub struct Tally {
    counts: Vec<u64>,
    bytes: u64,
}

/// The latencies a tally can count, in nanoseconds: those of requests fast enough for the lookup to
/// matter.
const FAST_NS: usize = 1 << 15;

impl Tally {
    /// A tally without any requests.
    pub fn new() -> Tally {
        Tally { counts: vec![0; FAST_NS], bytes: 0 }
    }

    /// Counts one request. False if it took too long for the tally and must be recorded in the run
    /// instead.
    #[inline]
    #[must_use]
    pub fn count(&mut self, latency_ns: u64, bytes: u64) -> bool {
        let Some(ops) = usize::try_from(latency_ns).ok().and_then(|at| self.counts.get_mut(at))
        else {
            return false;
        };
        *ops += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        true
    }
}

impl Default for Tally {
    fn default() -> Tally {
        Tally::new()
    }
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
    fn quantiles_of_hours_are_hours() {
        let mut run = Run::new();
        let day = 86_400_000_000_000;
        for hours in 1..=24 {
            run.record(512, hours * day / 24);
        }
        let (half, most) = (run.latency.value_at_quantile(0.5), run.latency.value_at_quantile(1.0));
        assert!(
            half.abs_diff(day / 2) < day / 1000 && most.abs_diff(day) < day / 500,
            "{half} {most}"
        );
    }

    #[test]
    fn a_rest_is_as_long_as_the_run_and_bounded() {
        let after = |ns| Run { ns, ..Run::new() }.rest_ns();
        assert_eq!((after(0), after(7_000), after(u64::MAX)), (0, 7_000, 1_000_000_000));
    }

    #[test]
    fn what_is_tallied_and_runs_together_count_as_one_by_one() {
        let long = FAST_NS as u64;
        let (mut each, mut fast, mut other) = (Run::new(), Run::new(), Run::new());
        let mut tally = Tally::new();
        for latency_ns in [700, 0, 700, long - 1, long, 1 << 40, 9, 9] {
            each.record(512, latency_ns);
        }
        for latency_ns in [700, 0, 700, long - 1, long, 1 << 40] {
            let counted = tally.count(latency_ns, 512);
            assert_eq!(counted, latency_ns < long, "{latency_ns}");
            if !counted {
                fast.record(512, latency_ns);
            }
        }
        fast.add(&tally);
        other.record(512, 9);
        other.record(512, 9);
        fast.append(&other);
        let told = |run: &Run| (run.ops, run.bytes, run.waited_ns, run.longest_ns);
        assert_eq!(told(&fast), told(&each));
        assert_eq!(fast.latency, each.latency);
        assert_eq!(told(&each), (8, 4096, 1418 + 2 * long - 1 + (1 << 40), 1 << 40));
    }
}
