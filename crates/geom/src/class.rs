//! The traits every class answers, and the ordered list of classes.
//!
//! Adding a class is one file in `class/`, a `mod` line and a line in [`CLASSES`] here, and a golden disk in
//! `tests/disks/`.

use crate::finding::Finding;
use crate::probe::Probe;
use crate::slices::{Kind, Slices};
use crate::topology::Topology;
use std::sync::Arc;

pub mod bsd;
pub mod bsd64;
pub mod concat;
pub mod gpt;
pub mod mbr;
pub mod metadata;
pub mod minix;
pub mod mirror;
pub mod nop;
pub mod solaris;
pub mod stripe;
pub mod unixware;
pub mod zero;

/// The classes that taste, in the order in which they are asked.
///
/// `gpt` comes before `mbr`: a protective MBR is part of a GPT, not a table; where an MBR of real entries hides a GPT, `gpt`
/// says so itself and yields. The labels come next: a disk with both an MBR and a label behind it is read by its MBR, as
/// every kernel does. Tables that only an MBR's type announces exclude each other. Sets come last; their metadata is in the last sector and excludes no table at the front.
pub static CLASSES: &[&dyn Class] = &[
    &gpt::Gpt,
    &mbr::Mbr,
    &bsd64::Bsd64,
    &bsd::Bsd,
    &minix::Minix,
    &solaris::Solaris,
    &unixware::UnixWare,
    &stripe::Stripe,
    &mirror::Mirror,
    &concat::Concat,
];

/// One kind of layer.
pub trait Class: Sync {
    /// GEOM's name, in lower case.
    fn name(&self) -> &'static str;

    /// What this class makes of a provider. Never writes; damage is a result.
    fn taste(&self, probe: &Probe<'_>) -> Taste;

    /// The set that `members` make; `None` if they do not. They come with one [`Member::set`] and [`Member::count`], in order
    /// of [`Member::number`], each number once, at least [`Member::enough`] of them.
    fn assemble(&self, members: &[Member]) -> Option<Arc<dyn Geom>> {
        let _ = members;
        None
    }
}

/// The answer to a taste.
pub enum Taste {
    /// Not mine.
    No,
    /// Mine, but nothing can be made of it: why. A label nobody can read, a table for another sector size, a stale one.
    Refused(Vec<Finding>),
    /// A geom over this one provider.
    Geom(Arc<dyn Geom>, Vec<Finding>),
    /// A member of a set.
    Member(Member),
}

/// One provider's place in a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// What all members of one set share and no other set has.
    pub set: String,
    /// The provider the set makes: `stripe/data`.
    pub provider: String,
    /// This member's place, from 0; `None` where any order will do.
    pub number: Option<usize>,
    /// Members in the set.
    pub count: usize,
    /// Members without which there is no provider.
    pub enough: usize,
    /// Chunk in bytes, for sets that have one.
    pub chunk: u64,
    /// Bytes of this member that the set may use.
    pub length: u64,
}

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
