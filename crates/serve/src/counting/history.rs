//! The last minutes of what was counted, a sample a second: a page that is opened later shows what
//! was before it.

use super::{Counting, ServerCounts};
use crate::layer::counted::Waits;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use trueline_geom::audit::io::IoKind;
use trueline_geom::base::topology::Placement;

/// Samples that are kept: ten minutes of them.
const KEPT: usize = 600;
const PERIOD: Duration = Duration::from_secs(1);

/// Counts at some moment, and latencies since the sample before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Time since counting began.
    pub duration: Duration,
    /// Requests of all kinds, in the order of [`Placement::ALL`].
    pub requests: [u64; Placement::ALL.len()],
    /// Bytes of requests, in the order of [`IoKind::ALL`].
    pub bytes: [u64; IoKind::ALL.len()],
    /// Half of the reads and writes since the sample before took at most this, in ns; 0 where none
    /// waited for a device.
    pub p50_ns: u64,
    /// As [`Sample::p50_ns`], of 99 in 100 of them.
    pub p99_ns: u64,
}

/// Samples, the oldest first.
#[derive(Default)]
pub struct History {
    samples: VecDeque<Sample>,
    /// The time of the next sample; at once where there is none.
    due: Option<Instant>,
    /// Latencies up to the last sample.
    waits: Waits,
}

impl History {
    /// Takes a sample, if it is time at `now`.
    pub fn pass(&mut self, now: Instant, counting: &Counting) {
        if self.due.is_some_and(|due| now < due) {
            return;
        }
        // Of a machine that was asleep, seconds are missing; the next one is a second from now.
        self.due = Some(now + PERIOD);
        self.put(&counting.counts(), counting.waits());
    }

    fn put(&mut self, counts: &ServerCounts, waits: Waits) {
        let since = waits.since(&self.waits);
        self.samples.push_back(Sample {
            duration: counts.duration,
            requests: Placement::ALL
                .map(|verdict| counts.layers().map(|layer| layer.requests(verdict)).sum()),
            bytes: IoKind::ALL
                .map(|kind| counts.layers().map(|layer| layer.tally.requested(kind)).sum()),
            p50_ns: since.quantile(500),
            p99_ns: since.quantile(990),
        });
        self.waits = waits;
        if self.samples.len() > KEPT {
            self.samples.pop_front();
        }
    }

    /// All samples, the oldest first.
    pub fn samples(&self) -> Vec<Sample> {
        self.samples.iter().copied().collect()
    }

    /// The last few: enough for a page that is told once a second to miss none.
    pub fn newest(&self) -> Vec<Sample> {
        self.samples.iter().skip(self.samples.len().saturating_sub(3)).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ExportCounts, LayerCounts};
    use super::*;
    use trueline_geom::audit::io::{IoAudit, Tally};
    use trueline_geom::base::store::Sparse;
    use trueline_geom::base::topology::{Fact, Grain, Source, Topology, Trust, Why};
    use trueline_geom::graph::{Disk, Graph, Recognised};
    use trueline_geom::probe::Limits;

    /// Counts of a disk in units of 4096 bytes: one write off them, one of a part of one.
    fn counts() -> ServerCounts {
        let unit = Fact {
            grain: Grain::new(4096, 0).unwrap(),
            why: Why::Physical,
            source: Source::User,
            trust: Trust::Trusted,
        };
        let topology = Topology { facts: vec![unit], ..Topology::new(512, 1 << 20) };
        let graph = Graph::taste(
            vec![Disk::new("", Box::new(Sparse::new(1 << 20)), topology)],
            Limits::default(),
        );
        let (watch, mut tally) = (IoAudit::new(&graph, 0), Tally::default());
        for (offset, length) in [(512, 8192), (0, 1024)] {
            watch.judge(IoKind::Write, offset, length, &mut |_, seen| tally.add(seen));
        }
        let layer = LayerCounts {
            provider: String::new(),
            number: 0,
            is_here: true,
            recognised: Recognised::default(),
            disk: String::new(),
            unit: Some(unit),
            members: Vec::new(),
            blame: None,
            tally,
        };
        ServerCounts {
            exports: vec![ExportCounts { layers: vec![layer], ..ExportCounts::default() }],
            ..ServerCounts::default()
        }
    }

    #[test]
    fn the_last_ten_minutes_are_kept() {
        let mut counts = counts();
        let mut history = History::default();
        for second in 0..700 {
            counts.duration = Duration::from_secs(second);
            history.put(&counts, Waits::default());
        }
        let kept = history.samples();
        assert_eq!(
            (kept.len(), kept[0].duration.as_secs(), kept[599].duration.as_secs()),
            (600, 100, 699)
        );
        assert_eq!(history.newest(), kept[597..]);
        assert_eq!(
            (kept[0].requests, kept[0].bytes, kept[0].p99_ns),
            ([0, 1, 1, 0], [0, 8192 + 1024, 0, 0], 0)
        );
    }
}
