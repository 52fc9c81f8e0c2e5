//! Where everything is in a file system that was decided upon.
//!
//! Everything is counted in fragments unless its name or comment says bytes.

use crate::base::topology::round_up;

/// Bytes of an inode, and of a block's address.
pub(super) const DINODE: u64 = 256;
const ADDRESS: u64 = 8;
/// The unit of the addresses that newfs prints and of `fs_fsbtodb`, whatever the sector.
pub(super) const DEV_BSIZE: u64 = 512;

/// `value` rounded up to whole `unit`s. Past 2^64 it is all there is: no provider is that long, so the checks that follow refuse.
pub(super) fn up(value: u64, unit: u64) -> u64 {
    round_up(value, unit).unwrap_or(u64::MAX)
}

/// Where everything is. The fields have the names of `struct fs` without `fs_`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of a sector.
    pub sector: u64,
    /// Bytes of a block.
    pub bsize: u64,
    /// Bytes of a fragment.
    pub fsize: u64,
    /// Fragments in a block.
    pub frag: u64,
    /// Fragments in the file system.
    pub size: u64,
    /// Fragments in the provider.
    pub providersize: u64,
    /// The backup superblock in a group.
    pub sblkno: u64,
    /// `struct cg` in a group.
    pub cblkno: u64,
    /// Inodes in a group.
    pub iblkno: u64,
    /// Data in a group.
    pub dblkno: u64,
    /// Groups.
    pub ncg: u64,
    /// Inodes in a group.
    pub ipg: u64,
    /// Fragments in a group; the last may have fewer.
    pub fpg: u64,
    /// Bytes of `struct cg` with its maps, in whole fragments.
    pub cgsize: u64,
    /// Bytes of all summaries, in whole fragments.
    pub cssize: u64,
    /// Bytes of a superblock, in whole sectors.
    pub sbsize: u64,
    /// Bytes of the largest extent.
    pub maxbsize: u64,
    /// Blocks laid out in one run.
    pub maxcontig: u64,
    /// Lengths of free runs that are counted.
    pub contigsumsize: u64,
    /// Kept for metadata in each group.
    pub metaspace: u64,
    /// Blocks that `.snap` and the root directory take together: one each.
    pub directories: u64,
}

impl Geometry {
    /// Bytes of the file system.
    pub fn bytes(&self) -> u64 {
        self.size * self.fsize
    }

    /// Inodes in a block.
    pub fn inopb(&self) -> u64 {
        self.bsize / DINODE
    }

    /// Addresses in a block.
    pub fn nindir(&self) -> u64 {
        self.bsize / ADDRESS
    }

    /// The 512-byte unit at which fragment `at` begins.
    pub fn fsbtodb(&self, at: u64) -> u64 {
        at * (self.fsize / DEV_BSIZE)
    }

    /// The first fragment of group `cg`.
    pub fn base(&self, cg: u64) -> u64 {
        cg * self.fpg
    }

    /// Fragments of group `cg`.
    pub fn ndblk(&self, cg: u64) -> u64 {
        self.fpg.min(self.size.saturating_sub(self.base(cg)))
    }

    /// Fragments of the summaries.
    pub fn csfrags(&self) -> u64 {
        self.cssize / self.fsize
    }

    /// The first fragment for data in group `cg`, counted in the group: the first group has the summaries before it.
    pub fn data(&self, cg: u64) -> u64 {
        self.dblkno + if cg == 0 { self.csfrags() } else { 0 }
    }

    /// Inodes that are written in each group.
    pub fn initediblk(&self) -> u64 {
        self.ipg.min(2 * self.inopb())
    }

    /// Bytes of them.
    pub fn inode_bytes(&self) -> u64 {
        self.initediblk() * DINODE
    }

    /// The longest file, in bytes: 12 blocks, and what one, two and three levels of indirect blocks reach. At most 2^55.
    pub fn maxfilesize(&self) -> u64 {
        let n = self.nindir();
        12 * self.bsize - 1 + self.bsize * (n + n * n + n * n * n)
    }
}
