//! Refcounts of an image, counted anew before it is written.
//!
//! Every cluster that the header or a table leads to is counted, and compared with its refcount, as
//! `qemu-img check` does. A cluster that has a refcount and that nothing leads to is room that is
//! lost, which is no reason not to write; so is a refcount that is too high of a cluster with
//! compressed ones. Anything else is a reason.

use super::writing::{Layout, NotWritable};
use super::{COMPRESSED, COPIED, OFFSET, ZERO};
use crate::base::error::Errno;
use crate::base::topology::is_whole;

/// Most bytes of tables that are read for a check.
pub(crate) const MOST_TABLES: u64 = 64 << 20;
/// Most clusters of a file that are counted; each takes two bytes.
const MOST_CLUSTERS: u64 = 32 << 20;

/// Mark of a cluster that is used as a whole: nothing else may lead to it.
const WHOLE: u16 = 1 << 15;

/// Reader of the file: fills a buffer from a byte on.
pub(crate) type Read<'a> = dyn FnMut(&mut [u8], u64) -> Result<(), Errno> + 'a;

/// Result of a check without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    /// All tables were looked at; the clusters from this byte of the file on are free.
    Whole(u64),
    /// The tables are larger than [`MOST_TABLES`], or the file has too many clusters.
    TooLarge,
}

/// A check under way.
struct Check<'a, 'b> {
    layout: &'a Layout,
    read: &'a mut Read<'b>,
    /// Times that each cluster is led to.
    counts: Vec<u16>,
    /// Bytes of tables that may still be read.
    left: u64,
}

/// Reason for which a check ends early.
enum Stop {
    TooLarge,
    Wrong(NotWritable),
}

const fn wrong(reason: &'static str) -> Stop {
    Stop::Wrong(NotWritable::Reason(reason))
}

const REFCOUNTS: Stop = wrong("its refcounts are wrong: qemu-img check -r all mends them");
const ENTRIES: Stop = wrong("its tables have entries that cannot be true: see qemu-img check");
const CUT: Stop = wrong("its tables lead past the end of the file");

/// Checks the refcounts of an image in a file of `length` bytes.
pub(crate) fn check(
    layout: &Layout,
    length: u64,
    read: &mut Read<'_>,
) -> Result<Checked, NotWritable> {
    let clusters = length.div_ceil(layout.cluster());
    let Some(count) = usize::try_from(clusters).ok().filter(|_| clusters <= MOST_CLUSTERS) else {
        return Ok(Checked::TooLarge);
    };
    let mut check = Check { layout, read, counts: vec![0; count], left: MOST_TABLES };
    match check.all() {
        Ok(end) => Ok(Checked::Whole(end)),
        Err(Stop::TooLarge) => Ok(Checked::TooLarge),
        Err(Stop::Wrong(reason)) => Err(reason),
    }
}

impl Check<'_, '_> {
    /// The end of the clusters that are in use, in bytes.
    fn all(&mut self) -> Result<u64, Stop> {
        let (cluster, layout) = (self.layout.cluster(), self.layout.clone());
        self.whole(0, cluster)?;
        let l1_length = layout.l1_entries.saturating_mul(8);
        self.whole(layout.clusters.l1, l1_length)?;
        let table_length = layout.table_clusters.saturating_mul(cluster);
        self.whole(layout.table, table_length)?;
        for entry in self.table(layout.clusters.l1, l1_length)? {
            if entry == 0 {
                continue;
            }
            let is_own = entry & !OFFSET == COPIED && is_whole(entry & OFFSET, cluster);
            if !is_own || entry & OFFSET == 0 {
                return Err(ENTRIES);
            }
            self.whole(entry & OFFSET, cluster)?;
            for entry in self.table(entry & OFFSET, cluster)? {
                self.data(entry)?;
            }
        }
        let blocks = self.table(layout.table, table_length)?;
        for &block in blocks.iter().filter(|&&block| block != 0) {
            if block & !OFFSET != 0 || !is_whole(block, cluster) {
                return Err(ENTRIES);
            }
            self.whole(block, cluster)?;
        }
        self.compare(&blocks)
    }

