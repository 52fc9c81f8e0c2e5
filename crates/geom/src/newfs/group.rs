//! `struct cg`: the free inodes, fragments and blocks of one cylinder group.
//!
//! After 168 bytes come the map of used inodes and the map of free fragments. Where clusters are
//! counted, the counts of free runs by length follow, and the map of free blocks. Bits count from
//! the low end of each byte.

use super::directory::ROOTINO;
use super::geometry::{Geometry, up};
use super::superblock::{CK_CYLGRP, check_hash, summary, word};
use crate::base::ondisk::on_disk;
use crate::base::topology::round_down;
use crate::format::ufs::fs::Csum;
use std::ops::Range;
use zerocopy::{FromZeros, I64, IntoBytes, LE, U16, U32};

const CG_MAGIC: u32 = 0x0009_0255;

on_disk! {
    /// On-disk `struct cg` before its maps.
    #[derive(IntoBytes)]
    struct Cg of 168 bytes {
          0 => cg_firstfield: U32<LE>,
          4 => cg_magic: U32<LE>,
          8 => cg_old_time: U32<LE>,
         12 => cg_cgx: U32<LE>,
         16 => cg_old_ncyl: U16<LE>,
         18 => cg_old_niblk: U16<LE>,
         20 => cg_ndblk: U32<LE>,
         24 => cg_cs: Csum<LE>,
         40 => cg_rotor: U32<LE>,
         44 => cg_frotor: U32<LE>,
         48 => cg_irotor: U32<LE>,
         52 => cg_frsum: [U32<LE>; 8],
         84 => cg_old_btotoff: U32<LE>,
         88 => cg_old_boff: U32<LE>,
         92 => cg_iusedoff: U32<LE>,
         96 => cg_freeoff: U32<LE>,
        100 => cg_nextfreeoff: U32<LE>,
        104 => cg_clustersumoff: U32<LE>,
        108 => cg_clusteroff: U32<LE>,
        112 => cg_nclusterblks: U32<LE>,
        116 => cg_niblk: U32<LE>,
        120 => cg_initediblk: U32<LE>,
        124 => cg_unrefs: U32<LE>,
        128 => cg_spare: U32<LE>,
        132 => cg_ckhash: U32<LE>,
        136 => cg_time: I64<LE>,
        144 => cg_sparecon64: [I64<LE>; 3],
    }
}

/// First byte of the maps: `cg_space`.
const MAPS: u64 = 168;

/// Free ranges of a group, in fragments from its first.
struct Free {
    /// Fragments before the superblock's place; none in the first group, where they are for boot
    /// code.
    before: Range<u64>,
    /// Remainder of the last block of the summaries.
    rest: Range<u64>,
    /// Blocks of the directories, each with its first fragment used.
    directories: Range<u64>,
    /// Free blocks, each one whole.
    blocks: Range<u64>,
    /// Remainder at the end that is too short for a block.
    tail: Range<u64>,
}

impl Free {
    fn find(g: &Geometry, cg: u64) -> Free {
        let (data, ndblk) = (g.data(cg), g.ndblk(cg));
        let (first, end) = (up(data, g.frag), round_down(ndblk, g.frag));
        let whole = first + if cg == 0 { g.directories * g.frag } else { 0 };
        Free {
            before: 0..if cg == 0 { 0 } else { g.sblkno },
            rest: data..first,
            directories: first..whole,
            blocks: whole..end,
            tail: end..ndblk,
        }
    }

    fn summary(&self, g: &Geometry, cg: u64) -> Csum<LE> {
        let ndir = len(&self.directories) / g.frag;
        let nbfree = (len(&self.before) + len(&self.blocks)) / g.frag;
        // Besides the directories, whose inodes are the next, the first group lacks the two inodes
        // before the root's.
        let used = if cg == 0 { ROOTINO + ndir } else { 0 };
        summary(ndir, nbfree, g.ipg - used, len(&self.rest) + len(&self.tail) + ndir * (g.frag - 1))
    }
}

