//! The answers of a geom: its providers, their boundaries, and the place of their bytes.

use super::slices::{Kind, Slices};
use crate::base::topology::Topology;

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

/// Provider that a geom offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Suffix to the parent's name, or, of a set, the whole name.
    pub name: String,
    /// Length of the provider in bytes.
    pub length: u64,
    /// Type in the table; `None` outside of tables.
    pub kind: Option<Kind>,
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
    /// The same bytes on every consumer: a read takes any, a write goes to all.
    Each {
        /// First byte, on each consumer.
        offset: u64,
        /// Length of the run in bytes.
        length: u64,
    },
    /// No place: the run reads as zeros, and cannot be written.
    Zero {
        /// Length of the run in bytes.
        length: u64,
    },
    /// No place: every I/O fails.
    Fail {
        /// Length of the run in bytes.
        length: u64,
    },
}

impl Extent {
    /// Length of the run in bytes.
    pub fn length(self) -> u64 {
        match self {
            Extent::At { length, .. }
            | Extent::Each { length, .. }
            | Extent::Zero { length }
            | Extent::Fail { length } => length,
        }
    }
}
