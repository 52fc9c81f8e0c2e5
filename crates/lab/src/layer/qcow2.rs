//! `qcow2`: an image in QEMU's format, with a backing file or without.
//!
//! The image file begins at 0 of what is beneath, the backing file at `backing`. The image has been
//! created and opened, and nothing was asked of it.
//!
//! # Rules
//! - **A first write** to a cluster gives it a place at the end of the file, in the order in which
//!   clusters are written; what goes on in the guest and in the file is one request
//!   (`qcow2_alloc_host_offset`, `handle_copied`, `handle_alloc`). The rest of the cluster is
//!   copied from the backing file: head and tail each in a read, both in one if at most 16 KiB lie
//!   between them, and written with the guest's data in one request (`perform_cow`, `merge_cow`).
//!   Without a backing file the cluster is made zero by `fallocate`, and the guest's bytes alone
//!   are written (`handle_alloc_space`).
//! - **A read** is one request for what has one state and lies side by side in the file, and none
//!   where there is neither a cluster nor a backing file (`qcow2_get_host_offset`). Up to eight
//!   parts of a request are in flight together.
//! - **Tables.** L2 tables and refcount blocks are in caches: at most 32 MiB of the first, four of
//!   the others; the one used least lately leaves (`qcow2-cache.c`). Tables are read and written
//!   whole, L2 tables in slices of 4 KiB if the disk has more of them than the cache
//!   (`read_cache_sizes`). A flush writes the refcount blocks, flushes, writes the L2 tables and
//!   flushes. A new L2 table is written at once, between two flushes, and then its entry in the L1
//!   table and a third (`l2_allocate`). A new refcount block, and a larger refcount table, are
//!   written before anything goes on (`alloc_refcount_block`, `qcow2_refcount_area`).
//! - **Flushes.** The file is flushed if it was written since the last flush, else not
//!   (`bdrv_co_flush`). A write with FUA is a write and a flush.
//! - **Alignment.** A request of the file that is not in whole units of `alignment` reads its first
//!   and last unit before it is written, and is read in whole units (`bdrv_co_pwritev_part`). A
//!   file through the page cache has units of one byte.
//!
//! # Limits
//! Requests are equal one at a time: of two that make the same cluster QEMU keeps the second
//! waiting. Of a request in several parts the order is not told, nor, if a later part makes a
//! table, how many flushes there are, which is a matter of time in QEMU too: at least as many as
//! here. Zeros are data, as with `detect-zeroes=off`; there is no discard, no snapshot, no
//! compression, no encryption, no lazy refcount, and the caches are not cleaned after
//! `cache-clean-interval`. What opening and closing the image reads and writes is not in it, nor
//! are ranges that are made zero among the counts of requests: [`Qcow2::zeroed`] has them. The
//! backing file has the guest's length and is raw. Memory grows with the L2 tables that are made,
//! by 8 bytes for each of their clusters (12 with subclusters).
//!
//! # Sources
//! QEMU's `block/qcow2.c`, `qcow2-cluster.c`, `qcow2-refcount.c`, `qcow2-cache.c` and `io.c`, and
//! what `qemu-io` 7.2.22 asks of the kernel, which `tests/layers/qcow2.rs` compares to the request.

use super::steps::Steps;
use super::{Layer, LayerKind, parameters};
use crate::error::Error;
use crate::rig::Op;
use crate::streams::Ask;
use cache::{Caches, Which};
use clusters::Clusters;
use data::Image;
pub use file::Zeroed;
use file::{Backing, ImageFile};
use refcounts::Refcounts;
use serde::Deserialize;
use trueline_geom::base::error::Errno;
use trueline_geom::base::topology::{is_whole, round_down, round_up};
use trueline_sim::model::keys::names;

mod cache;
mod clusters;
mod data;
mod file;
mod refcounts;
#[cfg(test)]
mod tests;

/// The layer `qcow2` as listed.
pub const KIND: LayerKind = LayerKind {
    name: "qcow2",
    title: "an image in QEMU's format, over a backing file or none",
    keys: names::<Keys>,
    make: |keys| Ok(Box::new(Qcow2::new(parameters(keys)?)?)),
};

