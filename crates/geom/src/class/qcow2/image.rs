//! Tables of a qcow2 as they are while it is written, and what a write changes in them.
//!
//! Nothing here does I/O: a question is answered by the pages that are here, or with the one that
//! is missing ([`Halt::Page`]). Until it has its answer a question changes nothing that it would
//! not change again, so it can be asked again. Clusters are taken behind everything that the file
//! has, and none is taken twice: wrong refcounts do not lead to data that is written over.

use super::pages::{Halt, Pages, Rank};
use super::writing::{Layout, MOST_TABLE};
use super::{COMPRESSED, COPIED, OFFSET, ZERO};
use crate::base::error::Errno;
use crate::base::topology::is_whole;
use crate::mapping::geom::Packed;
use std::collections::BTreeSet;

#[cfg(test)]
mod tests;

/// Clusters in use behind the last one that are passed over by one question.
const MOST_PASSED: u64 = 1 << 20;
/// Clusters, or tables that are not there, that one answer is made of: the image is locked for as
/// long as it takes.
const MOST_JOINED: usize = 1 << 10;
/// Clusters that may wait to be given up.
const MANY_FREED: usize = 1 << 10;

/// Place of a cluster of the guest, and its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    /// A cluster of its own at this byte of the file, which may be written in place.
    Own(u64),
    /// A cluster of its own at this byte, which reads as zeros all the same.
    Cleared(u64),
    /// A cluster at this byte of the file that others may use, too.
    Shared(u64),
    /// A cluster of zeros without a place.
    Zero,
    /// No place in the file: the parent has it, or it is zero.
    Absent,
    /// The cluster as it is stored compressed.
    Packed(Packed),
}

impl Spot {
    /// The place of the cluster `bytes` behind one of this place, if they are one run.
    fn behind(self, bytes: u64) -> Option<Spot> {
        match self {
            Spot::Own(at) => at.checked_add(bytes).map(Spot::Own),
            Spot::Cleared(at) => at.checked_add(bytes).map(Spot::Cleared),
            Spot::Zero | Spot::Absent => Some(self),
            Spot::Shared(_) | Spot::Packed(_) => None,
        }
    }
}

/// Room that was taken for clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// So many clusters from this byte of the file on.
    Clusters(u64, u64),
    /// A cluster for refcounts at this byte, needed first: it is to be zeroed, and then added.
    Block(u64),
    /// None: the refcount table has no entry for it, and is to be made longer first.
    Table,
}

/// A longer refcount table that is to be made, and where: a block with its refcounts and its own,
/// and the table behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LongerTable {
    /// First byte of the block.
    pub(crate) block: u64,
    /// First byte of the table.
    pub(crate) table: u64,
    /// Number of clusters of the table.
    pub(crate) clusters: u64,
    /// First byte of the table as it is now, and its bytes.
    pub(crate) old: (u64, u64),
}

/// Tables of an image, as far as they are here.
pub(crate) struct Image {
    layout: Layout,
    pages: Pages,
    /// Number of the first cluster that was not taken yet, and of the first that the file cannot
    /// have.
    next: u64,
    limit: u64,
    /// Tables that nothing on the medium leads to yet.
    fresh: BTreeSet<u64>,
    /// Clusters that nothing in memory leads to any more, though something on the medium does.
    freed: Vec<u64>,
}

impl Image {
    /// The tables of an image: clusters are taken from byte `end` of its file on, up to `limit`.
    pub(crate) fn new(layout: Layout, end: u64, limit: u64) -> Image {
        let cluster = layout.cluster();
        Image {
            pages: Pages::new(cluster),
            next: end.div_ceil(cluster),
            // An entry has no room for more.
            limit: limit.min(1 << 56) / cluster,
            layout,
            fresh: BTreeSet::new(),
            freed: Vec::new(),
        }
    }

    /// Size of a cluster in bytes.
    pub(crate) fn cluster(&self) -> u64 {
        self.layout.cluster()
    }

    /// Size of a page of tables in bytes.
    pub(crate) fn page_size(&self) -> u64 {
        self.pages.size()
    }

    fn number(&mut self, at: u64) -> Result<u64, Halt> {
        self.pages.get(at).map(u64::from_be_bytes)
    }

    /// The L1 entry for cluster `nth` of the guest: its place and value.
    fn l1_entry(&mut self, nth: u64) -> Result<(u64, u64), Halt> {
        let index = nth / (self.cluster() / 8);
        let at = self.layout.clusters.l1.checked_add(index.saturating_mul(8));
        let at = at.filter(|_| index < self.layout.l1_entries);
        let at = at.ok_or(Halt::Failed(Errno::Io))?;
        Ok((at, self.number(at)?))
    }

