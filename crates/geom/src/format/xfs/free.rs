//! Free space of XFS.
//!
//! # On disk
//! Each allocation group begins with four sectors of heads; the second, the AGF, has the root of
//! the B+tree of free extents by block (`bnobt`). A leaf holds extents: first block, blocks. Leaves
//! are linked from left to right. Blocks of the trees themselves, and those that the free list
//! keeps for them, are in no extent.
//!
//! # Limits
//! The log has to be clean: extents of a transaction in it may be used. Checksums of version 5 are
//! held to, and the number of free blocks of each group.
//!
//! # Sources
//! Linux `fs/xfs/libxfs/xfs_format.h` (`xfs_agf`, `xfs_btree_block`, `xfs_alloc_rec`), "XFS
//! Algorithms & Data Structures" (Red Hat), "AG Free Space Management".

use super::log;
use crate::base::ondisk::on_disk;
use crate::base::patch::Read;
use crate::format::free_space::{Found, Unsure, damaged};
use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

on_disk! {
    /// `struct xfs_dsb`, as far as free space depends on it.
    struct Super of 232 bytes {
          0 => sb_magicnum: [u8; 4],
          4 => sb_blocksize: U32,
          8 => sb_dblocks: U64,
         16 => skip0: [u8; 32],
         48 => sb_logstart: U64,
         56 => skip1: [u8; 28],
         84 => sb_agblocks: U32,
         88 => sb_agcount: U32,
         92 => skip2: [u8; 4],
         96 => sb_logblocks: U32,
        100 => sb_versionnum: U16,
        102 => sb_sectsize: U16,
        104 => skip3: [u8; 20],
        124 => sb_agblklog: u8,
        125 => skip4: u8,
        126 => sb_inprogress: u8,
        127 => skip5: [u8; 89],
        216 => sb_features_incompat: U32,
        220 => skip6: [u8; 4],
        224 => sb_crc: [u8; 4],
        228 => skip7: [u8; 4],
    }
}

on_disk! {
    /// `struct xfs_agf`, as far as it is read.
    struct FreeHead of 224 bytes {
          0 => agf_magicnum: [u8; 4],
          4 => agf_versionnum: U32,
          8 => agf_seqno: U32,
         12 => agf_length: U32,
         16 => agf_bno_root: U32,
         20 => skip0: [u8; 8],
         28 => agf_bno_level: U32,
         32 => skip1: [u8; 20],
         52 => agf_freeblks: U32,
         56 => skip2: [u8; 160],
        216 => agf_crc: [u8; 4],
        220 => skip3: [u8; 4],
    }
}

on_disk! {
    /// `struct xfs_btree_block` with short pointers, without what version 5 adds.
    struct Block of 16 bytes {
         0 => bb_magic: [u8; 4],
         4 => bb_level: U16,
         6 => bb_numrecs: U16,
         8 => bb_leftsib: U32,
        12 => bb_rightsib: U32,
    }
    /// `struct xfs_alloc_rec`, a free extent.
    struct Extent of 8 bytes {
         0 => ar_startblock: U32,
         4 => ar_blockcount: U32,
    }
}

/// Bytes of the head of a tree's block in version 5, and the place of its checksum.
const LONG: usize = 56;
const BLOCK_CRC: usize = 52;
/// The mark of no sibling.
const NULL: u32 = u32::MAX;
/// `XFS_BTREE_MAXLEVELS` of the kernel.
const LEVELS: u32 = 9;
/// Features with which free extents mean what they mean without: all but those that need a repair
/// or put zones on the same device.
const INCOMPAT_KNOWN: u32 = 0x1ef;
const INCOMPAT_REPAIR: u32 = 0x10;

const CRC32C: crc::Crc<u32, crc::Table<16>> =
    crc::Crc::<u32, crc::Table<16>>::new(&crc::CRC_32_ISCSI);

/// True if the four bytes at `at` are the checksum of all others of `bytes`.
fn is_summed(bytes: &[u8], at: usize) -> bool {
    let mut digest = CRC32C.digest();
    [&bytes[..at], &[0; 4], &bytes[at + 4..]].iter().for_each(|part| digest.update(part));
    bytes[at..at + 4] == digest.finalize().to_le_bytes()
}

/// Numbers of a file system, checked.
struct Volume {
    block: u64,
    sector: u64,
    blocks: u64,
    groups: u64,
    per_group: u64,
    is_summed: bool,
}

