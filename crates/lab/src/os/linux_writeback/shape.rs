//! The layout of an ext2 made by mke2fs of 2009: groups of 32768 blocks of 4 KiB, inodes of 256
//! bytes, one for every 16 KiB, `sparse_super` and `resize_inode`.

/// The size of a block in bytes.
pub(crate) const BLOCK: u64 = 4096;
/// Blocks in a group: the bits of a block.
pub(crate) const PER_GROUP: u64 = 8 * BLOCK;
/// The size of an inode, and of the data planned for each, in bytes.
const INODE: u64 = 256;
const BYTES_PER_INODE: u64 = 16384;
/// The size of a group's descriptor in bytes.
const DESCRIPTOR: u64 = 32;
/// The most blocks that the descriptor table may grow by (`resize_inode`).
const RESERVED: u64 = 1024;

/// The layout of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ext2Layout {
    /// The size of the file system in blocks.
    pub(crate) blocks: u64,
    /// Blocks of the descriptor table, and blocks reserved for its growth.
    descriptors: u64,
    reserved: u64,
}

impl Ext2Layout {
    /// Blocks of a group's inode table, and inodes in a group.
    pub(crate) const TABLE: u64 = Ext2Layout::INODES * INODE / BLOCK;
    pub(crate) const INODES: u64 = PER_GROUP * BLOCK / BYTES_PER_INODE;

    /// The layout of `length` bytes; `None` if there is no room for a group's tables. A last group
    /// shorter than its tables is left out.
    pub(crate) fn new(length: u64) -> Option<Ext2Layout> {
        let blocks = length / BLOCK;
        let descriptors = (blocks.div_ceil(PER_GROUP) * DESCRIPTOR).div_ceil(BLOCK);
        let reserved = RESERVED.min(descriptors * 1023);
        let mut own = Ext2Layout { blocks, descriptors, reserved };
        let last = own.groups().checked_sub(1)?;
        if own.blocks < own.data(last) + 64 {
            own.blocks = last * PER_GROUP;
        }
        (own.blocks > 0).then_some(own)
    }

    /// The number of block groups.
    pub(crate) fn groups(&self) -> u64 {
        self.blocks.div_ceil(PER_GROUP)
    }

    /// Blocks of a group's superblock and descriptors, with the reserved ones; 0 if the group has
    /// no backup.
    pub(crate) fn backup(&self, group: u64) -> u64 {
        if has_backup(group) { 1 + self.descriptors + self.reserved } else { 0 }
    }

    /// Blocks of the superblock and the descriptors in use.
    pub(crate) fn head(&self) -> u64 {
        1 + self.descriptors
    }

    /// The block of a group's block bitmap; the inode bitmap follows it.
    pub(crate) fn maps(&self, group: u64) -> u64 {
        group * PER_GROUP + self.backup(group)
    }

    /// The first block of a group's inode table.
    pub(crate) fn table(&self, group: u64) -> u64 {
        self.maps(group) + 2
    }

    /// The first data block of a group.
    pub(crate) fn data(&self, group: u64) -> u64 {
        self.table(group) + Ext2Layout::TABLE
    }

    /// The block after a group's last.
    pub(crate) fn end(&self, group: u64) -> u64 {
        ((group + 1) * PER_GROUP).min(self.blocks)
    }

    /// The block that contains an inode. Inodes count from 0 here.
    pub(crate) fn inode_block(&self, inode: u64) -> u64 {
        self.table(inode / Ext2Layout::INODES) + inode % Ext2Layout::INODES * INODE / BLOCK
    }
}

/// True for groups with a superblock backup: 0, 1, and powers of 3, 5 and 7 (`sparse_super`).
fn has_backup(group: u64) -> bool {
    let power = |base: u64| {
        let mut at = base;
        while at < group {
            at *= base;
        }
        at == group
    };
    group <= 1 || power(3) || power(5) || power(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_2_mb_in_groups_of_128() {
        assert_eq!(
            (Ext2Layout::TABLE * BLOCK, PER_GROUP * BLOCK, Ext2Layout::INODES),
            (2 << 20, 128 << 20, 8192)
        );
        let shape = Ext2Layout::new(1_500_300_000_000).unwrap();
        assert_eq!(shape.groups(), 11179);
        let backups: Vec<u64> = (0..60).filter(|&group| has_backup(group)).collect();
        assert_eq!(backups, [0, 1, 3, 5, 7, 9, 25, 27, 49]);
        for group in 0..shape.groups() {
            assert!(
                shape.maps(group) >= group * PER_GROUP && shape.data(group) < shape.end(group),
                "{group}"
            );
        }
        assert_eq!(shape.table(2), 2 * PER_GROUP + 2);
        assert_eq!(shape.inode_block(Ext2Layout::INODES + 17), shape.table(1) + 1);
        assert_eq!(Ext2Layout::new(100_000), None);
    }
}