    /// First byte of the table that has the entry of cluster `nth`, and the place of that entry;
    /// `None` if there is no table for it.
    fn entry(&mut self, nth: u64) -> Result<Option<(u64, u64)>, Halt> {
        let (_, entry) = self.l1_entry(nth)?;
        let (table, cluster) = (entry & OFFSET, self.cluster());
        if table == 0 {
            return Ok(None);
        }
        let at = Some(table + nth % (cluster / 8) * 8).filter(|_| is_whole(table, cluster));
        at.map(|at| Some((table, at))).ok_or(Halt::Failed(Errno::Io))
    }

    /// The place that an entry tells of.
    fn place_of(&self, entry: u64) -> Result<Spot, Halt> {
        if entry & COMPRESSED != 0 {
            return Ok(Spot::Packed(self.layout.clusters.packed(entry)));
        }
        let (offset, is_own) = (entry & OFFSET, entry & COPIED != 0);
        if !is_whole(offset, self.cluster()) {
            return Err(Halt::Failed(Errno::Io));
        }
        let is_zero = self.layout.clusters.zeroes && entry & ZERO != 0;
        Ok(match (is_zero, offset, is_own) {
            (true, 1.., true) => Spot::Cleared(offset),
            (true, ..) => Spot::Zero,
            (false, 0, _) => Spot::Absent,
            (false, _, true) => Spot::Own(offset),
            (false, _, false) => Spot::Shared(offset),
        })
    }

    /// The place of cluster `nth` of the guest, and the number of clusters from there on that
    /// surely have none either, or 1.
    fn place(&mut self, nth: u64) -> Result<(Spot, u64), Halt> {
        match self.entry(nth)? {
            Some((_, at)) => {
                let entry = self.number(at)?;
                Ok((self.place_of(entry)?, 1))
            }
            None => {
                let entries = self.cluster() / 8;
                Ok((Spot::Absent, entries - nth % entries))
            }
        }
    }

    /// The place of the cluster with byte `offset` of the guest, and how many of the `length` bytes
    /// from there on lie in it and in clusters that go on from it.
    pub(crate) fn find(&mut self, offset: u64, length: u64) -> Result<(Spot, u64), Halt> {
        let cluster = self.cluster();
        let (first, end) = (offset / cluster, offset.saturating_add(length));
        let (place, same) = self.place(first)?;
        let mut next = first.saturating_add(same);
        for _ in 0..MOST_JOINED {
            // A page that is not here is asked for later.
            match place.behind(next.saturating_sub(first).saturating_mul(cluster)) {
                Some(wanted) if next.saturating_mul(cluster) < end => match self.place(next) {
                    Ok((found, same)) if found == wanted => next = next.saturating_add(same),
                    _ => break,
                },
                _ => break,
            }
        }
        let stop = next.saturating_mul(cluster).min(end);
        Ok((place, stop - offset))
    }

    /// Number of clusters from the one with byte `offset` of the guest on whose entries are in one
    /// page.
    pub(crate) fn in_page(&self, offset: u64) -> u64 {
        let entries = self.pages.size() / 8;
        entries - offset / self.cluster() % entries
    }

    /// True if the cluster with byte `offset` of the guest has an entry. What it stands in must be
    /// the image's own.
    pub(crate) fn has_entry(&mut self, offset: u64) -> Result<bool, Halt> {
        let (_, entry) = self.l1_entry(offset / self.cluster())?;
        let is_own = entry & COPIED != 0;
        match (entry & OFFSET, is_own) {
            (0, _) => Ok(false),
            (_, true) => Ok(true),
            (_, false) => Err(Halt::Failed(Errno::ReadOnly)),
        }
    }

    /// First byte of the block that has the refcount of a cluster, if there is one, and the number
    /// of the refcount in it.
    fn block_of(&mut self, cluster: u64) -> Result<(Option<u64>, u64), Halt> {
        let (_, entry) = self.table_entry(cluster)?;
        let block = entry & OFFSET;
        if !is_whole(block, self.cluster()) {
            return Err(Halt::Failed(Errno::Io));
        }
        let nth = cluster % self.layout.width.count_in(self.cluster());
        Ok((Some(block).filter(|&block| block != 0), nth))
    }

    /// The entry of the refcount table for a cluster: its place and value.
    fn table_entry(&mut self, cluster: u64) -> Result<(u64, u64), Halt> {
        let index = cluster / self.layout.width.count_in(self.cluster());
        if index >= self.layout.table_entries() {
            return Err(Halt::Failed(Errno::NoSpace));
        }
        let at = self.layout.table.checked_add(index * 8).ok_or(Halt::Failed(Errno::Io))?;
        Ok((at, self.number(at)?))
    }

    fn refcount(&mut self, block: u64, nth: u64) -> Result<u64, Halt> {
        let width = self.layout.width;
        let (at, length) = width.place(nth);
        let bytes: [u8; 8] = self.pages.get((block + at) & !7)?;
        let from = usize::try_from((block + at) & 7).unwrap_or_default();
        Ok(width.get(nth, &bytes[from..from + length]))
    }

