//! The operation of the mechanism under way.

use super::firmware::Target;
use super::geometry::SectorPosition;
use super::mechanism::Spans;
use super::write_cache::Taken;
use crate::drive::Command;
use crate::time::Ps;

/// One operation of the mechanism.
#[derive(Debug)]
pub(super) enum Work {
    /// A read of the host; `data` is the time at which its first sector begins to pass.
    Read { command: Command, data: Ps, from: u64, to: u64 },
    /// A write of the host that bypasses the cache.
    Through { command: Command, seq: u64 },
    /// A destage of dirty data.
    Destage { taken: Vec<Taken>, target: Target },
    /// Reading ahead on one track; `data` is the time at which its first sector begins to pass.
    Ahead { data: Ps, place: SectorPosition, from: u64, to: u64 },
    /// The fixed part of a flush that waits for every write up to `seq`.
    Flush { seq: u64 },
}

/// An operation with its start and duration.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) work: Work,
    pub(super) start: Ps,
    pub(super) spans: Spans,
}

impl Running {
    pub(super) fn end(&self) -> Ps {
        self.start + self.spans.sum()
    }
}
