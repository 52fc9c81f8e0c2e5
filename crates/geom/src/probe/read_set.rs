//! Places that tasting has read: as long as nothing is written there, tasting again finds the same.
//!
//! Tasting is a function of the bytes that it reads. A write is checked against this set, with two
//! comparisons for most writes, to learn if tasting has to be repeated.

use crate::base::topology::round_down;
use std::ops::Range;

/// Granularity in bytes at which places are kept. Metadata that moves about in a small area, as
/// LVM's does, soon has been everywhere.
const BLOCK: u64 = 4096;

/// Ranges of bytes on the stores of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadSet(Vec<Places>);

/// Ranges of bytes on one store.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Places {
    /// Ranges in ascending order, none of which touches the next.
    ranges: Vec<Range<u64>>,
    /// Longest range that was not read: most writes fall into it.
    gap: Range<u64>,
}

impl ReadSet {
    /// The set of `read`, as (store, first byte, bytes), on the first `stores` stores.
    pub(crate) fn at(stores: usize, read: &[(usize, u64, u64)]) -> ReadSet {
        let blocks = |offset: u64, length: u64| {
            let end = length.saturating_add(offset).div_ceil(BLOCK).saturating_mul(BLOCK);
            round_down(offset, BLOCK)..end
        };
        let of =
            |store: usize| read.iter().filter(move |(of, _, length)| *of == store && *length > 0);
        ReadSet(
            (0..stores)
                .map(|store| {
                    Places::new(
                        of(store).map(|&(_, offset, length)| blocks(offset, length)).collect(),
                    )
                })
                .collect(),
        )
    }

    /// True if any of `length` bytes at byte `offset` of a store was read.
    pub fn is_at(&self, store: usize, offset: u64, length: u64) -> bool {
        self.0.get(store).is_some_and(|places| places.is_in(offset, offset.saturating_add(length)))
    }

    /// Union of both sets, over the stores of either.
    #[must_use]
    pub fn union(&self, other: &ReadSet) -> ReadSet {
        let none = Places::new(Vec::new());
        let of =
            |looked: &ReadSet, store: usize| looked.0.get(store).unwrap_or(&none).ranges.clone();
        let stores = self.0.len().max(other.0.len());
        ReadSet(
            (0..stores)
                .map(|store| Places::new([of(self, store), of(other, store)].concat()))
                .collect(),
        )
    }

    /// Number of separate ranges, over all stores.
    pub fn count(&self) -> usize {
        self.0.iter().map(|places| places.ranges.len()).sum()
    }
}

impl Places {
    fn new(mut all: Vec<Range<u64>>) -> Places {
        all.sort_unstable_by_key(|range| range.start);
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for range in all {
            match ranges.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => ranges.push(range),
            }
        }
        let starts = ranges.iter().map(|range| range.start).chain([u64::MAX]);
        let ends = [0].into_iter().chain(ranges.iter().map(|range| range.end));
        let gap = ends.zip(starts).map(|(from, to)| from..to).max_by_key(|gap| gap.end - gap.start);
        Places { gap: gap.unwrap_or(0..0), ranges }
    }

    fn is_in(&self, start: u64, end: u64) -> bool {
        if self.gap.start <= start && end <= self.gap.end {
            return false;
        }
        let next = self.ranges.partition_point(|range| range.end <= start);
        self.ranges.get(next).is_some_and(|range| range.start < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every range of 40 blocks, against the blocks one by one.
    #[test]
    fn what_touches_is_what_shares_a_block() {
        let read = [
            (0, 3 * BLOCK, 100),
            (0, 4 * BLOCK - 1, 2),
            (1, 0, BLOCK),
            (0, 20 * BLOCK, 0),
            (0, 30 * BLOCK, 2 * BLOCK),
        ];
        let (looked, blocks) = (ReadSet::at(2, &read), [3, 4, 30, 31]);
        assert_eq!((looked.count(), ReadSet::at(2, &[]).count()), (3, 0));
        for (start, end) in
            (0..40 * 4).flat_map(|start| (start + 1..40 * 4).map(move |end| (start, end)))
        {
            // In quarters of a block.
            let want = (start / 4..=(end - 1) / 4).any(|block| blocks.contains(&block));
            let quarter = BLOCK / 4;
            assert_eq!(
                looked.is_at(0, start * quarter, (end - start) * quarter),
                want,
                "{start}..{end}"
            );
        }
        assert!(
            looked.is_at(1, 0, 1) && !looked.is_at(1, BLOCK, u64::MAX) && !looked.is_at(2, 0, 1)
        );
        assert!(looked.is_at(0, 0, u64::MAX));
    }

    #[test]
    fn both_together_are_at_the_places_of_either() {
        let (one, two) =
            (ReadSet::at(1, &[(0, 0, 1)]), ReadSet::at(2, &[(0, BLOCK, 1), (1, 9 * BLOCK, 1)]));
        let both = one.union(&two);
        assert_eq!(
            (both.count(), both.union(&one) == both, two.union(&one) == both),
            (2, true, true)
        );
        assert!(
            both.is_at(0, BLOCK, 1) && both.is_at(1, 9 * BLOCK, 1) && !both.is_at(0, 2 * BLOCK, 1)
        );
    }
}
