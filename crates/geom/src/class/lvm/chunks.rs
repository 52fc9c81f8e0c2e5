//! Geom of a volume in chunks, each of which a map has put somewhere: thin volumes, old snapshots,
//! volumes behind a cache.

use crate::base::topology::Topology;
use crate::mapping::geom::{Arrangement, Extent, Geom, Op, Slot};

/// Consumer that holds the chunks of the map.
const STORE: usize = 0;
/// Consumer that holds what is in no chunk of the map.
const ORIGIN: usize = 1;

/// Volume in chunks of one size.
pub struct Chunks {
    name: String,
    length: u64,
    /// Size of a chunk in bytes; at least 1.
    chunk: u64,
    /// First byte of chunk 0 on the store.
    base: u64,
    /// Runs of the map, in ascending order.
    runs: Vec<Run>,
    /// Length of the origin in bytes; `None` without one.
    origin: Option<u64>,
    read_only: Option<&'static str>,
    arrangement: Option<Arrangement>,
}

/// Run of chunks that a map has put one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Number of its first chunk on the volume.
    pub first: u64,
    /// Number of chunks; at least 1.
    pub count: u64,
    /// Number of its first chunk on the store; `None` for chunks that would lie past its end.
    pub store: Option<u64>,
    /// True if other volumes may have the same chunks: nothing is written there.
    pub is_shared: bool,
}

impl Run {
    /// True if `next` begins where this ends, on the volume and on the store.
    fn goes_on_in(&self, next: &Run) -> bool {
        self.first.checked_add(self.count) == Some(next.first)
            && self.store.and_then(|store| store.checked_add(self.count)) == next.store
            && self.is_shared == next.is_shared
            && self.store.is_some() == next.store.is_some()
    }
}

/// Adds a run to a map behind all others; joins it to the last one where that goes on in it.
pub fn push(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        Some(last) if last.goes_on_in(&run) => last.count += run.count,
        _ => runs.push(run),
    }
}

/// The runs of `pairs`: a chunk of the volume, in ascending order, and where it is on a store of
/// `most` chunks.
pub fn of_pairs(pairs: impl IntoIterator<Item = (u64, u64)>, most: u64) -> Vec<Run> {
    let mut runs = Vec::new();
    for (first, store) in pairs {
        let store = Some(store).filter(|&store| store < most);
        push(&mut runs, Run { first, count: 1, store, is_shared: false });
    }
    runs
}

impl Chunks {
    /// A volume of `length` bytes in chunks of `chunk`, of which `runs` lie on the store, from its
    /// byte `base` on. `runs` are in ascending order and do not overlap. What is in none of them
    /// reads as zeros.
    pub fn new(name: String, length: u64, chunk: u64, base: u64, runs: Vec<Run>) -> Chunks {
        Chunks {
            name,
            length,
            chunk: chunk.max(1),
            base,
            runs,
            origin: None,
            read_only: None,
            arrangement: None,
        }
    }

    /// The same volume over an origin of `length` bytes, which has what is in no chunk of the map.
    #[must_use]
    pub fn over_origin(self, length: u64) -> Chunks {
        Chunks { origin: Some(length), ..self }
    }

    /// The same volume, which is not written for this reason.
    #[must_use]
    pub fn read_only_for(self, reason: Option<&'static str>) -> Chunks {
        Chunks { read_only: reason, ..self }
    }

    /// The same volume as one of LVM's type `level`, of `members` volumes; a cache has a mode.
    #[must_use]
    pub fn arranged(self, level: &str, mode: Option<&str>, members: usize) -> Chunks {
        let arrangement = Arrangement {
            level: level.to_owned(),
            layout: mode.map(str::to_owned),
            chunk: Some(self.chunk),
            members,
            present: members,
        };
        Chunks { arrangement: Some(arrangement), ..self }
    }

    /// True if every chunk has a place that is its own.
    fn is_written_everywhere(&self) -> bool {
        let end = self.runs.iter().try_fold(0, |end, run| {
            let goes_on = run.first == end && run.store.is_some() && !run.is_shared;
            goes_on.then(|| run.first.saturating_add(run.count))
        });
        end.is_some_and(|end| end >= self.length.div_ceil(self.chunk))
    }

    /// The run that has chunk `at`, and the first chunk after it, or before the next one, in which
    /// the answer is another.
    fn find(&self, at: u64) -> (Option<&Run>, u64) {
        let next = self.runs.partition_point(|run| run.first <= at);
        let before = next.checked_sub(1).and_then(|last| self.runs.get(last));
        match before.filter(|run| at - run.first < run.count) {
            Some(run) => (Some(run), run.first.saturating_add(run.count)),
            None => (None, self.runs.get(next).map_or(u64::MAX, |run| run.first)),
        }
    }

    /// The place of `length` bytes at `offset` that are in no chunk of the map.
    fn rest(&self, offset: u64, length: u64, op: Op) -> Extent {
        if op == Op::Write {
            return Extent::ReadOnly { length };
        }
        match self.origin.map(|end| end.saturating_sub(offset)) {
            None | Some(0) => Extent::Zero { length },
            Some(left) => Extent::At { consumer: ORIGIN, offset, length: length.min(left) },
        }
    }
}

