//! The answers of a geom: its providers, their boundaries, and the place of their bytes.

use super::slices::{PartitionType, Slices};
use super::tables::Tables;
pub use super::unpack::Packing;
use crate::base::error::Errno;
use crate::base::topology::{Topology, Translation};
use std::sync::Arc;

/// Instance of a class: providers made of the ones below.
pub trait Geom: Send + Sync {
    /// Providers that it offers, in order; an index in this list is a slot.
    fn providers(&self) -> Vec<Slot>;

    /// The topology of the provider in `slot`, given those of the consumers, in order.
    fn topology(&self, slot: usize, below: &[Topology]) -> Topology;

    /// The place of the first bytes of `[offset, offset + length)` of the provider in `slot`: one
    /// contiguous run, which may be shorter than asked, never empty. The caller keeps to the
    /// provider's length.
    fn map(&self, slot: usize, offset: u64, length: u64, op: Op) -> Extent;

    /// As [`Geom::map`], for a geom that keeps tables on its consumers: it answers by the pages of
    /// them in `tables`, and with [`Extent::Fetch`] where it wants another one.
    fn map_by(&self, slot: usize, offset: u64, length: u64, op: Op, tables: &Tables<'_>) -> Extent {
        let _ = tables;
        self.map(slot, offset, length, op)
    }

    /// The translation of the guest's addresses into those of consumer 0, for the contents of a
    /// container.
    fn translation(&self) -> Option<&Translation> {
        None
    }

    /// The same contents of a container, over what its references name: consumers 1 and so on, of
    /// these lengths in bytes. `None` for a geom that has no use for them.
    fn over(&self, lengths: &[u64]) -> Option<Arc<dyn Geom>> {
        let _ = lengths;
        None
    }

    /// Parts of the disk that its references hold, in their order, for a descriptor of several
    /// files; a reference behind them is the parent of some. None for any other container.
    fn parts(&self) -> Vec<Part> {
        Vec::new()
    }

    /// The same contents of a container over a parent of so many bytes, whatever it knows of one
    /// itself: what has no place in its file is there, and zero behind its end. `None` for a geom
    /// that is not the contents of a container.
    fn over_parent(&self, length: u64) -> Option<Arc<dyn Geom>> {
        let _ = length;
        None
    }

    /// The consumer and the byte there of copy `nth` of the run at `offset`, which [`Geom::map`]
    /// answered with [`Extent::Copies`]. Copies of one run are asked for in this order.
    fn copy(&self, slot: usize, offset: u64, nth: usize) -> (usize, u64) {
        let _ = slot;
        (nth, offset)
    }

    /// Makes the bytes at `offset` of what other consumers hold, for a run that [`Geom::map`]
    /// answered with [`Extent::Rebuilt`], or with [`Extent::At`] that could not be read; `buffer`
    /// is no longer than that run.
    ///
    /// Errors: those of `read`, and [`Errno::Io`] where too little is left.
    fn rebuild(
        &self,
        slot: usize,
        offset: u64,
        buffer: &mut [u8],
        read: &mut ReadConsumer<'_>,
    ) -> Result<(), Errno> {
        let _ = (slot, offset, buffer, read);
        Err(Errno::Io)
    }

    /// The rows of the provider in `slot`, if it is a set with parity and all its members are
    /// there: a model that writes them as a system would.
    fn rows(&self, slot: usize) -> Option<&dyn Rows> {
        let _ = slot;
        None
    }

    /// The arrangement of the provider in `slot`, if it is made of members.
    fn arrangement(&self, slot: usize) -> Option<Arrangement> {
        let _ = slot;
        None
    }

    /// The reason for which the provider in `slot` cannot be written anywhere, in a few words;
    /// `None` where some of it can.
    fn read_only(&self, slot: usize) -> Option<&'static str> {
        let _ = slot;
        None
    }

    /// The reason for which some of the provider in `slot` cannot be written, though other parts of
    /// it can; `None` where that is not so.
    fn read_only_in_part(&self, slot: usize) -> Option<&'static str> {
        let _ = slot;
        None
    }

    /// The byte of consumer 0 at which the provider begins, for a plain slice; a route folds it
    /// away. `None` for a layer that does more.
    fn shift(&self, slot: usize) -> Option<u64> {
        let _ = slot;
        None
    }

    /// The partition table, for a geom that is one.
    fn table(&self) -> Option<&Slices> {
        None
    }
}

