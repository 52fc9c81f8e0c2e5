//! Clusters of the image file and which of them are used: `block/qcow2-refcount.c`.
//!
//! Without snapshots a cluster is used once or not at all.

use super::Geometry;
use super::cache::{Caches, Which};
use std::collections::BTreeMap;
use trueline_geom::base::error::Errno;
use trueline_geom::base::topology::round_down;

/// Bytes of an entry of the refcount table.
const TABLE_ENTRY: u64 = 8;
/// The offset in the header of the refcount table's place and clusters, and their bytes.
const TABLE_FIELDS: (u64, u64) = (48, 12);

/// A refcount block: its offset, and which of the clusters that it counts are used.
struct Block {
    place: u64,
    used: Vec<bool>,
}

/// An attempt to count clusters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attempt {
    Done,
    /// A refcount block was made on the way, perhaps in the clusters themselves: the search for
    /// free ones begins anew.
    Again,
}

/// The change of a count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Use,
    Free,
}

/// The counts of all clusters, and the next cluster that may be free.
pub(super) struct Refcounts {
    pub(super) caches: Caches,
    geometry: Geometry,
    blocks: BTreeMap<u64, Block>,
    /// The cluster of the refcount table, and its entries.
    table: (u64, u64),
    next: u64,
}

impl Refcounts {
    /// The counts of an image that has a header, a refcount table and a refcount block, a cluster
    /// each, in this order.
    pub(super) fn new(caches: Caches, geometry: Geometry) -> Refcounts {
        let mut first = geometry.empty_block(2 * geometry.cluster);
        first.used[..3].fill(true);
        Refcounts {
            caches,
            geometry,
            blocks: BTreeMap::from([(0, first)]),
            table: (1, geometry.table_entries()),
            next: 0,
        }
    }

    /// Begins as an image that is opened.
    pub(super) fn reopen(&mut self) {
        self.caches.reopen();
        self.next = 0;
    }

    /// Uses `count` clusters side by side, and gives the first (`qcow2_alloc_clusters`).
    pub(super) fn allocate(&mut self, count: u64) -> Result<u64, Errno> {
        loop {
            let first = self.search(count)?;
            if self.change(first, count, Change::Use)? == Attempt::Done {
                return Ok(first);
            }
        }
    }

    /// Uses up to `count` free clusters from `first` on, and gives their number
    /// (`qcow2_alloc_clusters_at`). It does not move the place where the next search begins.
    pub(super) fn allocate_at(&mut self, first: u64, count: u64) -> Result<u64, Errno> {
        loop {
            let mut free = 0;
            while free < count && !self.is_used(first + free)? {
                free += 1;
            }
            if self.change(first, free, Change::Use)? == Attempt::Done {
                return Ok(free);
            }
        }
    }

    /// The first of `count` free clusters side by side (`alloc_clusters_noref`).
    fn search(&mut self, count: u64) -> Result<u64, Errno> {
        let mut found = 0;
        while found < count {
            let cluster = self.next;
            self.next += 1;
            found = if self.is_used(cluster)? { 0 } else { found + 1 };
            // Free clusters go on without end; the file does not.
            self.geometry.require_room(cluster)?;
        }
        Ok(self.next - count)
    }

    fn is_used(&mut self, cluster: u64) -> Result<bool, Errno> {
        let (index, within) = self.geometry.block_of(cluster);
        let Some(block) = self.blocks.get(&index) else { return Ok(false) };
        self.caches.get(Which::Blocks, block.place)?;
        Ok(block.used[within])
    }

    /// Changes the counts of `count` clusters (`update_refcount`).
    fn change(&mut self, first: u64, count: u64, change: Change) -> Result<Attempt, Errno> {
        if count == 0 {
            return Ok(Attempt::Done);
        }
        if change == Change::Free {
            self.caches.depend(Which::Blocks)?;
        }
        let mut loaded = None;
        for cluster in first..first + count {
            let (index, within) = self.geometry.block_of(cluster);
            if loaded != Some(index) {
                if self.load(cluster)? == Attempt::Again {
                    self.next = self.next.min(first);
                    // What was counted until then is taken back, whatever comes of that.
                    let back = if change == Change::Use { Change::Free } else { Change::Use };
                    self.change(first, cluster - first, back)?;
                    return Ok(Attempt::Again);
                }
                loaded = Some(index);
            }
            if let Some(block) = self.blocks.get_mut(&index) {
                block.used[within] = change == Change::Use;
            }
            if change == Change::Free {
                self.next = self.next.min(cluster);
            }
        }
        Ok(Attempt::Done)
    }