    fn set_refcount(&mut self, block: u64, nth: u64, count: u64) -> Result<(), Halt> {
        let width = self.layout.width;
        let (at, length) = width.place(nth);
        let word = (block + at) & !7;
        let mut bytes: [u8; 8] = self.pages.get(word)?;
        let from = usize::try_from((block + at) & 7).unwrap_or_default();
        width.set(nth, &mut bytes[from..from + length], count);
        self.pages.put(word, &bytes, Rank::Leaf)
    }

    /// Takes up to `most` clusters behind all others.
    pub(crate) fn allocate(&mut self, most: u64) -> Result<Room, Halt> {
        let (cluster, width) = (self.cluster(), self.layout.width);
        for _ in 0..MOST_PASSED {
            let first = self.next;
            if first >= self.limit {
                break;
            }
            let (block, nth) = match self.block_of(first) {
                Ok((Some(block), nth)) => (block, nth),
                Ok((None, _)) => return Ok(Room::Block(first * cluster)),
                Err(Halt::Failed(Errno::NoSpace)) => return Ok(Room::Table),
                Err(halt) => return Err(halt),
            };
            // All refcounts are in one page, so nothing halts between them.
            let in_page = width.count_in(self.pages.size());
            let most = most.min(in_page - nth % in_page).min(self.limit - first);
            let mut count = 0;
            while count < most && self.refcount(block, nth + count)? == 0 {
                count += 1;
            }
            if count == 0 {
                // In use, whatever the end of the file says.
                self.next += 1;
                continue;
            }
            for taken in 0..count {
                self.set_refcount(block, nth + taken, 1)?;
            }
            self.next += count;
            return Ok(Room::Clusters(first * cluster, count));
        }
        Err(Halt::Failed(Errno::NoSpace))
    }

    /// Makes the cluster at byte `at`, which is zero and was asked for by [`Image::allocate`], a
    /// block of refcounts. It has its own.
    pub(crate) fn add_block(&mut self, at: u64) -> Result<(), Halt> {
        let number = at / self.cluster();
        let (entry, _) = self.table_entry(number)?;
        let nth = number % self.layout.width.count_in(self.cluster());
        let (place, _) = self.layout.width.place(nth);
        self.pages.want(at + place)?;
        self.set_refcount(at, nth, 1)?;
        self.next = self.next.max(number + 1);
        self.pages.put(entry, &at.to_be_bytes(), Rank::Root)
    }

    /// The place of a refcount table that is twice as long. Its refcounts and those of its block
    /// are in that block.
    pub(crate) fn longer_table(&self) -> Result<LongerTable, Halt> {
        let (cluster, old) = (self.cluster(), self.layout.table_clusters);
        let in_block = self.layout.width.count_in(cluster);
        let most = (MOST_TABLE / cluster).min(in_block - 1);
        let wanted = |first: u64| {
            let reaches = (first / in_block + 1).div_ceil(cluster / 8);
            (old * 2).min(most).max(reaches)
        };
        let (mut first, mut clusters) = (self.next, wanted(self.next));
        if first % in_block + 1 + clusters > in_block {
            first = first.next_multiple_of(in_block);
            clusters = wanted(first);
        }
        let is_longer = clusters > old && clusters <= most && first + 1 + clusters <= self.limit;
        is_longer.then_some(()).ok_or(Halt::Failed(Errno::NoSpace))?;
        Ok(LongerTable {
            block: first * cluster,
            table: (first + 1) * cluster,
            clusters,
            old: (self.layout.table, old * cluster),
        })
    }

    /// Fills the block of a longer table, which is zero, and its entry in the table, which is a
    /// copy of the old one with zeros behind it. Nothing leads to them yet.
    pub(crate) fn fill_table(&mut self, longer: LongerTable) -> Result<(), Halt> {
        let in_block = self.layout.width.count_in(self.cluster());
        let first = longer.block / self.cluster();
        for nth in 0..=longer.clusters {
            self.set_refcount(longer.block, first % in_block + nth, 1)?;
        }
        let entry = longer.table + first / in_block * 8;
        self.pages.put(entry, &longer.block.to_be_bytes(), Rank::Leaf)
    }

    /// Uses a longer table, to which the header leads from now on.
    pub(crate) fn use_table(&mut self, longer: LongerTable) {
        let cluster = self.cluster();
        let (old, length) = longer.old;
        self.freed.extend(old / cluster..(old + length) / cluster);
        (self.layout.table, self.layout.table_clusters) = (longer.table, longer.clusters);
        self.next = self.next.max(longer.table / cluster + longer.clusters);
    }