/// Part of a disk that one file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Length of the part in bytes.
    pub length: u64,
    /// First byte of the part in the file.
    pub within: u64,
    /// True if the file may lack some of it, which is then in its parent, or zero.
    pub is_sparse: bool,
    /// Number of the reference that is its parent, from 0, and the first byte of the part there.
    /// One that has a parent of its own comes before those that stand on it.
    pub parent: Option<(usize, u64)>,
}

/// Arrangement of a set over its members, in the words of its own system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrangement {
    /// Level or type: `raid5`, `linear`, `striped`.
    pub level: String,
    /// Layout, for a level that has several: `left-symmetric`, `near=2`.
    pub layout: Option<String>,
    /// Chunk in bytes; `None` for a set without chunks.
    pub chunk: Option<u64>,
    /// Members of the whole set.
    pub members: usize,
    /// Members that are here and in use.
    pub present: usize,
}

/// Rows of a set with parity: a chunk of every member, at one address.
pub trait Rows {
    /// Bytes of a chunk: a multiple of 4096.
    fn chunk(&self) -> u64;

    /// Chunks of data in a row, at least 1.
    fn data(&self) -> u64;

    /// The consumer that holds chunk `nth` of data in `row`.
    fn member(&self, row: u64, nth: u64) -> usize;

    /// Consumers that hold the parity of `row`: one, or of RAID6 two.
    fn parity(&self, row: u64) -> [Option<usize>; 2];

    /// Byte of consumer `member` at which row 0 begins.
    fn begin(&self, member: usize) -> u64;
}

/// A reader of the consumers beneath a geom: index of the consumer, buffer, first byte there.
pub type ReadConsumer<'a> = dyn FnMut(usize, &mut [u8], u64) -> Result<(), Errno> + 'a;

/// Provider that a geom offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Suffix to the parent's name, or, of a set, the whole name.
    pub name: String,
    /// Length of the provider in bytes.
    pub length: u64,
    /// Type in the table; `None` outside of tables.
    pub kind: Option<PartitionType>,
}

/// Direction of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Read from the provider.
    Read,
    /// Write to the provider.
    Write,
}

/// Place of a run of bytes.
///
/// A geom with tables may have no answer yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Place on one consumer.
    At {
        /// Index of the consumer.
        consumer: usize,
        /// First byte on the consumer.
        offset: u64,
        /// Length of the run in bytes.
        length: u64,
    },
    /// The same bytes in several places, each of which [`Geom::copy`] says: a read takes the first
    /// that can be read, a write goes to all.
    Copies {
        /// Number of copies, at least 1.
        count: usize,
        /// Length of the run in bytes.
        length: u64,
    },
    /// No place of its own: [`Geom::rebuild`] makes it of parity and what else is left. It cannot
    /// be written.
    Rebuilt {
        /// Length of the run in bytes.
        length: u64,
    },
    /// Bytes that nothing here may write: parity, or a block that is shared, would have to change
    /// with them. The answer to a write alone.
    ReadOnly {
        /// Length of the run in bytes.
        length: u64,
    },
    /// No place: the run reads as zeros, and cannot be written.
    Zero {
        /// Length of the run in bytes.
        length: u64,
    },
    /// Part of a block that is stored compressed: a read unpacks it, and it cannot be written.
    Packed {
        /// Index of the consumer.
        consumer: usize,
        /// The compressed block there.
        block: Packed,
        /// First byte of the run in the block once it is unpacked.
        within: u64,
        /// Length of the run in bytes.
        length: u64,
    },
    /// No place: every I/O fails.
    Fail {
        /// Length of the run in bytes.
        length: u64,
    },
    /// No answer yet: the page of a table that [`Geom::map_by`] wants first. It has no length.
    Fetch {
        /// Index of the consumer.
        consumer: usize,
        /// First byte of the page there.
        page: u64,
    },
}

/// A block that is stored compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    /// First byte on the consumer.
    pub offset: u64,
    /// Bytes there that hold it; the end of them may be something else.
    pub stored: u64,
    /// Size of the block once it is unpacked.
    pub size: u64,
    /// Method by which it was packed.
    pub packing: Packing,
}

impl Extent {
    /// Length of the run in bytes.
    pub fn length(self) -> u64 {
        match self {
            Extent::At { length, .. }
            | Extent::Copies { length, .. }
            | Extent::Rebuilt { length }
            | Extent::ReadOnly { length }
            | Extent::Zero { length }
            | Extent::Packed { length, .. }
            | Extent::Fail { length } => length,
            Extent::Fetch { .. } => 0,
        }
    }
}
