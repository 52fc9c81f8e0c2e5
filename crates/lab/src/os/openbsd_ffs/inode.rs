//! The inode of a file, with its extents, and of a directory, with the places of its entries.

use crate::os::extents::Extents;
use crate::os::names::Id;

/// The size of a directory block in bytes: directories grow by it, and no entry crosses it
/// (`DIRBLKSIZ`).
pub(super) const DIRECTORY_BLOCK: u64 = 512;

/// A file or a directory.
#[derive(Debug, Default)]
pub(super) struct Inode {
    pub(super) number: u64,
    pub(super) size: u64,
    pub(super) extents: Extents,
    /// The first fragments of its indirect blocks.
    pub(super) indirect: Vec<u64>,
    pub(super) parent: Id,
    /// Its directory entry: the block of 512 bytes in its parent, and the entry's length in bytes.
    pub(super) entry: (u32, u16),
    /// The entries of a directory; `None` for a file.
    pub(super) directory: Option<Box<Directory>>,
    /// Contiguous whole blocks written and not yet sent: the first, and their number.
    pub(super) cluster: (u64, u64),
    /// The block after the last one read.
    pub(super) read_on: u64,
}

/// The entries of a directory.
#[derive(Debug, Default)]
pub(super) struct Directory {
    /// Bytes used in each of its blocks of 512.
    used: Vec<u16>,
    /// The first block that may have room; all before it are full.
    first: usize,
    pub(super) entries: u64,
}

impl Directory {
    /// A directory with nothing but `.` and `..`.
    pub(super) fn new() -> Directory {
        Directory { used: vec![24], first: 0, entries: 0 }
    }

    /// The length of an entry in bytes: `struct direct`, the name and its final 0, rounded up to 4.
    pub(super) fn entry_bytes(name: &str) -> u16 {
        let leaf = name.rsplit('/').next().unwrap_or(name).len().min(255);
        u16::try_from(8 + (leaf + 4) / 4 * 4).unwrap_or(264)
    }

    /// Adds an entry of `bytes` to the first block with room. Returns the block, and true if it is
    /// a new one.
    pub(super) fn enter(&mut self, bytes: u16) -> (u32, bool) {
        let full = |used: u16| u64::from(used) + u64::from(bytes) > DIRECTORY_BLOCK;
        // The shortest entry is 12 bytes: a block with less room is never searched again.
        while self.used.get(self.first).is_some_and(|&used| u64::from(used) + 12 > DIRECTORY_BLOCK)
        {
            self.first += 1;
        }
        let found =
            self.used[self.first..].iter().position(|&used| !full(used)).map(|at| self.first + at);
        self.entries += 1;
        let block = found.unwrap_or_else(|| {
            self.used.push(0);
            self.used.len() - 1
        });
        self.used[block] += bytes;
        (u32::try_from(block).unwrap_or(u32::MAX), found.is_none())
    }

    /// Removes an entry, as [`Directory::enter`] placed it.
    pub(super) fn leave(&mut self, (block, bytes): (u32, u16)) {
        let block = block as usize;
        self.used[block] -= bytes;
        self.first = self.first.min(block);
        self.entries -= 1;
    }
}
