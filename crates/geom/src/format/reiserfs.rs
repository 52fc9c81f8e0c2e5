//! ReiserFS, versions 3.5 and 3.6.
//!
//! # On disk
//! Superblock at byte 65536, on the oldest at 8192. Blocks are counted from byte 0; the tail of a
//! file lies within a metadata block, which is written whole.
//!
//! # Sources
//! Linux (before 6.13) `fs/reiserfs/reiserfs.h` (`struct reiserfs_super_block`); libblkid
//! `superblocks/reiserfs.c` for the versions.

use super::{Format, FormatKind, Inside, Sign};
use crate::base::ondisk::{self, on_disk};
use crate::probe::Probe;
use zerocopy::little_endian::{U16, U32};

/// The format, for the registry.
pub struct ReiserFs;

/// The kind that blkid calls `reiserfs`.
pub const KIND: FormatKind = FormatKind::new("reiserfs", &ReiserFs);

impl Format for ReiserFs {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn by_name(&self, _kind: FormatKind, block: Option<u64>) -> Option<Inside> {
        Some(Inside::from_zero(block))
    }

    fn keeps_to_its_size(&self) -> bool {
        true
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }
}

on_disk! {
    /// `struct reiserfs_super_block`, as far as it is read.
    struct Super of 116 bytes {
          0 => s_block_count: U32,
          4 => s_free_blocks: U32,
          8 => s_root_block: U32,
         12 => jp_journal_1st_block: U32,
         16 => skip0: [u8; 28],
         44 => s_blocksize: U16,
         46 => skip1: [u8; 6],
         52 => s_magic: [u8; 10],
         62 => skip2: [u8; 22],
         84 => s_uuid: [u8; 16],
        100 => s_label: [u8; 16],
    }
}

const PLACES: [u64; 2] = [65536, 8192];
const MAGIC_AT: u64 = 52;

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    PLACES.into_iter().filter(|&at| probe.reaches(at)).find_map(|at| superblock(probe, at))
}

fn superblock(probe: &Probe<'_>, at: u64) -> Option<Sign> {
    let sb: Super = probe.read(at).filter(|sb: &Super| sb.s_magic.starts_with(b"ReIsE"))?;
    let version = match &sb.s_magic {
        b"ReIsErFs\0\0" => "3.5",
        b"ReIsEr2Fs\0" => "3.6",
        b"ReIsEr3Fs\0" => "JR",
        _ => return None,
    };
    let block = u64::from(sb.s_blocksize.get());
    // One that lies beyond the journal's start was written into the journal.
    if !block.is_power_of_two()
        || block < 512
        || at / block > u64::from(sb.jp_journal_1st_block.get())
    {
        return None;
    }
    let mut sign = Sign::new(KIND, at + MAGIC_AT);
    sign.version = Some(version.into());
    if version != "3.5" {
        sign.label = ondisk::text(&sb.s_label);
        sign.uuid = ondisk::uuid(&sb.s_uuid);
    }
    sign.size = Some(u64::from(sb.s_block_count.get()) * block);
    sign.block = Some(block);
    Some(sign)
}
