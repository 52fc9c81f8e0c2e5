//! The write buffer: indirection units that were written, wholly or in part, and not yet programmed.

use crate::time::Ps;
use std::collections::{BTreeMap, VecDeque};

/// A unit with what of it was written.
#[derive(Debug, Default)]
pub(super) struct Unit {
    /// First byte.
    pub(super) start: u64,
    /// What was written, in order, disjoint and not touching.
    pub(super) ranges: Vec<(u64, u64)>,
    /// Commands that wait for it to be programmed.
    pub(super) waiters: Vec<u64>,
    /// When the first of it came, in the order of commands.
    pub(super) order: u64,
    /// When the last of it came, in the order of writes to the buffer.
    stamp: u64,
}

impl Unit {
    /// Bytes of it that were written.
    pub(super) fn covered(&self) -> u64 {
        self.ranges.iter().map(|(start, end)| end - start).sum()
    }

    /// Whether all from `start` to `end` was written.
    pub(super) fn covers(&self, start: u64, end: u64) -> bool {
        self.ranges.iter().any(|&(from, to)| from <= start && end <= to)
    }

    /// Adds what was written from `start` to `end`.
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

/// Units by first byte, and in the order in which they were last written.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    units: BTreeMap<u64, Unit>,
    /// Until when a unit waits, by last write; those of units that were written again or are gone are passed over.
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

    /// Every unit, by first byte.
    pub(super) fn units(&self) -> impl Iterator<Item = &Unit> {
        self.units.values()
    }

    /// Puts what was written from `start` to `end`, all in `unit`, to wait until `deadline`. Gives the bytes of it that were there.
    pub(super) fn write(&mut self, unit: u64, (start, end): (u64, u64), order: u64, deadline: Ps) -> u64 {
        self.stamps += 1;
        self.deadlines.push_back((deadline, unit, self.stamps));
        let held = self.units.entry(unit).or_insert_with(|| Unit { start: unit, order, ..Unit::default() });
        held.stamp = self.stamps;
        let before = held.covered();
        held.cover(start, end);
        let again = end - start - (held.covered() - before);
        self.settle();
        again
    }

    /// Has `tag` wait until a unit is programmed.
    pub(super) fn await_unit(&mut self, unit: u64, tag: u64) {
        if let Some(held) = self.units.get_mut(&unit) {
            held.waiters.push(tag);
        }
    }

    /// Takes a unit out.
    pub(super) fn take(&mut self, unit: u64) -> Option<Unit> {
        let taken = self.units.remove(&unit);
        self.settle();
        taken
    }

    /// The unit last written longest ago, and until when it waits.
    pub(super) fn oldest(&self) -> Option<(Ps, u64)> {
        self.deadlines.front().map(|&(deadline, unit, _)| (deadline, unit))
    }

    /// Forgets deadlines at the front that no longer hold.
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
                assert_eq!(unit.covered(), bytes.iter().filter(|&&b| b).count() as u64, "{:?}", unit.ranges);
                assert!(unit.ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "{:?}", unit.ranges);
                for (from, to) in [(start, end), (0, 1), (10, 30), (0, 64)] {
                    let all = bytes[usize::try_from(from).unwrap()..usize::try_from(to).unwrap()].iter().all(|&b| b);
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
