//! What a file system knows of a file: where its blocks are, and of a directory how its entries lie.

use crate::os::extents::Extents;
use crate::os::names::Id;

/// Bytes that a directory grows by, and that no entry crosses (`DIRBLKSIZ`).
pub(super) const DIRECTORY_BLOCK: u64 = 512;

/// A file or a directory.
#[derive(Debug, Default)]
pub(super) struct Inode {
    pub(super) number: u64,
    pub(super) size: u64,
    pub(super) extents: Extents,
    /// Indirect blocks: their first fragments.
    pub(super) indirect: Vec<u64>,
    pub(super) parent: Id,
    /// In which block of its parent its name is, and how many bytes it takes there.
    pub(super) entry: (u32, u16),
    /// Only of a directory.
    pub(super) directory: Option<Box<Directory>>,
    /// Whole blocks written one after another and not yet sent: the first, and how many.
    pub(super) cluster: (u64, u64),
    /// The block after the last that was read.
    pub(super) read_on: u64,
}

/// The entries of a directory.
#[derive(Debug, Default)]
pub(super) struct Directory {
    /// Bytes taken in each of its blocks of 512.
    used: Vec<u16>,
    /// Every block before this one is full.
    first: usize,
    pub(super) entries: u64,
}

impl Directory {
    /// With `.` and `..`.
    pub(super) fn new() -> Directory {
        Directory { used: vec![24], first: 0, entries: 0 }
    }

    /// Bytes of an entry: `struct direct`, the name with its 0, in whole words.
    pub(super) fn entry_bytes(name: &str) -> u16 {
        let leaf = name.rsplit('/').next().unwrap_or(name).len().min(255);
        u16::try_from(8 + (leaf + 4) / 4 * 4).unwrap_or(264)
    }

    /// Enters a name of `bytes` in the first block with room; whether that is a new block.
    pub(super) fn enter(&mut self, bytes: u16) -> (u32, bool) {
        let full = |used: u16| u64::from(used) + u64::from(bytes) > DIRECTORY_BLOCK;
        // The shortest entry is 12 bytes: what has less room is never looked at again.
        while self.used.get(self.first).is_some_and(|&used| u64::from(used) + 12 > DIRECTORY_BLOCK) {
            self.first += 1;
        }
        let found = self.used[self.first..].iter().position(|&used| !full(used)).map(|at| self.first + at);
        self.entries += 1;
        let block = found.unwrap_or_else(|| {
            self.used.push(0);
            self.used.len() - 1
        });
        self.used[block] += bytes;
        (u32::try_from(block).unwrap_or(u32::MAX), found.is_none())
    }

    /// Takes a name out.
    pub(super) fn leave(&mut self, (block, bytes): (u32, u16)) {
        let block = block as usize;
        self.used[block] -= bytes;
        self.first = self.first.min(block);
        self.entries -= 1;
    }
}