/// The sector of QEMU's block devices in bytes, whatever is beneath (`logical_block_size`).
const SECTOR: u64 = 512;
/// The bytes of clusters that the format knows: `MIN_CLUSTER_BITS` and `MAX_CLUSTER_BITS`.
const CLUSTERS: std::ops::RangeInclusive<u64> = 512..=2 << 20;
/// The smallest cluster that has subclusters, and their number.
const SUBCLUSTERS: (u64, u64) = (16384, 32);
/// The most bytes of L2 tables in their cache (`DEFAULT_L2_CACHE_MAX_SIZE` on Linux), and the
/// fewest tables (`MIN_L2_CACHE_SIZE`).
const TABLES_CACHED: (u64, u64) = (32 << 20, 2);
/// The bytes of an L2 table that are cached at once, where not all tables fit the cache.
const SLICE: u64 = 4096;
/// Refcount blocks in their cache (`MIN_REFCOUNT_CACHE_SIZE`).
const BLOCKS_CACHED: usize = 4;
/// The largest L1 table in bytes (`QCOW_MAX_L1_SIZE`).
const L1_MOST: u64 = 32 << 20;

/// The most clusters that have their place from the beginning: seconds of work, and 32 MiB.
const PREALLOCATED_MOST: u64 = 1 << 22;

/// The keys of the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Keys {
    /// The bytes of a cluster (`cluster_size`).
    pub cluster: u64,
    /// The offset at which the backing file begins; without it there is none.
    pub backing: Option<u64>,
    /// The bytes of the guest's disk; without it, as many as fit.
    pub size: Option<u64>,
    /// True if a cluster has 32 subclusters, each copied alone (`extended_l2`).
    pub subclusters: bool,
    /// True if all clusters have their place from the beginning (`preallocation=metadata`).
    pub preallocated: bool,
    /// The bytes in whose multiples the files are read and written; without it, the sector beneath,
    /// as with `cache=none`.
    pub alignment: Option<u64>,
    /// True if the file can make ranges zero without writing them.
    pub zero_range: bool,
}

impl Default for Keys {
    fn default() -> Keys {
        Keys {
            cluster: 65536,
            backing: None,
            size: None,
            subclusters: false,
            preallocated: false,
            alignment: None,
            zero_range: true,
        }
    }
}

/// The units of an image, in bytes.
#[derive(Clone, Copy, Debug)]
struct Geometry {
    cluster: u64,
    /// The unit that has data or has none: a subcluster, or the cluster.
    part: u64,
    /// The unit of requests of the files.
    alignment: u64,
    /// The most bytes of the image file.
    space: u64,
    /// The bytes of an L2 table that are read and written at once.
    slice: u64,
}

impl Geometry {
    /// The bytes of an entry of an L2 table, with those of a bitmap of subclusters.
    fn table_entry(&self) -> u64 {
        if self.part < self.cluster { 16 } else { 8 }
    }

    fn entries_per_table(&self) -> u64 {
        self.cluster.div_ceil(self.table_entry())
    }

    /// Clusters that a refcount block counts, in 16 bits each.
    fn counts_per_block(&self) -> u64 {
        self.cluster.div_ceil(2)
    }

    /// It is an error if a cluster lies past the space of the file.
    fn require_room(&self, cluster: u64) -> Result<(), Errno> {
        if cluster < self.space.div_ceil(self.cluster) { Ok(()) } else { Err(Errno::NoSpace) }
    }

    /// The bytes of the file if all clusters of a disk of `size` bytes have data: what
    /// `qemu-img measure` calls fully allocated.
    fn full(&self, size: u64) -> u64 {
        let tables = self.l1_entries(size);
        let l1 = tables.saturating_mul(8).div_ceil(self.cluster);
        let clusters = 1 + l1 + tables + size.div_ceil(self.cluster);
        let (blocks, table) = self.refcounts_of(clusters);
        (clusters + blocks + table).saturating_mul(self.cluster)
    }