    /// Takes no cluster any more: it is not known which refcount table the file has.
    pub(crate) fn stop(&mut self) {
        self.limit = 0;
    }

    /// Gives back `count` clusters from byte `first` on that were taken last and are not used.
    pub(crate) fn give_back(&mut self, first: u64, count: u64) -> Result<(), Halt> {
        let first = first / self.cluster();
        let (block, nth) = self.block_of(first)?;
        let block = block.ok_or(Halt::Failed(Errno::Io))?;
        for taken in 0..count {
            self.set_refcount(block, nth + taken, 0)?;
        }
        if self.next == first + count {
            self.next = first;
        }
        Ok(())
    }

    /// Makes the cluster at byte `at`, which is zero, the table for the entry of the cluster with
    /// byte `offset` of the guest.
    pub(crate) fn add_table(&mut self, offset: u64, at: u64) -> Result<(), Halt> {
        let (entry, _) = self.l1_entry(offset / self.cluster())?;
        self.pages.put(entry, &(at | COPIED).to_be_bytes(), Rank::Link)?;
        self.fresh.insert(at);
        Ok(())
    }

    /// Gives `count` clusters of the guest, from the one with byte `offset` on, the places from
    /// byte `at` of the file on. Their entries are in one page.
    pub(crate) fn point(&mut self, offset: u64, count: u64, at: u64) -> Result<(), Halt> {
        let cluster = self.cluster();
        self.replace(offset, count, |nth| (at + nth * cluster) | COPIED)
    }

    /// Makes `count` clusters of the guest, from the one with byte `offset` on, zeros without a
    /// place. Their entries are in one page.
    pub(crate) fn clear(&mut self, offset: u64, count: u64) -> Result<(), Halt> {
        self.replace(offset, count, |_| ZERO)
    }

    /// True if a cluster can be zero by its entry alone: in version 3.
    pub(crate) fn can_clear(&self) -> bool {
        self.layout.clusters.zeroes
    }

    fn replace(&mut self, offset: u64, count: u64, entry: impl Fn(u64) -> u64) -> Result<(), Halt> {
        let found = self.entry(offset / self.cluster())?;
        let (table, at) = found.ok_or(Halt::Failed(Errno::Io))?;
        self.pages.want(at)?;
        let rank = if self.fresh.contains(&table) { Rank::Leaf } else { Rank::Link };
        for nth in 0..count {
            let (at, new) = (at + nth * 8, entry(nth));
            let old = self.number(at)?;
            self.pages.put(at, &new.to_be_bytes(), rank)?;
            self.free(old, new);
        }
        Ok(())
    }

    /// Notes the clusters that the entry `old` leads to, and `new` does not.
    fn free(&mut self, old: u64, new: u64) {
        let cluster = self.cluster();
        if old & COMPRESSED != 0 {
            let packed = self.layout.clusters.packed(old);
            let end = packed.offset.saturating_add(packed.stored.saturating_sub(1));
            self.freed.extend(packed.offset / cluster..=end / cluster);
        } else if old & OFFSET != 0 && old & OFFSET != new & OFFSET {
            self.freed.push((old & OFFSET) / cluster);
        }
    }

    /// Lowers the refcounts of clusters that are not used any more, once nothing on the medium
    /// leads to them.
    pub(crate) fn settle_freed(&mut self) -> Result<(), Halt> {
        while let Some(&cluster) = self.freed.last() {
            if let (Some(block), nth) = self.block_of(cluster)? {
                let count = self.refcount(block, nth)?;
                self.set_refcount(block, nth, count.saturating_sub(1))?;
            }
            self.freed.pop();
        }
        Ok(())
    }

    /// The changed pages of a rank: first byte in the file, contents.
    pub(crate) fn changed(&self, rank: Rank) -> Vec<(u64, Vec<u8>)> {
        self.pages.changed(rank)
    }

    /// Notes that all changes of a rank, and of those before it, are on the medium.
    pub(crate) fn settle(&mut self, rank: Rank) {
        self.pages.settle(rank);
        if rank == Rank::Leaf {
            // From now on something may lead to them.
            self.fresh.clear();
        }
    }

    /// True if so much is changed that it should be written.
    pub(crate) fn is_full(&self) -> bool {
        self.pages.is_full() || self.freed.len() >= MANY_FREED
    }

    /// Keeps a page that was read when pages had been dropped `sweeps` times.
    pub(crate) fn insert(&mut self, at: u64, bytes: Vec<u8>, sweeps: u64) {
        self.pages.insert(at, bytes, sweeps);
    }

    /// Notes that the file has room for a page ([`Halt::Hole`]).
    pub(crate) fn fill_hole(&mut self, at: u64) {
        self.pages.fill_hole(at);
    }

    /// Number of times that pages were dropped.
    pub(crate) fn sweeps(&self) -> u64 {
        self.pages.sweeps()
    }
}
