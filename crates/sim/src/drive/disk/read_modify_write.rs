//! Read-modify-write: physical sectors that a write fills only in part are read before, but for
//! those whose whole content the firmware still knows from the last time.

use super::Disk;
use super::mechanism::Spans;
use super::write_cache::Taken;
use crate::time::Ps;
use std::collections::BTreeMap;
use trueline_geom::base::topology::{is_whole, units};

impl Disk {
    /// Writes extents at home. Sectors that they fill only in part are read in a pass before.
    pub(super) fn rewrite(&mut self, now: Ps, spans: &mut Spans, taken: &[Taken]) {
        let ragged = Ragged::find(taken, self.sector, &self.edges);
        if let Some(span) = ragged.span {
            self.pass(now, spans, span, false, false);
            self.counters.rmw += ragged.sectors;
            self.counters.rmw_reads += 1;
        }
        let (mut from, mut to) = (u64::MAX, 0);
        for run in runs(taken) {
            let (first, last) = units(run.0, run.1, self.sector);
            (from, to) = (from.min(first), to.max(last));
            self.counters.media_written += (last - first) * self.sector;
            edges(run, self.sector).for_each(|edge| self.edges.learn(edge));
            self.log.cut(run.0, run.1, &self.mechanism.geometry);
        }
        if self.log.is_empty() {
            self.log_next = self.log_first;
        }
        self.pass(now, spans, (from, to), true, ragged.span.is_some());
    }
}

/// The sectors that a write must read first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ragged {
    /// Sectors written in part whose content is not known.
    sectors: u64,
    /// The range of these sectors: (first, end).
    span: Option<(u64, u64)>,
}

impl Ragged {
    /// The ragged sectors of extents that are sorted by place.
    fn find(taken: &[Taken], sector: u64, known: &EdgeCache) -> Ragged {
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
fn runs(taken: &[Taken]) -> impl Iterator<Item = (u64, u64)> + '_ {
    let chunks = taken.chunk_by(|one, next| one.end == next.start);
    chunks.filter_map(|chunk| Some((chunk.first()?.start, chunk.last()?.end)))
}

/// The physical sectors that a run fills only in part: none, one or two.
fn edges((start, end): (u64, u64), sector: u64) -> impl Iterator<Item = u64> {
    let (first, after) = units(start, end, sector);
    let head = (!is_whole(start, sector)).then_some(first);
    let tail = (!is_whole(end, sector)).then(|| after - 1).filter(|tail| head != Some(*tail));
    head.into_iter().chain(tail)
}

/// The known sectors; the least recently used is replaced.
#[derive(Debug)]
pub(super) struct EdgeCache {
    most: usize,
    clock: u64,
    by_sector: BTreeMap<u64, u64>,
    by_use: BTreeMap<u64, u64>,
}

impl EdgeCache {
    pub(super) fn new(most: usize) -> EdgeCache {
        EdgeCache { most, clock: 0, by_sector: BTreeMap::new(), by_use: BTreeMap::new() }
    }

    /// True if the content of a sector is known.
    fn knows(&self, sector: u64) -> bool {
        self.by_sector.contains_key(&sector)
    }

    /// Adds a sector, now the most recently used.
    fn learn(&mut self, sector: u64) {
        if self.most == 0 {
            return;
        }
        self.clock += 1;
        if let Some(used) = self.by_sector.insert(sector, self.clock) {
            self.by_use.remove(&used);
        }
        self.by_use.insert(self.clock, sector);
        if self.by_sector.len() > self.most
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.by_sector.remove(&oldest);
        }
    }
}