    /// The bytes that refcount tables leave behind as they grow past their first cluster: the old
    /// tables, and holes where a run of new clusters found no room before one. More than any image
    /// of 5 MiB to 3 GiB that was filled (`tests::the_largest_disk_can_be_filled` has two of them)
    /// left behind; 0 where the first table is enough.
    fn outgrown(&self, size: u64) -> u64 {
        let clusters = self.full(size).div_ceil(self.cluster);
        match self.refcounts_of(clusters).1 {
            0 | 1 => 0,
            table => (6 * table + self.entries_per_table() + 8).saturating_mul(self.cluster),
        }
    }

    /// The largest disk in whole clusters whose image fits the space when it is full.
    fn largest(&self) -> u64 {
        let (mut fits, mut not) = (0, round_down(self.space, self.cluster) + self.cluster);
        while not - fits > self.cluster {
            let middle = fits + round_down((not - fits).div_ceil(2), self.cluster);
            let full = self.full(middle).saturating_add(self.outgrown(middle));
            if full <= self.space { fits = middle } else { not = middle }
        }
        fits
    }
}

/// An image with its backing file, as QEMU has it open.
pub struct Qcow2 {
    keys: Keys,
    /// `None` before the layer stands on a device.
    image: Option<Image>,
}

impl Qcow2 {
    /// An image; it is an error if the format has no such clusters.
    pub fn new(keys: Keys) -> Result<Qcow2, Error> {
        let Keys { cluster, subclusters, backing, preallocated, .. } = keys;
        if !cluster.is_power_of_two() || !CLUSTERS.contains(&cluster) {
            return Err(Error::new(format!(
                "clusters of {cluster} bytes: powers of two from 512 to 2097152"
            )));
        }
        if subclusters && cluster < SUBCLUSTERS.0 {
            return Err(Error::new(format!(
                "subclusters of clusters of {cluster} bytes: at least {}",
                SUBCLUSTERS.0
            )));
        }
        if backing.is_some() && preallocated && !subclusters {
            return Err(Error::new(
                "preallocated over a backing file: only with subclusters".into(),
            ));
        }
        Ok(Qcow2 { keys, image: None })
    }

    /// Ranges of the image file that were made zero: no requests of [`Layer::plan`].
    pub fn zeroed(&self) -> Zeroed {
        self.image
            .as_ref()
            .map_or(Zeroed::default(), |image| image.clusters.counts.caches.file.zeroed)
    }

    /// The units over a device; it is an error if requests of them cannot be made of it.
    fn geometry(&self, length: u64, sector: u64) -> Result<Geometry, Error> {
        let Keys { cluster, backing, subclusters, alignment, .. } = self.keys;
        let part = if subclusters { cluster.div_ceil(SUBCLUSTERS.1) } else { cluster };
        let alignment = alignment.unwrap_or(sector);
        if !alignment.is_power_of_two() || alignment > part || !is_whole(alignment, sector) {
            return Err(Error::new(format!(
                "alignment {alignment}: a power of two, from the sector of {sector} bytes to {part}"
            )));
        }
        let space = backing.unwrap_or(length);
        if space > length || !is_whole(space, alignment) {
            return Err(Error::new(format!(
                "a backing file at {space}: in whole units of {alignment} bytes, of {length}"
            )));
        }
        Ok(Geometry { cluster, part, alignment, space, slice: cluster })
    }

