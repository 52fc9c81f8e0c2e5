//! The answers of a geom: its providers, what they know of boundaries, and where their bytes are.

use super::slices::{Kind, Slices};
use crate::base::topology::Topology;

/// One instance of a class: what it makes of the providers below.
pub trait Geom: Send + Sync {
    /// The providers it offers, in order; their place in this list is their slot.
    fn providers(&self) -> Vec<Slot>;

    /// What the provider in `slot` knows, given what the consumers know.
    fn topology(&self, slot: usize, below: &[Topology]) -> Topology;

    /// Where the first bytes of `[offset, offset + length)` of the provider in `slot` live: one contiguous run, which may
    /// be shorter than asked, never empty. The caller keeps to the provider's length.
    fn map(&self, slot: usize, offset: u64, length: u64, op: Op) -> Extent;

    /// "I am only a slice": the byte of consumer 0 at which the provider begins. Such a layer is folded away.
    fn shift(&self, slot: usize) -> Option<u64> {
        let _ = slot;
        None
    }

    /// The partition table, if this is one.
    fn table(&self) -> Option<&Slices> {
        None
    }
}

/// A provider a geom offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// What follows the parent's name, or, of a set, its whole name.
    pub name: String,
    /// Bytes.
    pub length: u64,
    /// What the table says it is.
    pub kind: Option<Kind>,
}

/// What an I/O does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Read.
    Read,
    /// Write.
    Write,
}

/// Where a run of bytes lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// On that consumer, at that byte.
    At {
        /// Which.
        consumer: usize,
        /// Its byte.
        offset: u64,
        /// Bytes.
        length: u64,
    },
    /// The same bytes on every consumer: a read takes any, a write goes to all.
    Each {
        /// The byte, on each.
        offset: u64,
        /// Bytes.
        length: u64,
    },
    /// Nowhere: reads as zeros.
    Zero {
        /// Bytes.
        length: u64,
    },
    /// It fails.
    Fail {
        /// Bytes.
        length: u64,
    },
}

impl Extent {
    /// Bytes.
    pub fn length(self) -> u64 {
        match self {
            Extent::At { length, .. } | Extent::Each { length, .. } | Extent::Zero { length } | Extent::Fail { length } => length,
        }
    }
}
