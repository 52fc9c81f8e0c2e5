//! Places and sizes of the structures of a file system.
//!
//! The unit is a fragment, unless a field's name or comment says bytes.

use crate::base::topology::round_up;

/// Bytes of an inode on the disk.
pub(super) const DINODE: u64 = 256;
const ADDRESS: u64 = 8;
/// The unit of the addresses that newfs prints and of `fs_fsbtodb`, whatever the sector.
pub(super) const DEV_BSIZE: u64 = 512;

/// The value rounded up to whole `unit`s. Past 2^64 it is `u64::MAX`: no provider is that long, so
/// the checks that follow refuse it.
pub(super) fn up(value: u64, unit: u64) -> u64 {
    round_up(value, unit).unwrap_or(u64::MAX)
}

/// Places and sizes of all structures. The fields have the names of `struct fs` without `fs_`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Sector size in bytes.
    pub sector: u64,
    /// Block size in bytes.
    pub bsize: u64,
    /// Fragment size in bytes.
    pub fsize: u64,
    /// Number of fragments in a block.
    pub frag: u64,
    /// Number of fragments in the file system.
    pub size: u64,
    /// Number of fragments in the provider.
    pub providersize: u64,
    /// Fragment of the backup superblock in a group.
    pub sblkno: u64,
    /// Fragment of `struct cg` in a group.
    pub cblkno: u64,
    /// First fragment of the inodes in a group.
    pub iblkno: u64,
    /// First fragment of the data in a group.
    pub dblkno: u64,
    /// Number of cylinder groups.
    pub ncg: u64,
    /// Number of inodes in a group.
    pub ipg: u64,
    /// Number of fragments in a group; the last may have fewer.
    pub fpg: u64,
    /// Bytes of `struct cg` with its maps, in whole fragments.
    pub cgsize: u64,
    /// Bytes of all summaries, in whole fragments.
    pub cssize: u64,
    /// Bytes of a superblock, in whole sectors.
    pub sbsize: u64,
    /// Largest extent in bytes.
    pub maxbsize: u64,
    /// Number of blocks that are laid out in one run.
    pub maxcontig: u64,
    /// Longest free run, in blocks, that a group counts by itself.
    pub contigsumsize: u64,
    /// Fragments of each group that are kept for metadata.
    pub metaspace: u64,
    /// Blocks that the root directory and `.snap` take together: one each.
    pub directories: u64,
}

impl Geometry {
    /// Length of the file system in bytes.
    pub fn bytes(&self) -> u64 {
        self.size * self.fsize
    }

    /// Number of inodes in a block.
    pub fn inopb(&self) -> u64 {
        self.bsize / DINODE
    }

    /// Number of addresses in a block of addresses.
    pub fn nindir(&self) -> u64 {
        self.bsize / ADDRESS
    }

    /// Address of fragment `at` in units of 512 bytes.
    pub fn fsbtodb(&self, at: u64) -> u64 {
        at * (self.fsize / DEV_BSIZE)
    }

    /// The first fragment of group `cg`.
    pub fn base(&self, cg: u64) -> u64 {
        cg * self.fpg
    }

    /// Number of fragments in group `cg`.
    pub fn ndblk(&self, cg: u64) -> u64 {
        self.fpg.min(self.size.saturating_sub(self.base(cg)))
    }

    /// Number of fragments that the summaries take.
    pub fn csfrags(&self) -> u64 {
        self.cssize / self.fsize
    }

    /// The first fragment for data in group `cg`, counted in the group: the first group has the
    /// summaries before it.
    pub fn data(&self, cg: u64) -> u64 {
        self.dblkno + if cg == 0 { self.csfrags() } else { 0 }
    }

    /// Number of inodes that are written in each group.
    pub fn initediblk(&self) -> u64 {
        self.ipg.min(2 * self.inopb())
    }

    /// Bytes of the inodes that are written in each group.
    pub fn inode_bytes(&self) -> u64 {
        self.initediblk() * DINODE
    }

    /// Last byte of the longest file: 12 blocks, and those that one, two and three levels of
    /// indirect blocks reach. At most 2^55.
    pub fn maxfilesize(&self) -> u64 {
        let n = self.nindir();
        12 * self.bsize - 1 + self.bsize * (n + n * n + n * n * n)
    }
}