    /// Counts what an entry for the guest's data leads to.
    fn data(&mut self, entry: u64) -> Result<(), Stop> {
        if entry & COMPRESSED != 0 {
            if entry & COPIED != 0 {
                return Err(ENTRIES);
            }
            let packed = self.layout.clusters.packed(entry);
            let end = packed.offset.saturating_add(packed.stored.saturating_sub(1));
            let cluster = self.layout.cluster();
            for nth in packed.offset / cluster..=end / cluster {
                let count = self.count(nth)?;
                if *count >= WHOLE - 1 {
                    return Err(REFCOUNTS);
                }
                *count += 1;
            }
            return Ok(());
        }
        let known = OFFSET | COPIED | if self.layout.clusters.zeroes { ZERO } else { 0 };
        let (offset, is_own) = (entry & OFFSET, entry & COPIED != 0);
        if entry & !known != 0 || is_own != (offset != 0) {
            return Err(ENTRIES);
        }
        if offset == 0 { Ok(()) } else { self.whole(offset, self.layout.cluster()) }
    }

    fn count(&mut self, cluster: u64) -> Result<&mut u16, Stop> {
        usize::try_from(cluster).ok().and_then(|at| self.counts.get_mut(at)).ok_or(CUT)
    }

    /// Counts the clusters of `length` bytes from `offset` on, which nothing else may lead to.
    fn whole(&mut self, offset: u64, length: u64) -> Result<(), Stop> {
        let cluster = self.layout.cluster();
        if !is_whole(offset, cluster) {
            return Err(ENTRIES);
        }
        let end = offset.checked_add(length).ok_or(CUT)?;
        for nth in offset / cluster..end.div_ceil(cluster) {
            let count = self.count(nth)?;
            if *count != 0 {
                return Err(REFCOUNTS);
            }
            *count = WHOLE | 1;
        }
        Ok(())
    }

    /// The entries of a table of `length` bytes at `offset`. A file that ends in it is read as if
    /// zeros followed.
    fn table(&mut self, offset: u64, length: u64) -> Result<Vec<u64>, Stop> {
        let bytes = self.bytes(offset, length)?;
        let (entries, _) = bytes.as_chunks();
        Ok(entries.iter().map(|entry| u64::from_be_bytes(*entry)).collect())
    }

    fn bytes(&mut self, offset: u64, length: u64) -> Result<Vec<u8>, Stop> {
        self.left = self.left.checked_sub(length).ok_or(Stop::TooLarge)?;
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| Stop::TooLarge)?];
        let failed = |errno| Stop::Wrong(NotWritable::Failed(errno));
        (self.read)(&mut bytes, offset).map_err(failed)?;
        Ok(bytes)
    }

    /// Compares the counts with the refcounts in `blocks`, the entries of the refcount table; the
    /// end of the clusters that are in use, in bytes.
    fn compare(&mut self, blocks: &[u64]) -> Result<u64, Stop> {
        let (cluster, width) = (self.layout.cluster(), self.layout.width);
        let in_block = width.count_in(cluster);
        let (mut first, mut end) = (0, 0);
        for &block in blocks {
            let bytes = if block == 0 { Vec::new() } else { self.bytes(block, cluster)? };
            let expected = usize::try_from(first).ok().and_then(|at| self.counts.get(at..));
            let expected = expected.unwrap_or_default();
            let in_use = if bytes.is_empty() { 0 } else { in_block };
            // A block that is not there has zeros.
            let rest = (expected.len() as u64).min(in_block).max(in_use);
            for nth in 0..rest {
                let (at, length) = width.place(nth);
                let found = usize::try_from(at).ok().and_then(|at| bytes.get(at..at + length));
                let found = found.map_or(0, |bytes| width.get(nth, bytes));
                let wanted = usize::try_from(nth).ok().and_then(|nth| expected.get(nth));
                let wanted = wanted.copied().unwrap_or_default();
                let is_whole = wanted & WHOLE != 0;
                let wanted = u64::from(wanted & !WHOLE);
                // Too many for compressed ones are room that is lost, too.
                if found < wanted || is_whole && found != wanted {
                    return Err(REFCOUNTS);
                }
                if found != 0 {
                    end = first + nth + 1;
                }
            }
            first += in_block;
        }
        let rest = usize::try_from(first).ok().and_then(|at| self.counts.get(at..));
        if rest.is_some_and(|rest| rest.iter().any(|&count| count != 0)) {
            return Err(REFCOUNTS);
        }
        Ok(end.saturating_mul(cluster))
    }
}
