//! The traits every class answers, and the ordered list of classes.
//!
//! Adding a class is one file in `class/`, a `mod` line and a line in [`crate::registry::CLASSES`], and a golden disk in
//! `tests/disks/`.

use crate::base::finding::Finding;
use crate::mapping::geom::Geom;
use crate::probe::Probe;
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
