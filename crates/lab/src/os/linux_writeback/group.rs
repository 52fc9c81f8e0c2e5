//! A block group of an ext2: bitmaps of its blocks and inodes.

use super::shape::{Ext2Layout, PER_GROUP};

/// The allocated blocks and inodes of a group, numbered from its beginning.
pub(super) struct Group {
    blocks: Vec<u64>,
    length: u32,
    /// No block before this one is free.
    lowest: u32,
    pub(super) free: u32,
    inodes: Vec<u64>,
    first_inode: u32,
}

impl Group {
    pub(super) fn new(shape: &Ext2Layout, group: u64) -> Group {
        let narrow = |x: u64| u32::try_from(x).unwrap_or(u32::MAX);
        let begin = group * PER_GROUP;
        let (data, length) = (narrow(shape.data(group) - begin), narrow(shape.end(group) - begin));
        let mut own = Group {
            blocks: vec![0; length.div_ceil(64) as usize],
            length,
            lowest: data,
            free: length - data,
            inodes: vec![0; narrow(Ext2Layout::INODES).div_ceil(64) as usize],
            first_inode: 0,
        };
        for block in 0..data {
            own.blocks[(block / 64) as usize] |= 1 << (block % 64);
        }
        own
    }

    /// Allocates the first free block from `preferred` on, else from the beginning, and the free
    /// blocks after it, to at most `most`. Returns the first block and their number.
    pub(super) fn take(&mut self, preferred: u32, most: u32) -> Option<(u32, u32)> {
        if self.free == 0 {
            return None;
        }
        let from = preferred.max(self.lowest);
        let found = clear(&self.blocks, from, self.length)
            .or_else(|| clear(&self.blocks, self.lowest, self.length))?;
        let stop = self.length.min(found.saturating_add(most.max(1)));
        let mut end = found;
        while end < stop && self.blocks[(end / 64) as usize] >> (end % 64) & 1 == 0 {
            self.blocks[(end / 64) as usize] |= 1 << (end % 64);
            end += 1;
        }
        if from == self.lowest {
            self.lowest = end;
        }
        self.free -= end - found;
        Some((found, end - found))
    }

    /// Frees a block of the group.
    pub(super) fn give(&mut self, block: u32) {
        debug_assert!(
            self.blocks[(block / 64) as usize] >> (block % 64) & 1 == 1,
            "block {block} is given back twice"
        );
        self.blocks[(block / 64) as usize] &= !(1 << (block % 64));
        self.free += 1;
        self.lowest = self.lowest.min(block);
    }

    /// Allocates the first free inode.
    pub(super) fn take_inode(&mut self) -> Option<u32> {
        let found = clear(&self.inodes, self.first_inode, u32::try_from(Ext2Layout::INODES).ok()?)?;
        self.inodes[(found / 64) as usize] |= 1 << (found % 64);
        self.first_inode = found + 1;
        Some(found)
    }

    /// Frees an inode of the group.
    pub(super) fn give_inode(&mut self, inode: u32) {
        self.inodes[(inode / 64) as usize] &= !(1 << (inode % 64));
        self.first_inode = self.first_inode.min(inode);
    }
}

/// The first clear bit from `from` on, below `length`.
fn clear(bits: &[u64], from: u32, length: u32) -> Option<u32> {
    let mut word = from / 64;
    let mut masked = bits.get(word as usize)? | ((1u64 << (from % 64)) - 1);
    loop {
        if masked != u64::MAX {
            let found = word * 64 + masked.trailing_ones();
            return (found < length).then_some(found);
        }
        word += 1;
        masked = *bits.get(word as usize)?;
    }
}