    /// Loads the refcount block of a cluster, to be changed; it is made if there is none
    /// (`alloc_refcount_block`).
    fn load(&mut self, cluster: u64) -> Result<Attempt, Errno> {
        let (index, _) = self.geometry.block_of(cluster);
        if let Some(block) = self.blocks.get(&index) {
            self.caches.change(Which::Blocks, block.place)?;
            return Ok(Attempt::Done);
        }
        self.caches.flush(Which::Tables)?;
        let own_cluster = self.search(1)?;
        let place = own_cluster * self.geometry.cluster;
        let mut block = self.geometry.empty_block(place);
        let (own, within) = self.geometry.block_of(own_cluster);
        if own == index {
            block.used[within] = true;
        } else {
            if self.change(own_cluster, 1, Change::Use)? == Attempt::Again {
                return Ok(Attempt::Again);
            }
            self.caches.flush(Which::Blocks)?;
        }
        self.caches.create(Which::Blocks, place)?;
        self.caches.flush(Which::Blocks)?;
        self.blocks.insert(index, block);
        if index < self.table.1 {
            let at = self.table.0 * self.geometry.cluster + index * TABLE_ENTRY;
            self.caches.file.write_sync(at, TABLE_ENTRY)?;
        } else {
            let per_block = self.geometry.counts_per_block();
            let (last, _) = self.geometry.block_of(cluster.max(own_cluster));
            self.grow((last + 1) * per_block)?;
            self.caches.get(Which::Blocks, place)?;
        }
        Ok(Attempt::Again)
    }

    /// Makes a larger refcount table, with the refcount blocks that count its clusters, from
    /// cluster `start` on (`qcow2_refcount_area`).
    fn grow(&mut self, start: u64) -> Result<(), Errno> {
        let wanted = self.geometry.blocks_for(start);
        let entries = self.geometry.table_entries();
        let clusters = (wanted + wanted.div_ceil(2)).div_ceil(entries);
        let (first, _) = self.geometry.block_of(start);
        let missing = (first..wanted).filter(|index| !self.blocks.contains_key(index)).count();
        let place = start + missing as u64;
        let end = place + clusters;
        let mut next = start * self.geometry.cluster;
        for index in first..wanted {
            match self.blocks.get(&index) {
                Some(block) => self.caches.get(Which::Blocks, block.place)?,
                None => {
                    self.caches.create(Which::Blocks, next)?;
                    self.blocks.insert(index, self.geometry.empty_block(next));
                    next += self.geometry.cluster;
                }
            }
            let covers = self.geometry.covered_by(index);
            if covers.start < end
                && let Some(block) = self.blocks.get_mut(&index)
            {
                for cluster in covers.start.max(start)..covers.end.min(end) {
                    block.used[self.geometry.block_of(cluster).1] = true;
                }
                self.caches.change(Which::Blocks, block.place)?;
            }
        }
        self.caches.flush(Which::Blocks)?;
        let cluster = self.geometry.cluster;
        self.caches.file.write_sync(place * cluster, clusters * cluster)?;
        let (at, length) = TABLE_FIELDS;
        self.caches.file.write_sync(at, length)?;
        let (old, old_entries) = std::mem::replace(&mut self.table, (place, clusters * entries));
        self.change(old, old_entries.div_ceil(entries), Change::Free)?;
        Ok(())
    }
}

impl Geometry {
    fn empty_block(&self, place: u64) -> Block {
        let counts = usize::try_from(self.counts_per_block()).unwrap_or(0);
        Block { place, used: vec![false; counts] }
    }

    /// Entries of a cluster of the refcount table.
    fn table_entries(&self) -> u64 {
        self.cluster.div_ceil(TABLE_ENTRY)
    }

    /// The number of the refcount block that counts a cluster, and the place in it.
    fn block_of(&self, cluster: u64) -> (u64, usize) {
        let per_block = self.counts_per_block();
        let first = round_down(cluster, per_block);
        (first.div_ceil(per_block), usize::try_from(cluster - first).unwrap_or(0))
    }

    fn covered_by(&self, block: u64) -> std::ops::Range<u64> {
        let per_block = self.counts_per_block();
        block * per_block..(block + 1) * per_block
    }

    /// Refcount blocks of a file with `clusters` clusters beside these blocks and their table, and
    /// with half as many more of the table's (`qcow2_refcount_metadata_size`, generously).
    fn blocks_for(&self, clusters: u64) -> u64 {
        let (_, table) = self.refcounts_of(clusters);
        self.refcounts_of(clusters + table.div_ceil(2)).0
    }

    /// The fewest refcount blocks and clusters of their table that count themselves and `clusters`
    /// others.
    pub(super) fn refcounts_of(&self, clusters: u64) -> (u64, u64) {
        let (mut blocks, mut table) = (0, 0);
        loop {
            let all = clusters + blocks + table;
            let now = all.div_ceil(self.counts_per_block());
            let held = now.div_ceil(self.table_entries());
            if (now, held) == (blocks, table) {
                return (blocks, table);
            }
            (blocks, table) = (now, held);
        }
    }
}
