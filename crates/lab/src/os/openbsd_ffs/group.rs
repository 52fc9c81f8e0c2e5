//! A cylinder group: its free fragments and inodes.
//!
//! Allocation is that of `ffs_alloc.c`. A whole block is the first free one from the preferred
//! place on, then from the beginning. A few fragments come from a block that is already broken,
//! from the shortest run that fits, and only then from a whole block.

use super::shape::FfsLayout;
use std::collections::BTreeSet;

/// The free fragments and inodes of a group. Fragments are numbered from the group's beginning.
pub(super) struct Group {
    frag: u32,
    /// Free fragments of each block, one bit each.
    free: Vec<u8>,
    /// Broken blocks by the length of a free run in them: `cg_frsum`.
    runs: [BTreeSet<u32>; 8],
    pub(super) free_blocks: u32,
    /// The lower bound of the first block that is free as a whole.
    lowest: u32,
    /// Allocated inodes, one bit each.
    taken: Vec<u64>,
    inodes: u32,
    pub(super) free_inodes: u32,
    rotor: u32,
    pub(super) directories: u32,
    /// Directories made here, less files made since (`fs_contigdirs`).
    pub(super) new_directories: u32,
}

impl Group {
    pub(super) fn new(shape: &FfsLayout, group: u32) -> Group {
        let (all, blocks) = (whole(shape.frag), shape.fragments(group) / shape.frag);
        let first = shape.data.div_ceil(shape.frag);
        let free = (0..blocks).map(|block| if block < first { 0 } else { all }).collect();
        let free_blocks = blocks.saturating_sub(first);
        Group {
            frag: shape.frag,
            free,
            runs: Default::default(),
            free_blocks,
            lowest: first,
            taken: vec![0; shape.inodes.div_ceil(64) as usize],
            inodes: shape.inodes,
            free_inodes: shape.inodes,
            rotor: 0,
            directories: 0,
            new_directories: 0,
        }
    }

    /// Allocates `fragments` (1 to a block), preferably from `preferred` on. Returns the first.
    pub(super) fn take(&mut self, fragments: u32, preferred: Option<u32>) -> Option<u32> {
        if fragments < self.frag {
            let found = (fragments..self.frag)
                .find_map(|length| Some((length, *self.runs[length as usize].first()?)));
            if let Some((length, block)) = found {
                let from = self.run(block, length)?;
                self.set(block, from, fragments, false);
                return Some(block * self.frag + from);
            }
        }
        let block = self.whole_block(preferred.map(|fragment| fragment / self.frag))?;
        self.set(block, 0, fragments, false);
        Some(block * self.frag)
    }

    /// Extends the `had` fragments at `at` to `fragments`, if those after them in their block are
    /// free (`ffs_fragextend`). True if done.
    pub(super) fn extend(&mut self, at: u32, had: u32, fragments: u32) -> bool {
        let (block, from) = (at / self.frag, at % self.frag + had);
        let more = fragments - had;
        if from + more > self.frag
            || self.free[block as usize] & mask(from, more) != mask(from, more)
        {
            return false;
        }
        self.set(block, from, more, false);
        true
    }

    /// Frees fragments, which may span blocks.
    pub(super) fn give(&mut self, at: u32, fragments: u32) {
        let (mut at, end) = (at, at + fragments);
        while at < end {
            let (block, from) = (at / self.frag, at % self.frag);
            let count = (self.frag - from).min(end - at);
            self.set(block, from, count, true);
            at += count;
        }
    }

    /// Allocates an inode: the next free one from the last allocated on.
    pub(super) fn take_inode(&mut self) -> Option<u32> {
        let words = u32::try_from(self.taken.len()).unwrap_or(u32::MAX);
        let first = self.rotor / 64;
        for step in 0..=words {
            let word = (first + step) % words;
            let from = if step == 0 { !0 << (self.rotor % 64) } else { !0 };
            let free = !self.taken[word as usize] & from;
            let inode = word * 64 + free.trailing_zeros();
            if free != 0 && inode < self.inodes {
                self.taken[word as usize] |= 1 << (inode % 64);
                self.free_inodes -= 1;
                self.rotor = inode;
                return Some(inode);
            }
        }
        None
    }

    /// Frees an inode of the group.
    pub(super) fn give_inode(&mut self, inode: u32) {
        self.taken[(inode / 64) as usize] &= !(1 << (inode % 64));
        self.free_inodes += 1;
        self.rotor = self.rotor.min(inode);
    }

    /// The first block that is free as a whole, from `preferred` on, then from the beginning.
    fn whole_block(&mut self, preferred: Option<u32>) -> Option<u32> {
        let all = whole(self.frag);
        let from = preferred.map_or(self.lowest, |block| block.max(self.lowest)) as usize;
        let tail = self
            .free
            .get(from..)
            .unwrap_or(&[])
            .iter()
            .position(|&free| free == all)
            .map(|at| from + at);
        let found = match tail {
            Some(found) => found,
            None => {
                let begin = self.lowest as usize;
                begin + self.free.get(begin..)?.iter().position(|&free| free == all)?
            }
        };
        let found = u32::try_from(found).ok()?;
        if from <= self.lowest as usize {
            self.lowest = found;
        }
        Some(found)
    }

    /// The first fragment of the first run of exactly `length` in a block.
    fn run(&self, block: u32, length: u32) -> Option<u32> {
        runs(self.free[block as usize], self.frag)
            .find(|&(_, own)| own == length)
            .map(|(from, _)| from)
    }

    /// Marks fragments of a block free or allocated, and updates the block's runs.
    fn set(&mut self, block: u32, from: u32, fragments: u32, free: bool) {
        let (all, before) = (whole(self.frag), self.free[block as usize]);
        let bits = mask(from, fragments);
        debug_assert_eq!(
            before & bits,
            if free { 0 } else { bits },
            "fragments taken twice or given back twice"
        );
        let after = if free { before | bits } else { before & !bits };
        self.free[block as usize] = after;
        self.free_blocks = self.free_blocks + u32::from(after == all) - u32::from(before == all);
        for (_, length) in runs(before, self.frag).filter(|_| before != all) {
            self.runs[length as usize].remove(&block);
        }
        for (_, length) in runs(after, self.frag).filter(|_| after != all) {
            self.runs[length as usize].insert(block);
        }
        if after == all {
            self.lowest = self.lowest.min(block);
        }
    }
}

/// The bits of a block of `frag` free fragments.
fn whole(frag: u32) -> u8 {
    mask(0, frag)
}

/// A mask of `fragments` bits from bit `from` on.
fn mask(from: u32, fragments: u32) -> u8 {
    let bits = ((1u32 << fragments) - 1) << from;
    u8::try_from(bits & 0xff).unwrap_or(0)
}

/// The runs of free fragments in a block: (first, length).
fn runs(free: u8, frag: u32) -> impl Iterator<Item = (u32, u32)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < frag && free & mask(at, 1) == 0 {
            at += 1;
        }
        let from = at;
        while at < frag && free & mask(at, 1) != 0 {
            at += 1;
        }
        (at > from).then_some((from, at - from))
    })
}
