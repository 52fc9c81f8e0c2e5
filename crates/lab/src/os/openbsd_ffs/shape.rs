//! The layout of an FFS1: the cylinder groups that OpenBSD's newfs(8) makes, in fragments.

use crate::error::Error;
use trueline_geom::base::topology::{is_whole, round_down, round_up};

/// The size of an inode on the medium in bytes (`struct ufs1_dinode`).
const INODE: u64 = 128;
/// The first superblock's offset (`SBLOCK_UFS1`), equal to its space (`SBSIZE`), in bytes.
const SUPERBLOCK: u64 = 8192;
/// The size of `struct cg` before its maps in bytes.
const GROUP_HEADER: u64 = 168;
/// The size of the counts of clusters by length in bytes (`FS_MAXCONTIG` + 1 words).
const CLUSTER_SUMMARY: u64 = 17 * 4;

/// The layout of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FfsLayout {
    pub(super) fsize: u64,
    pub(super) bsize: u64,
    /// Fragments in a block: 1 to 8.
    pub(super) frag: u32,
    pub(super) groups: u32,
    /// Fragments in a group; the last may have fewer.
    pub(super) per_group: u32,
    /// Fragments in all groups.
    pub(super) size: u64,
    /// Inodes in a group.
    pub(super) inodes: u32,
    /// The first fragments of a group's map, inodes and data, counted from the group's beginning.
    pub(super) map: u32,
    pub(super) inode_table: u32,
    pub(super) data: u32,
}

impl FfsLayout {
    /// The layout on a provider of `length` bytes in sectors of `sector`.
    pub(super) fn new(
        length: u64,
        sector: u64,
        fsize: u64,
        bsize: u64,
    ) -> Result<FfsLayout, Error> {
        let refused =
            |what: String| Err(Error::new(format!("newfs -f {fsize} -b {bsize}: {what}")));
        let frag = match bsize.checked_div(fsize).and_then(|frag| u32::try_from(frag).ok()) {
            Some(frag @ (1 | 2 | 4 | 8)) if is_whole(bsize, fsize) => frag,
            _ => return refused("a block is 1, 2, 4 or 8 fragments".into()),
        };
        if !fsize.is_power_of_two() || fsize < sector.max(512) || !(4096..=65536).contains(&bsize) {
            return refused(format!(
                "fragments of at least {} bytes, blocks of 4096 to 65536, powers of two",
                sector.max(512)
            ));
        }
        let blocks = |bytes: u64| round_up(bytes, bsize).unwrap_or(0) / fsize;
        // Boot code and superblock, the superblock's backup, the map, the inodes (`fs_sblkno`,
        // `fs_cblkno`, `fs_iblkno`).
        let map = blocks(2 * SUPERBLOCK) + blocks(SUPERBLOCK);
        let inode_table = map + blocks(bsize);
        // An inode for every four fragments (`NFPI`), in whole blocks of them.
        let inodes = |fragments: u64| round_up(fragments / 4, bsize / INODE).unwrap_or(0);
        // A group is as large as its maps fit one block: bits of inodes, fragments and, for
        // clusters, blocks (`CGSIZE`).
        let maps = |fragments: u64| {
            GROUP_HEADER
                + CLUSTER_SUMMARY
                + inodes(fragments).div_ceil(8)
                + fragments.div_ceil(8)
                + (fragments / u64::from(frag)).div_ceil(8)
        };
        let (mut fits, mut not) = (u64::from(frag), 8 * bsize);
        while not - fits > u64::from(frag) {
            let middle = round_down(fits.midpoint(not), u64::from(frag));
            if maps(middle) <= bsize { fits = middle } else { not = middle }
        }
        let size = round_down(length / fsize, u64::from(frag));
        let per_group = fits.min(size);
        let data = inode_table + inodes(per_group) * INODE / fsize;
        if size < 2 * data + u64::from(frag) {
            return refused(format!("{length} bytes are too few for a file system"));
        }
        // A last group without room for its own tables and some data is left out.
        let mut groups = size.div_ceil(per_group);
        let last = size - (groups - 1) * per_group;
        let size = if groups > 1 && last < data + u64::from(frag) {
            groups -= 1;
            size - last
        } else {
            size
        };
        let narrow = |x: u64| {
            u32::try_from(x).map_err(|_| {
                Error::new(format!("newfs -f {fsize} -b {bsize}: {length} bytes are too many"))
            })
        };
        Ok(FfsLayout {
            fsize,
            bsize,
            frag,
            groups: narrow(groups)?,
            per_group: narrow(per_group)?,
            size,
            inodes: narrow(inodes(per_group))?,
            map: narrow(map)?,
            inode_table: narrow(inode_table)?,
            data: narrow(data)?,
        })
    }

    /// The first fragment of a group.
    pub(super) fn base(&self, group: u32) -> u64 {
        u64::from(group) * u64::from(self.per_group)
    }

    /// The number of fragments in a group.
    pub(super) fn fragments(&self, group: u32) -> u32 {
        u32::try_from(self.size - self.base(group)).unwrap_or(u32::MAX).min(self.per_group)
    }

    /// The byte at which a fragment begins.
    pub(super) fn byte(&self, fragment: u64) -> u64 {
        fragment * self.fsize
    }

    /// The byte at which the map of a group begins, which takes a block.
    pub(super) fn map_of(&self, group: u32) -> u64 {
        self.byte(self.base(group) + u64::from(self.map))
    }

    /// The byte at which an inode's block begins.
    pub(super) fn inode_block(&self, inode: u64) -> u64 {
        let group = u32::try_from(inode / u64::from(self.inodes)).unwrap_or(u32::MAX);
        let within = round_down(inode % u64::from(self.inodes) * INODE, self.bsize);
        self.byte(self.base(group) + u64::from(self.inode_table)) + within
    }

    /// The group of an inode.
    pub(super) fn group_of_inode(&self, inode: u64) -> u32 {
        u32::try_from(inode / u64::from(self.inodes)).unwrap_or(u32::MAX)
    }

    /// Pointers in an indirect block (`NINDIR`, 32-bit), and blocks of a file in one group
    /// (`fs_maxbpg`).
    pub(super) fn pointers(&self) -> u64 {
        self.bsize / 4
    }
}