    /// The bytes of the guest's disk over a device.
    fn disk(&self, geometry: &Geometry, length: u64) -> Result<u64, Error> {
        let behind = self.keys.backing.map_or(u64::MAX, |backing| length - backing);
        let unit = SECTOR.max(geometry.alignment);
        let size = self.keys.size.unwrap_or(geometry.largest().min(round_down(behind, unit)));
        let most = L1_MOST.div_ceil(8);
        if self.keys.size == Some(0) {
            return Err(Error::new("size = 0: a disk has at least a sector".into()));
        }
        if size == 0 {
            let Geometry { cluster, space, .. } = geometry;
            return Err(Error::new(format!(
                "a file of {space} bytes: too small for an image in clusters of {cluster}"
            )));
        }
        if !is_whole(size, unit) {
            return Err(Error::new(format!("a disk of {size} bytes: whole units of {unit}")));
        }
        if size > behind {
            return Err(Error::new(format!(
                "a disk of {size} bytes: its backing file has only {behind}"
            )));
        }
        if self.keys.preallocated && size.div_ceil(geometry.cluster) > PREALLOCATED_MOST {
            return Err(Error::new(format!(
                "a preallocated disk of {size} bytes: more than {PREALLOCATED_MOST} clusters of {}",
                geometry.cluster
            )));
        }
        if geometry.l1_entries(size) > most {
            return Err(Error::new(format!(
                "a disk of {size} bytes in clusters of {}: more than {most} L2 tables",
                geometry.cluster
            )));
        }
        Ok(size)
    }

    /// The image as `qemu-img create` leaves it, opened.
    fn create(&self, mut geometry: Geometry, size: u64) -> Result<Image, Errno> {
        let Geometry { cluster, alignment, space, .. } = geometry;
        let needed = up(size.div_ceil(cluster) * geometry.table_entry(), cluster);
        if needed > TABLES_CACHED.0 {
            geometry.slice = cluster.min(SLICE);
        }
        let slice = geometry.slice;
        let tables = needed.min(TABLES_CACHED.0).div_ceil(slice).max(TABLES_CACHED.1);
        let tables = usize::try_from(tables).map_err(|_| Errno::NoSpace)?;
        let mut file = ImageFile::new(alignment, space);
        file.write(0, 3 * cluster)?;
        let caches = Caches::new(file, (tables, slice), (BLOCKS_CACHED, cluster));
        let mut clusters = Clusters::new(Refcounts::new(caches, geometry), geometry, size)?;
        let mut at = if self.keys.preallocated { 0 } else { size };
        while at < size {
            let extent = clusters.place(at, size - at)?;
            for made in &extent.allocations {
                clusters.link(made, false)?;
            }
            at += extent.length;
            // The file is made as long as its last cluster needs.
            let file = &mut clusters.counts.caches.file;
            file.end = file.end.max(extent.host + extent.length);
        }
        let caches = &mut clusters.counts.caches;
        caches.write(Which::Tables)?;
        caches.write(Which::Blocks)?;
        clusters.counts.reopen();
        let backing = self.keys.backing.map(|start| Backing { start, length: size });
        Ok(Image { clusters, size, backing, zero_range: self.keys.zero_range })
    }
}

impl Layer for Qcow2 {
    fn length(&self, _beneath: u64) -> u64 {
        self.image.as_ref().map_or(0, |image| image.size)
    }

    fn sector(&self, _beneath: u64) -> u64 {
        SECTOR
    }

    fn attach(&mut self, length: u64, sector: u64) -> Result<(), Error> {
        let geometry = self.geometry(length, sector)?;
        let size = self.disk(&geometry, length)?;
        let image = self
            .create(geometry, size)
            .map_err(|errno| Error::new(format!("a disk of {size} bytes: {errno}")))?;
        self.image = Some(image);
        Ok(())
    }

    fn plan(&mut self, ask: Ask, steps: &mut Steps) -> Result<(), Errno> {
        let image = self.image.as_mut().ok_or(Errno::NoDevice)?;
        let planned = match ask.op {
            Op::Read => image.read(ask.offset, ask.length, steps),
            Op::Write => image
                .write(ask.offset, ask.length, steps)
                .and_then(|()| if ask.fua { image.flush(steps) } else { Ok(()) }),
            Op::Flush => image.flush(steps),
        };
        // Of one that fails the requests until then are not sent.
        image.clusters.counts.caches.file.take_log();
        planned
    }
}

/// `value` rounded up to whole units; what is past all addresses stays there.
fn up(value: u64, unit: u64) -> u64 {
    round_up(value, unit).unwrap_or(u64::MAX)
}
