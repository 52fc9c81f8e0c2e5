//! The write buffer: indirection units that were written, wholly or in part, and not yet
//! programmed.

use crate::time::Ps;
use std::collections::{BTreeMap, VecDeque};

/// A unit with its written ranges.
#[derive(Debug, Default)]
pub(super) struct Unit {
    /// The first byte, a multiple of the unit.
    pub(super) start: u64,
    /// The written ranges, in order, disjoint and not touching.
    pub(super) ranges: Vec<(u64, u64)>,
    /// Tags of commands that wait for its program.
    pub(super) waiters: Vec<u64>,
    /// The number of the first command that wrote to it.
    pub(super) order: u64,
    /// The number of the last write to the buffer that wrote to it.
    stamp: u64,
}

impl Unit {
    /// The written bytes of the unit.
    pub(super) fn covered(&self) -> u64 {
        self.ranges.iter().map(|(start, end)| end - start).sum()
    }

    /// True if all of `start..end` was written.
    pub(super) fn covers(&self, start: u64, end: u64) -> bool {
        self.ranges.iter().any(|&(from, to)| from <= start && end <= to)
    }

    /// Adds the written range `start..end`.
    fn cover(&mut self, start: u64, end: u64) {
        let first = self.ranges.partition_point(|&(_, to)| to < start);
        let last = self.ranges.partition_point(|&(from, _)| from <= end);
        let joined = match self.ranges.get(first..last) {
            Some([first, .., last]) => (first.0.min(start), last.1.max(end)),
            Some([one]) => (one.0.min(start), one.1.max(end)),
            _ => (start, end),
        };
        self.ranges.splice(first..last.max(first), [joined]);
    }
}

/// Units by first byte, and in the order of their last writes.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    units: BTreeMap<u64, Unit>,
    /// The end of each unit's wait, by last write: (time, unit, stamp). Entries of units rewritten
    /// or gone are skipped.
    deadlines: VecDeque<(Ps, u64, u64)>,
    stamps: u64,
}

impl Buffer {
    pub(super) fn len(&self) -> usize {
        self.units.len()
    }

    pub(super) fn get(&self, unit: u64) -> Option<&Unit> {
        self.units.get(&unit)
    }

    /// All units, by first byte.
    pub(super) fn units(&self) -> impl Iterator<Item = &Unit> {
        self.units.values()
    }

    /// Writes `start..end`, within `unit`, to wait until `deadline`. Returns the bytes of it that
    /// were overwritten.
    pub(super) fn write(
        &mut self,
        unit: u64,
        (start, end): (u64, u64),
        order: u64,
        deadline: Ps,
    ) -> u64 {
        self.stamps += 1;
        self.deadlines.push_back((deadline, unit, self.stamps));
        let held = self.units.entry(unit).or_insert_with(|| Unit {
            start: unit,
            order,
            ..Unit::default()
        });
        held.stamp = self.stamps;
        let before = held.covered();
        held.cover(start, end);
        let again = end - start - (held.covered() - before);
        self.settle();
        again
    }

    /// Makes `tag` wait for the program of a unit.
    pub(super) fn await_unit(&mut self, unit: u64, tag: u64) {
        if let Some(held) = self.units.get_mut(&unit) {
            held.waiters.push(tag);
        }
    }

    /// Removes a unit from the buffer.
    pub(super) fn take(&mut self, unit: u64) -> Option<Unit> {
        let taken = self.units.remove(&unit);
        self.settle();
        taken
    }

    /// The unit whose last write is the oldest, with the end of its wait: (time, unit).
    pub(super) fn oldest(&self) -> Option<(Ps, u64)> {
        self.deadlines.front().map(|&(deadline, unit, _)| (deadline, unit))
    }

    /// Drops outdated deadlines at the front.
    fn settle(&mut self) {
        while let Some(&(_, unit, stamp)) = self.deadlines.front() {
            if self.units.get(&unit).is_some_and(|held| held.stamp == stamp) {
                break;
            }
            self.deadlines.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn ranges_cover_what_bytes_do() {
        let mut random = Random::new(7);
        for _ in 0..200 {
            let (mut unit, mut bytes) = (Unit::default(), [false; 64]);
            for _ in 0..12 {
                let start = random.below(64);
                let end = start + 1 + random.below(64 - start);
                unit.cover(start, end);
                bytes[usize::try_from(start).unwrap()..usize::try_from(end).unwrap()].fill(true);
                assert_eq!(
                    unit.covered(),
                    bytes.iter().filter(|&&b| b).count() as u64,
                    "{:?}",
                    unit.ranges
                );
                assert!(
                    unit.ranges.windows(2).all(|pair| pair[0].1 < pair[1].0),
                    "{:?}",
                    unit.ranges
                );
                for (from, to) in [(start, end), (0, 1), (10, 30), (0, 64)] {
                    let all = bytes[usize::try_from(from).unwrap()..usize::try_from(to).unwrap()]
                        .iter()
                        .all(|&b| b);
                    assert_eq!(unit.covers(from, to), all);
                }
            }
        }
    }

    #[test]
    fn the_oldest_is_the_one_last_written_longest_ago() {
        let mut buffer = Buffer::default();
        assert_eq!(buffer.write(0, (0, 8), 0, 10), 0);
        assert_eq!(buffer.write(64, (64, 72), 1, 20), 0);
        assert_eq!(buffer.write(0, (4, 12), 2, 30), 4);
        assert_eq!(buffer.oldest(), Some((20, 64)));
        assert_eq!(buffer.take(64).map(|unit| unit.covered()), Some(8));
        assert_eq!(buffer.oldest(), Some((30, 0)));
        assert_eq!(buffer.take(0).map(|unit| (unit.covered(), unit.order)), Some((12, 0)));
        assert_eq!((buffer.oldest(), buffer.len()), (None, 0));
    }
}
