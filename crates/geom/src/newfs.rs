//! UFS2 file systems as FreeBSD's newfs(8) makes them, purely: the geometry is decided first, then
//! every byte is handed to the caller, which writes it.
//!
//! # Contents that are written
//! A file system is a row of cylinder groups. Each begins with room for boot code (used in the
//! first only) and holds a backup of the superblock, its own map of what is free (`struct cg`),
//! inodes, and data. Only the first two blocks of a group's inodes are written, the kernel makes
//! the others when it needs them; nothing else of a group is touched. The first group also holds
//! the summaries of all groups, the root directory and `.snap`. The superblock is at byte 65536.
//!
//! [`Newfs::write`] writes it twice: first with a magic that no reader accepts, so that the old
//! contents are no file system any more; and last of all. A caller that can flush does so after the
//! first and before the last write, both at [`SUPERBLOCK`]. Memory is some blocks, whatever the
//! size.
//!
//! The last 20 bytes before the superblock tell fsck_ffs(8) where the backups are. They share a
//! sector with boot code, and a UFS1 superblock may stand at byte 8192: so the first [`SUPERBLOCK`]
//! bytes are asked for, and only whole sectors are written.
//!
//! # Limits
//! UFS1 is not made, nor is a journal of soft updates (`-j`; `tunefs -j enable` makes one). Where
//! newfs would make a file system that FreeBSD's `validate_sblock` refuses (more inodes than have
//! numbers, a group without room for its own tables), there are fewer inodes, or an error. Backups
//! of older file systems stay where the new one has free space, as with newfs. `struct cg` is
//! counted with the 176 bytes before its maps that newfs counted before FreeBSD 14: since then 168,
//! with 8 bytes less to fill, which gives the same groups.
//!
//! # Sources
//! FreeBSD `sbin/newfs/{newfs,mkfs}.c`, `sys/ufs/ffs/{fs.h,ffs_subr.c}`,
//! `sys/ufs/ufs/{dinode,dir}.h`, newfs(8).

mod directory;
mod error;
mod geometry;
mod group;
mod invalid;
mod lines;
mod options;
mod shape;
mod superblock;
mod write;

pub use error::Error;
pub use geometry::Geometry;
pub use invalid::InvalidOption;
pub use lines::Lines;
pub use options::{Flavour, Optimization, Options};
pub use write::Put;

use crate::format::ufs::fs::SBLOCK_UFS2;
use std::ops::Range;

/// First byte of the superblock; the bytes before it are for boot code.
pub const SUPERBLOCK: u64 = SBLOCK_UFS2;

/// File system whose geometry is decided, not yet written.
#[derive(Clone, Debug)]
pub struct Newfs {
    options: Options,
    geometry: Geometry,
    /// Lines that newfs prints before its summary.
    printed: Vec<String>,
    /// Lines that newfs prints to standard error, and faults that it would not notice.
    warnings: Vec<String>,
}

impl Newfs {
    /// Decides upon a file system for a provider of `length` bytes in sectors of `sector` bytes,
    /// with a read-modify-write unit of `unit` bytes. Where the options leave it open, no fragment
    /// is below that unit. The error is newfs's own, where it has one.
    pub fn new(
        length: u64,
        sector: u64,
        unit: Option<u64>,
        options: &Options,
    ) -> Result<Newfs, Error> {
        let (mut printed, mut warnings) = (Vec::new(), Vec::new());
        let mut options = options.clone();
        options.settle(&mut warnings);
        let geometry = shape::decide(length, sector, unit, &options, &mut printed, &mut warnings)?;
        Ok(Newfs { options, geometry, printed, warnings })
    }

    /// Places and sizes of its structures.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Options that were asked for, also where they are not geometry.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Warnings for the user; for standard error.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The text that newfs prints for the device `name` on a terminal of `columns` columns (0:
    /// there is none).
    pub fn lines<'a>(&'a self, name: &'a str, columns: usize) -> Lines<'a> {
        Lines { newfs: self, name, columns }
    }

    /// Bytes to discard before anything is written; `None` unless that was asked for (`-E`).
    pub fn erase(&self) -> Option<Range<u64>> {
        self.options.erase.then(|| SUPERBLOCK..self.geometry.bytes())
    }
}

#[cfg(test)]
mod tests;
