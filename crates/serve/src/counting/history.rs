//! The last minutes of what was counted, a sample a second: a page that is opened later shows what was before it.

use super::counting::Counting;
use crate::command::serve::summary::{Deeds, Sample, Served, Verdicts};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use trueline_serve::layer::counted::Waits;

/// Samples that are kept: ten minutes of them.
const KEPT: usize = 600;
const PERIOD: Duration = Duration::from_secs(1);

/// Samples, the oldest first.
#[derive(Default)]
pub(super) struct History {
    samples: VecDeque<Sample>,
    /// When the next is due; at once where there is none.
    due: Option<Instant>,
    /// Latencies up to the last sample.
    waits: Waits,
}

impl History {
    /// Takes a sample, if it is time at `now`.
    pub(super) fn pass(&mut self, now: Instant, counting: &Counting) {
        if self.due.is_some_and(|due| now < due) {
            return;
        }
        // Of a machine that was asleep, seconds are missing; the next one is a second from now.
        self.due = Some(now + PERIOD);
        self.put(&counting.served(), counting.waits());
    }

    fn put(&mut self, served: &Served, waits: Waits) {
        let since = waits.since(&self.waits);
        let sum = |sum: Deeds, more: Deeds| sum.and(more);
        self.samples.push_back(Sample {
            duration_ns: served.duration_ns,
            verdicts: served.layers.iter().map(|layer| layer.requests.verdicts()).fold(Verdicts::default(), Verdicts::and),
            bytes: served.layers.iter().map(|layer| layer.request_bytes).fold(Deeds::default(), sum),
            p50_ns: since.quantile(500),
            p99_ns: since.quantile(990),
        });
        self.waits = waits;
        if self.samples.len() > KEPT {
            self.samples.pop_front();
        }
    }

    /// All samples.
    pub(super) fn samples(&self) -> Vec<Sample> {
        self.samples.iter().copied().collect()
    }

    /// The last few: enough for a page that is told once a second to miss none.
    pub(super) fn newest(&self) -> Vec<Sample> {
        self.samples.iter().skip(self.samples.len().saturating_sub(3)).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn the_last_ten_minutes_are_kept() {
        let (mut served, _) = samples::served();
        let mut history = History::default();
        for second in 0..700 {
            served.duration_ns = second;
            history.put(&served, Waits::default());
        }
        let kept = history.samples();
        assert_eq!((kept.len(), kept[0].duration_ns, kept[599].duration_ns), (600, 100, 699));
        assert_eq!(history.newest(), kept[597..]);
        assert_eq!((kept[0].verdicts.misaligned, kept[0].bytes.writes, kept[0].p99_ns), (98, 98 * 4096 + 1024, 0));
    }
}