/// Finds the free extents of an XFS on a provider of `length` bytes.
pub(super) fn free(length: u64, read: &mut Read<'_>, found: &mut Found<'_>) -> Result<(), Unsure> {
    let mut bytes = vec![0; 512];
    read(0, &mut bytes).map_err(|errno| Unsure::Failed(0, errno))?;
    let sector = u64::from(u16::from_be_bytes([bytes[102], bytes[103]]));
    if !sector.is_power_of_two() || !(512..=32768).contains(&sector) {
        return damaged("the size of its sectors");
    }
    bytes.resize(to_index(sector), 0);
    read(0, &mut bytes).map_err(|errno| Unsure::Failed(0, errno))?;
    let Some(sb) = front::<Super>(&bytes) else { return damaged("superblock") };
    let version = sb.sb_versionnum.get() & 0xf;
    if sb.sb_magicnum != *b"XFSB" || version == 5 && !is_summed(&bytes, 224) {
        return damaged("the checksum of its superblock");
    }
    let incompat = if version == 5 { sb.sb_features_incompat.get() } else { 0 };
    if incompat & INCOMPAT_REPAIR != 0 || sb.sb_inprogress != 0 {
        return damaged("its superblock says that it has to be repaired");
    }
    if incompat & !INCOMPAT_KNOWN != 0 || !(4..=5).contains(&version) {
        return Err(Unsure::Unknown(format!("version {version}, features {incompat:#x}")));
    }
    let volume = Volume {
        block: u64::from(sb.sb_blocksize.get()),
        sector,
        blocks: sb.sb_dblocks.get(),
        groups: u64::from(sb.sb_agcount.get()),
        per_group: u64::from(sb.sb_agblocks.get()),
        is_summed: version == 5,
    };
    let Volume { block, blocks, groups, per_group, .. } = volume;
    // A group has fewer than 2^32 blocks, and there are fewer than 2^32 groups.
    let is_sound = block.is_power_of_two()
        && (512..=65536).contains(&block)
        && groups > 0
        && per_group > 4
        && blocks > (groups - 1) * per_group
        && blocks <= groups * per_group
        && blocks.checked_mul(block).is_some_and(|bytes| bytes <= length);
    if !is_sound {
        return damaged("the numbers of its superblock");
    }
    let (start, log_blocks) = (sb.sb_logstart.get(), u64::from(sb.sb_logblocks.get()));
    let shift = u32::from(sb.sb_agblklog).min(32);
    let (group, inner) = (start >> shift, start & ((1 << shift) - 1));
    if start == 0 {
        return Err(Unsure::Unknown("its log is on another device".into()));
    }
    let at = group.checked_mul(per_group).and_then(|first| first.checked_add(inner));
    let at = at.filter(|at| at.checked_add(log_blocks).is_some_and(|end| end <= blocks));
    let Some(at) = at.filter(|_| log_blocks > 0) else { return damaged("the place of its log") };
    log::require_clean(at * block, log_blocks * block, read)?;
    (0..groups).try_for_each(|number| volume.group(number, read, found))
}

impl Volume {
    /// Finds the free extents of one allocation group.
    fn group(&self, number: u64, read: &mut Read<'_>, found: &mut Found<'_>) -> Result<(), Unsure> {
        let wrong = |what: &str| damaged(format!("{what} of allocation group {number}"));
        let first = number * self.per_group;
        let length = (self.blocks - first).min(self.per_group);
        let at = first * self.block + self.sector;
        let mut bytes = vec![0; to_index(self.sector)];
        read(at, &mut bytes).map_err(|errno| Unsure::Failed(at, errno))?;
        let Some(head) = front::<FreeHead>(&bytes) else { return wrong("the head") };
        if head.agf_magicnum != *b"XAGF"
            || u64::from(head.agf_seqno.get()) != number
            || u64::from(head.agf_length.get()) != length
            || self.is_summed && !is_summed(&bytes, 216)
        {
            return wrong("the head of the free space");
        }
        let (mut level, mut next) = (head.agf_bno_level.get(), head.agf_bno_root.get());
        if !(1..=LEVELS).contains(&level) {
            return wrong("the height of the tree");
        }
        let mut bytes = vec![0; to_index(self.block)];
        let (mut free, mut end, mut seen) = (0, 0, 0);
        while next != NULL {
            seen += 1;
            let at = (first + u64::from(next)) * self.block;
            // Each block of a tree is one of the group, and is met once.
            if u64::from(next) >= length || seen > length {
                return wrong("a link of the tree");
            }
            read(at, &mut bytes).map_err(|errno| Unsure::Failed(at, errno))?;
            let Some(block) = front::<Block>(&bytes) else { return wrong("the tree") };
            let (magic, lead) = if self.is_summed { (*b"AB3B", LONG) } else { (*b"ABTB", 16) };
            let count = usize::from(block.bb_numrecs.get());
            if block.bb_magic != magic
                || u32::from(block.bb_level.get()) != level - 1
                || self.is_summed && !is_summed(&bytes, BLOCK_CRC)
            {
                return wrong("the tree");
            }
            let body = &bytes[lead..];
            if level > 1 {
                // Keys, of which there is room for as many as for pointers, then pointers.
                let most = body.len() / 12;
                let pointer = body.get(most * 8..most * 8 + 4).and_then(|b| b.first_chunk());
                let Some(pointer) = pointer.filter(|_| (1..=most).contains(&count)) else {
                    return wrong("the tree");
                };
                (next, level) = (u32::from_be_bytes(*pointer), level - 1);
                continue;
            }
            // A leaf of nothing is the only one: so no chain of leaves is endless.
            let is_empty = count == 0 && (seen > 1 || block.bb_rightsib.get() != NULL);
            if is_empty || count > body.len() / 8 {
                return wrong("the tree");
            }
            for extent in body.chunks_exact(8).take(count).filter_map(front::<Extent>) {
                let start = u64::from(extent.ar_startblock.get());
                let blocks = u64::from(extent.ar_blockcount.get());
                if start < end || blocks == 0 || start + blocks > length {
                    return wrong("a free extent");
                }
                (end, free) = (start + blocks, free + blocks);
                found((first + start) * self.block..(first + end) * self.block);
            }
            next = block.bb_rightsib.get();
        }
        if free != u64::from(head.agf_freeblks.get()) {
            return wrong("the number of free blocks");
        }
        Ok(())
    }
}

/// The structure at the beginning of `bytes`; `None` if they are too few.
fn front<T: FromBytes + KnownLayout + Immutable + Unaligned>(bytes: &[u8]) -> Option<T> {
    T::read_from_prefix(bytes).ok().map(|(found, _)| found)
}

/// An index into bytes that are in memory, so it fits.
fn to_index(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
