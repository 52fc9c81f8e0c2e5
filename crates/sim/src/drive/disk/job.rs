//! The operation of the mechanism under way.

use super::edges::EdgeCache;
use super::firmware::Target;
use super::geometry::Place;
use super::mechanism::Spans;
use super::write_cache::Taken;
use crate::drive::Command;
use crate::time::Ps;
use trueline_geom::base::topology::{is_whole, units};

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
    Ahead { data: Ps, place: Place, from: u64, to: u64 },
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

/// The sectors that a write must read first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ragged {
    /// Sectors written in part whose content is not known.
    pub(super) sectors: u64,
    /// The range of these sectors: (first, end).
    pub(super) span: Option<(u64, u64)>,
}

impl Ragged {
    /// The ragged sectors of extents that are sorted by place.
    pub(super) fn find(taken: &[Taken], sector: u64, known: &EdgeCache) -> Ragged {
        let mut ragged = Ragged::default();
        let mut last = None;
        for edge in runs(taken).flat_map(|run| edges(run, sector)) {
            if last != Some(edge) && !known.knows(edge) {
                ragged.sectors += 1;
                let from = ragged.span.map_or(edge, |(from, _)| from);
                ragged.span = Some((from, edge + 1));
            }
            last = Some(edge);
        }
        ragged
    }
}

/// The runs of extents that are sorted by place, adjacent ones joined: (start, end).
pub(super) fn runs(taken: &[Taken]) -> impl Iterator<Item = (u64, u64)> + '_ {
    let chunks = taken.chunk_by(|one, next| one.end == next.start);
    chunks.filter_map(|chunk| Some((chunk.first()?.start, chunk.last()?.end)))
}

/// The physical sectors that a run fills only in part: none, one or two.
pub(super) fn edges((start, end): (u64, u64), sector: u64) -> impl Iterator<Item = u64> {
    let (first, after) = units(start, end, sector);
    let head = (!is_whole(start, sector)).then_some(first);
    let tail = (!is_whole(end, sector)).then(|| after - 1).filter(|tail| head != Some(*tail));
    head.into_iter().chain(tail)
}
