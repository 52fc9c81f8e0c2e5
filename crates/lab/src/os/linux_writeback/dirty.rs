//! Dirty pages of an inode, or of the device.

use super::flusher::PAGE;
use std::collections::BTreeMap;

/// Dirty pages of an owner.
#[derive(Default)]
pub(super) struct Pages {
    /// First page of the owner → pages, and the byte of the provider where they lie.
    ranges: BTreeMap<u64, (u64, u64)>,
    /// When the first of them became dirty.
    pub(super) since: u64,
    /// Where the next pass goes on (`writeback_index`).
    cursor: u64,
    /// Whether all of them are to be written, because they are old.
    pub(super) old: bool,
}

impl Pages {
    /// Notes pages that are dirty; how many were not before.
    pub(super) fn soil(&mut self, first: u64, pages: u64, byte: u64) -> u64 {
        let end = first + pages;
        let before = self.ranges.range_mut(..=first).next_back().map(|(start, range)| (*start, range));
        let untouched = before.as_ref().is_none_or(|(start, range)| start + range.0 <= first);
        if untouched && self.ranges.range(first + 1..end).next().is_none() {
            match self.ranges.range_mut(..first).next_back() {
                Some((start, (count, at))) if start + *count == first && *at + *count * PAGE == byte => *count += pages,
                _ => drop(self.ranges.insert(first, (pages, byte))),
            }
            return pages;
        }
        if pages == 1 {
            return 0;
        }
        (0..pages).map(|n| self.soil(first + n, 1, byte + n * PAGE)).sum()
    }

    /// The range with a page.
    fn range(&self, page: u64) -> Option<(u64, (u64, u64))> {
        let found = self.ranges.range(..=page).next_back().map(|(start, range)| (*start, *range));
        found.filter(|(start, (count, _))| start + count > page)
    }

    /// Whether a page is dirty.
    pub(super) fn has(&self, page: u64) -> bool {
        self.range(page).is_some()
    }

    /// The pages that lie together from where the last pass ended on, or from the beginning: (first, pages, byte).
    pub(super) fn next(&self) -> Option<(u64, u64, u64)> {
        if let Some((start, (count, byte))) = self.range(self.cursor) {
            let skip = self.cursor - start;
            return Some((self.cursor, count - skip, byte + skip * PAGE));
        }
        let next = self.ranges.range(self.cursor..).next().or_else(|| self.ranges.iter().next());
        next.map(|(&start, &(count, byte))| (start, count, byte))
    }

    /// Takes `pages` from `first` on, which [`Pages::next`] named; the pass goes on after them.
    pub(super) fn take(&mut self, first: u64, pages: u64) {
        self.clean(first, pages);
        self.cursor = first + pages;
    }

    /// Pages of one range are dirty no more.
    pub(super) fn clean(&mut self, first: u64, pages: u64) {
        let Some((start, (count, byte))) = self.range(first) else { return };
        let (before, end) = (first - start, first - start + pages);
        self.ranges.remove(&start);
        if before > 0 {
            self.ranges.insert(start, (before, byte));
        }
        if end < count {
            self.ranges.insert(start + end, (count - end, byte + end * PAGE));
        }
    }

    /// Bytes of them.
    pub(super) fn bytes(&self) -> u64 {
        self.ranges.values().map(|(pages, _)| pages * PAGE).sum()
    }

    /// Whether none is left.
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}
