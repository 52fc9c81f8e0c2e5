//! What the mechanism is doing.

use super::edges::EdgeCache;
use super::firmware::Target;
use super::geometry::Place;
use super::mechanism::Spans;
use super::write_cache::Taken;
use crate::drive::Command;
use crate::time::Ps;
use trueline_geom::base::topology::{is_whole, units};

/// One piece of work of the mechanism.
#[derive(Debug)]
pub(super) enum Work {
    /// A read of the host; when its first sector began to pass.
    Read { command: Command, data: Ps, from: u64, to: u64 },
    /// A write of the host that does not go through the cache.
    Through { command: Command, seq: u64 },
    /// Dirty data on their way.
    Destage { taken: Vec<Taken>, target: Target },
    /// Sectors read ahead, on one track: from when the first passes.
    Ahead { data: Ps, place: Place, from: u64, to: u64 },
}

/// Work with its time.
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

/// What of a write has to be read first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ragged {
    /// Physical sectors written in part whose content is not known.
    pub(super) sectors: u64,
    /// From the first of them to behind the last.
    pub(super) span: Option<(u64, u64)>,
}

impl Ragged {
    /// Of extents in order of place.
    pub(super) fn of(taken: &[Taken], sector: u64, known: &EdgeCache) -> Ragged {
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

/// Extents in order of place, those that adjoin as one: (start, end).
pub(super) fn runs(taken: &[Taken]) -> impl Iterator<Item = (u64, u64)> + '_ {
    let chunks = taken.chunk_by(|one, next| one.end == next.start);
    chunks.filter_map(|chunk| Some((chunk.first()?.start, chunk.last()?.end)))
}

/// The physical sectors that a run fills in part: none, one or two.
pub(super) fn edges((start, end): (u64, u64), sector: u64) -> impl Iterator<Item = u64> {
    let (first, after) = units(start, end, sector);
    let head = (!is_whole(start, sector)).then_some(first);
    let tail = (!is_whole(end, sector)).then(|| after - 1).filter(|tail| head != Some(*tail));
    head.into_iter().chain(tail)
}