impl Geom for Chunks {
    fn providers(&self) -> Vec<Slot> {
        vec![Slot { name: self.name.clone(), length: self.length, kind: None }]
    }

    fn topology(&self, _slot: usize, below: &[Topology]) -> Topology {
        let Some(store) = below.get(STORE) else { return Topology::new(1, self.length) };
        let chunks = store.in_chunks_anywhere(self.base, self.chunk, self.length);
        let Some(origin) = below.get(ORIGIN).filter(|_| self.origin.is_some()) else {
            return chunks;
        };
        // Any chunk of the origin may have its neighbour on the store.
        let mut rest = origin.in_chunks_anywhere(0, self.chunk, self.length);
        for clash in rest.clashes.iter_mut().filter(|clash| !origin.clashes.contains(clash)) {
            clash.member = ORIGIN;
        }
        Topology::mirror(&[chunks, rest], self.length).without_clashing()
    }

    fn map(&self, _slot: usize, offset: u64, length: u64, op: Op) -> Extent {
        let (found, end) = self.find(offset / self.chunk);
        let length = length.min(end.saturating_mul(self.chunk) - offset);
        if op == Op::Write && self.read_only.is_some() {
            return Extent::ReadOnly { length };
        }
        let Some(run) = found else { return self.rest(offset, length, op) };
        let Some(store) = run.store else { return Extent::Fail { length } };
        if op == Op::Write && run.is_shared {
            return Extent::ReadOnly { length };
        }
        let within = offset - run.first * self.chunk;
        Extent::At { consumer: STORE, offset: self.base + store * self.chunk + within, length }
    }

    fn read_only(&self, _slot: usize) -> Option<&'static str> {
        self.read_only
    }

    fn read_only_in_part(&self, _slot: usize) -> Option<&'static str> {
        (!self.is_written_everywhere()).then_some(
            "blocks that its pool has not given it, or has given other volumes too, are not written",
        )
    }

    fn arrangement(&self, _slot: usize) -> Option<Arrangement> {
        self.arrangement.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume() -> Chunks {
        let run = |first, count, store, is_shared| Run { first, count, store, is_shared };
        let mut runs = Vec::new();
        for next in [
            run(1, 1, Some(7), false),
            run(2, 2, Some(8), false),
            run(4, 1, Some(10), true),
            run(6, 1, None, false),
        ] {
            push(&mut runs, next);
        }
        assert_eq!(runs.len(), 3);
        Chunks::new("vg/lv".into(), 80, 10, 3, runs)
    }

    #[test]
    fn a_chunk_is_read_where_the_map_has_put_it() {
        let (thin, snapshot) = (volume(), volume().over_origin(55));
        let at = |consumer, offset, length| Extent::At { consumer, offset, length };
        for (offset, asked, first, second) in [
            (0, 80, Extent::Zero { length: 10 }, at(1, 0, 10)),
            (12, 80, at(0, 75, 28), at(0, 75, 28)),
            (45, 2, at(0, 108, 2), at(0, 108, 2)),
            (50, 80, Extent::Zero { length: 10 }, at(1, 50, 5)),
            (57, 80, Extent::Zero { length: 3 }, Extent::Zero { length: 3 }),
            (60, 80, Extent::Fail { length: 10 }, Extent::Fail { length: 10 }),
            (70, 10, Extent::Zero { length: 10 }, Extent::Zero { length: 10 }),
        ] {
            assert_eq!(thin.map(0, offset, asked, Op::Read), first, "{offset}");
            assert_eq!(snapshot.map(0, offset, asked, Op::Read), second, "{offset}");
        }
    }

    #[test]
    fn only_chunks_of_its_own_are_written() {
        let written = |offset| volume().map(0, offset, 80, Op::Write);
        assert_eq!(written(10), Extent::At { consumer: 0, offset: 73, length: 30 });
        assert_eq!(written(0), Extent::ReadOnly { length: 10 });
        assert_eq!(written(40), Extent::ReadOnly { length: 10 });
        let kept = volume().read_only_for(Some("of its cache"));
        assert_eq!(kept.map(0, 10, 80, Op::Write), Extent::ReadOnly { length: 30 });
        assert_eq!(kept.read_only(0), Some("of its cache"));
    }

    #[test]
    fn a_volume_with_a_place_for_every_chunk_is_written_everywhere() {
        let made = |runs: &[(u64, u64, Option<u64>, bool)]| {
            let run =
                |&(first, count, store, is_shared): &_| Run { first, count, store, is_shared };
            Chunks::new("vg/lv".into(), 75, 10, 0, runs.iter().map(run).collect())
        };
        for (runs, in_part) in [
            (&[(0, 8, Some(3), false)][..], false),
            (&[(0, 2, Some(3), false), (2, 6, Some(0), false)], false),
            (&[(0, 7, Some(3), false)], true),
            (&[(1, 7, Some(3), false)], true),
            (&[(0, 2, Some(3), false), (3, 5, Some(0), false)], true),
            (&[(0, 2, Some(3), true), (2, 6, Some(0), false)], true),
            (&[(0, 2, None, false), (2, 6, Some(0), false)], true),
            (&[], true),
        ] {
            assert_eq!(made(runs).read_only_in_part(0).is_some(), in_part, "{runs:?}");
        }
    }
}
