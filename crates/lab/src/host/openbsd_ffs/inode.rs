//! What a file system knows of a file: where its blocks are, and of a directory how its entries lie.

use crate::host::names::Id;

/// Bytes that a directory grows by, and that no entry crosses (`DIRBLKSIZ`).
pub(super) const DIRECTORY_BLOCK: u64 = 512;

/// Blocks that are one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The first, counted in the file.
    pub(super) lbn: u64,
    /// Its first fragment, counted in the file system.
    pub(super) at: u64,
    /// Fragments; only the last block of a file has fewer than a block.
    pub(super) fragments: u32,
}

/// A file or a directory.
#[derive(Debug, Default)]
pub(super) struct Inode {
    pub(super) number: u64,
    pub(super) size: u64,
    pub(super) runs: Vec<Run>,
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

impl Inode {
    /// Where a block is: first fragment, fragments.
    pub(super) fn block(&self, lbn: u64, frag: u32) -> Option<(u64, u32)> {
        let run = self.runs[..self.runs.partition_point(|run| run.lbn <= lbn)].last()?;
        let skipped = u32::try_from(lbn - run.lbn).ok()?.checked_mul(frag)?;
        let left = run.fragments.checked_sub(skipped).filter(|&left| left > 0)?;
        Some((run.at + u64::from(skipped), left.min(frag)))
    }

    /// Notes a block after the last, or in the place of its last.
    pub(super) fn put(&mut self, lbn: u64, at: u64, fragments: u32, frag: u32) {
        if let Some((_, old)) = self.block(lbn, frag)
            && let Some(run) = self.runs.last_mut()
        {
            run.fragments -= old;
            if run.fragments == 0 {
                self.runs.pop();
            }
        }
        match self.runs.last_mut() {
            Some(run) if run.at + u64::from(run.fragments) == at && run.fragments.is_multiple_of(frag) => run.fragments += fragments,
            _ => self.runs.push(Run { lbn, at, fragments }),
        }
    }
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