fn len(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// The summary of group `cg`, as the superblock's area of summaries has it.
pub(super) fn summary_of(g: &Geometry, cg: u64) -> Csum<LE> {
    Free::find(g, cg).summary(g, cg)
}

/// Offsets of the maps in a `struct cg`, in bytes.
struct Offsets {
    free: u64,
    clustersum: u64,
    cluster: u64,
    next: u64,
}

impl Offsets {
    fn lay_out(g: &Geometry) -> Offsets {
        let free = MAPS + g.ipg.div_ceil(8);
        let next = free + g.fpg.div_ceil(8);
        if g.contigsumsize == 0 {
            return Offsets { free, clustersum: 0, cluster: 0, next };
        }
        // Runs of length 0 are not counted, so their place may overlap the map before.
        let clustersum = up(next, 4) - 4;
        let cluster = clustersum + 4 * (g.contigsumsize + 1);
        Offsets { free, clustersum, cluster, next: cluster + (g.fpg / g.frag).div_ceil(8) }
    }
}

/// Writes the `struct cg` of group `cg` into `bytes`, which are `cgsize` long.
pub(super) fn put(g: &Geometry, cg: u64, time: i64, hashes: u32, bytes: &mut [u8]) {
    let (free, at) = (Free::find(g, cg), Offsets::lay_out(g));
    let mut head = Cg::new_zeroed();
    head.cg_magic = U32::new(CG_MAGIC);
    head.cg_cgx = word(cg);
    head.cg_ndblk = word(g.ndblk(cg));
    head.cg_cs = free.summary(g, cg);
    for loose in [len(&free.rest), len(&free.tail)]
        .into_iter()
        .chain(free.directories.clone().step_by(step(g.frag)).map(|_| g.frag - 1))
    {
        if let Some(count) =
            usize::try_from(loose).ok().filter(|&n| n > 0).and_then(|n| head.cg_frsum.get_mut(n))
        {
            *count += 1;
        }
    }
    head.cg_iusedoff = word(MAPS);
    head.cg_freeoff = word(at.free);
    head.cg_nextfreeoff = word(at.next);
    head.cg_clustersumoff = word(at.clustersum);
    head.cg_clusteroff = word(at.cluster);
    head.cg_nclusterblks = word(if g.contigsumsize > 0 { g.ndblk(cg) / g.frag } else { 0 });
    head.cg_niblk = word(g.ipg);
    head.cg_initediblk = word(g.initediblk());
    head.cg_time = I64::new(time);
    bytes.fill(0);
    maps(g, cg, &free, &at, bytes);
    bytes[..size_of::<Cg>()].copy_from_slice(head.as_bytes());
    if hashes & CK_CYLGRP != 0 {
        head.cg_ckhash = U32::new(check_hash(bytes));
        bytes[..size_of::<Cg>()].copy_from_slice(head.as_bytes());
    }
}

fn maps(g: &Geometry, cg: u64, free: &Free, at: &Offsets, bytes: &mut [u8]) {
    let used = if cg == 0 { ROOTINO + g.directories } else { 0 };
    set(bytes, MAPS, 0..used);
    for range in [&free.before, &free.rest, &free.blocks, &free.tail] {
        set(bytes, at.free, range.clone());
    }
    for block in free.directories.clone().step_by(step(g.frag)) {
        set(bytes, at.free, block + 1..block + g.frag);
    }
    if g.contigsumsize == 0 {
        return;
    }
    let blocks = |range: &Range<u64>| range.start / g.frag..range.end / g.frag;
    for range in [&free.before, &free.blocks] {
        set(bytes, at.cluster, blocks(range));
    }
    // newfs counts the runs before it makes the directories; the kernel tolerates it.
    for run in [len(&free.before), len(&free.directories) + len(&free.blocks)] {
        let run = (run / g.frag).min(g.contigsumsize);
        if let Some(count) =
            place(at.clustersum + 4 * run).and_then(|at| bytes.get_mut(at)).filter(|_| run > 0)
        {
            // At most two runs.
            *count += 1;
        }
    }
}

/// Sets the bits `range` of the map at byte `map`.
fn set(bytes: &mut [u8], map: u64, range: Range<u64>) {
    let (Some(map), Some(start), Some(end)) = (place(map), place(range.start), place(range.end))
    else {
        return;
    };
    // Whole bytes at once: a group has a map of some ten thousand bits.
    let (first, last) = (start.next_multiple_of(8).min(end), (end - end % 8).max(start));
    if first < last {
        bytes[map + first / 8..map + last / 8].fill(0xff);
    }
    for bit in (start..first).chain(last.max(first)..end) {
        bytes[map + bit / 8] |= 1 << (bit % 8);
    }
}

/// An offset as an index in a buffer of a block.
fn place(at: u64) -> Option<usize> {
    usize::try_from(at).ok()
}

/// Number of fragments in a block, to step by.
fn step(frag: u64) -> usize {
    place(frag).unwrap_or(1)
}
