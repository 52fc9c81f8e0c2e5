//! The dirty pages of one inode, or of the device.

use super::flusher::PAGE;
use std::collections::BTreeMap;

/// The dirty pages of one owner.
#[derive(Default)]
pub(super) struct Pages {
    /// Ranges by the owner's first page: (pages, byte of the provider).
    ranges: BTreeMap<u64, (u64, u64)>,
    /// The time in nanoseconds at which the first of them became dirty.
    pub(super) since: u64,
    /// The page at which the next pass continues (`writeback_index`).
    cursor: u64,
    /// True if all of them are due, because they are older than 30 s.
    pub(super) old: bool,
}

impl Pages {
    /// Marks pages dirty. Returns the number that were clean.
    pub(super) fn soil(&mut self, first: u64, pages: u64, byte: u64) -> u64 {
        let end = first + pages;
        let before =
            self.ranges.range_mut(..=first).next_back().map(|(start, range)| (*start, range));
        let untouched = before.as_ref().is_none_or(|(start, range)| start + range.0 <= first);
        if untouched && self.ranges.range(first + 1..end).next().is_none() {
            match self.ranges.range_mut(..first).next_back() {
                Some((start, (count, at)))
                    if start + *count == first && *at + *count * PAGE == byte =>
                {
                    *count += pages
                }
                _ => drop(self.ranges.insert(first, (pages, byte))),
            }
            return pages;
        }
        if pages == 1 {
            return 0;
        }
        (0..pages).map(|n| self.soil(first + n, 1, byte + n * PAGE)).sum()
    }

    /// The range that contains `page`: (first page, (pages, byte)).
    fn range(&self, page: u64) -> Option<(u64, (u64, u64))> {
        let found = self.ranges.range(..=page).next_back().map(|(start, range)| (*start, *range));
        found.filter(|(start, (count, _))| start + count > page)
    }

    /// True if the page is dirty.
    pub(super) fn has(&self, page: u64) -> bool {
        self.range(page).is_some()
    }

    /// The contiguous dirty pages at the cursor, or after it, or from the beginning: (first, pages,
    /// byte).
    pub(super) fn next(&self) -> Option<(u64, u64, u64)> {
        if let Some((start, (count, byte))) = self.range(self.cursor) {
            let skip = self.cursor - start;
            return Some((self.cursor, count - skip, byte + skip * PAGE));
        }
        let next = self.ranges.range(self.cursor..).next().or_else(|| self.ranges.iter().next());
        next.map(|(&start, &(count, byte))| (start, count, byte))
    }

    /// Marks clean the `pages` from `first` on, which [`Pages::next`] returned; the pass continues
    /// after them.
    pub(super) fn take(&mut self, first: u64, pages: u64) {
        self.clean(first, pages);
        self.cursor = first + pages;
    }

    /// Marks pages of one range clean.
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

    /// The dirty pages in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.ranges.values().map(|(pages, _)| pages * PAGE).sum()
    }

    /// True if no page is dirty.
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}
