//! The log of XFS, as far as one can tell that nothing has to be replayed.
//!
//! # On disk
//! A ring of blocks of 512 bytes. The first word of a block is the number of the round in which it
//! was written; a record begins with a magic, behind which that number stands. So the newest record
//! ends where the number falls. An unmount ends with a record of one operation with the flag
//! `XLOG_UNMOUNT_TRANS`.
//!
//! # Sources
//! Linux `fs/xfs/xfs_log_recover.c` (`xlog_find_head`, `xlog_check_unmount_rec`),
//! `fs/xfs/libxfs/xfs_log_format.h`.

use crate::base::patch::Read;
use crate::format::free_space::{Unsure, damaged};

/// Bytes of a block of the log, and of each of several heads of one record.
const BLOCK: u64 = 512;
const HEADED: u32 = 32 << 10;
const MAGIC: u32 = 0xfeed_babe;
/// `XLOG_UNMOUNT_TRANS` in the flags of an operation.
const UNMOUNT: u8 = 0x20;
/// Largest log of the format in bytes.
const LARGEST: u64 = 1 << 31;
/// Bytes that are read at once.
const PIECE: u64 = 256 << 10;

/// The last record that begins before the head.
#[derive(Clone, Copy)]
struct Last {
    /// Block of its first head.
    at: u64,
    /// Blocks of its heads, and of its data.
    heads: u64,
    data: u64,
    operations: u32,
}

/// Refuses a log of `length` bytes at byte `start` whose last record is not that of an unmount.
pub(super) fn require_clean(start: u64, length: u64, read: &mut Read<'_>) -> Result<(), Unsure> {
    if length > LARGEST {
        return damaged("the length of its log");
    }
    let blocks = length / BLOCK;
    let mut piece = Vec::new();
    let (mut round, mut head, mut last) = (None, None, None);
    let mut at = 0;
    while at < blocks {
        let count = (blocks - at).min(PIECE / BLOCK);
        piece.resize(usize::try_from(count * BLOCK).unwrap_or_default(), 0);
        let byte = start + at * BLOCK;
        read(byte, &mut piece).map_err(|errno| Unsure::Failed(byte, errno))?;
        for (number, bytes) in (at..).zip(piece.chunks_exact(512)) {
            let is_record = word(bytes, 0) == MAGIC;
            let own = word(bytes, if is_record { 4 } else { 0 });
            let first = *round.get_or_insert(own);
            match head {
                None if own != first => head = Some(number),
                None if is_record => last = Some(record(number, bytes)),
                _ => {}
            }
            // Behind the head all is of the round before, or was never written.
            let is_older = own == 0 || own.checked_add(1) == Some(first);
            if head.is_some() && !is_older {
                return Err(Unsure::Unclean("its log has to be replayed"));
            }
        }
        at += count;
    }
    let end = head.unwrap_or(blocks);
    let is_last = |last: &Last| last.at + last.heads + last.data == end && last.operations == 1;
    let Some(last) = last.filter(is_last) else {
        return Err(Unsure::Unclean("its log has to be replayed"));
    };
    let mut operation = [0; 512];
    let byte = start + (last.at + last.heads) * BLOCK;
    read(byte, &mut operation).map_err(|errno| Unsure::Failed(byte, errno))?;
    match operation[9] & UNMOUNT {
        0 => Err(Unsure::Unclean("its log has to be replayed")),
        _ => Ok(()),
    }
}

fn record(at: u64, bytes: &[u8]) -> Last {
    let (version, length, size) = (word(bytes, 8), word(bytes, 12), word(bytes, 320));
    let heads = if version & 2 != 0 && size > HEADED { size.div_ceil(HEADED) } else { 1 };
    let data = u64::from(length).div_ceil(BLOCK);
    Last { at, heads: heads.into(), data, operations: word(bytes, 40) }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_be_bytes(*word))
}
