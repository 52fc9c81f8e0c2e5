//! Sizes of logical sectors before and after a conversion, and the writes of one.

use crate::base::error::Errno;
use std::collections::BTreeMap;

mod overlay;
mod write;

pub use overlay::Overlay;
pub use write::{Origin, Write};

/// Largest logical sector, in bytes, which universal disks are right on as well.
pub const LARGE: u64 = 4096;
/// Smallest logical sector in bytes.
pub const SMALL: u64 = 512;

/// Sizes of sectors, and whether a disk is to be right on both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aim {
    /// Logical sector in bytes for which the disk is right now.
    pub from: u64,
    /// Logical sector in bytes for which it will be.
    pub to: u64,
    /// True if its tables are to be right for both sizes.
    pub universal: bool,
}

impl Aim {
    /// Bytes in whole multiples of which everything has to lie: the larger sector of those on which
    /// the disk will be read.
    pub fn grid(&self) -> u64 {
        if self.universal { LARGE } else { self.to }
    }

    /// Sizes of sectors for which tables are written.
    pub fn sizes(&self) -> &'static [u64] {
        match (self.universal, self.to) {
            (true, _) => &[LARGE, SMALL],
            (false, SMALL) => &[SMALL],
            (false, _) => &[LARGE],
        }
    }
}

/// A reader of bytes from a place on.
pub type ReadAt<'a> = dyn Fn(u64, &mut [u8]) -> Result<(), Errno> + 'a;

/// Facts by which a scheme writes its table anew.
pub struct Tables<'a> {
    /// Sizes of sectors, before and after.
    pub aim: &'a Aim,
    /// Length of the disk in bytes when all is done.
    pub length: u64,
    /// End of each partition in bytes, by its first byte.
    pub ends: &'a BTreeMap<u64, u64>,
    /// Reader of the bytes of the provider that the table is on.
    pub read: &'a ReadAt<'a>,
}

impl Tables<'_> {
    /// The end of the partition that begins at byte `start` and ended at `end`.
    pub fn end(&self, start: u64, end: u64) -> u64 {
        self.ends.get(&start).copied().unwrap_or(end)
    }
}

/// Facts by which a format adapts to other sectors.
#[derive(Clone, Copy, Debug)]
pub struct Resized {
    /// Logical sector in bytes that it lies on now.
    pub from: u64,
    /// Logical sector in bytes that it will lie on.
    pub to: u64,
    /// Its first byte on the disk, and in the innermost table that it is in.
    pub starts: [u64; 2],
    /// Bytes of the provider that it is on, when all is done.
    pub length: u64,
}

impl Resized {
    /// The first byte that `sectors` of `size` bytes name, if that is where it begins: on the disk
    /// or, for what a virtual machine has made, on a disk within that.
    pub fn start(&self, sectors: u64, size: u64) -> Option<u64> {
        sectors.checked_mul(size).filter(|at| self.starts.contains(at))
    }
}
