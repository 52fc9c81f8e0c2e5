//! JFS, the journaled file system of OS/2 and Linux.
//!
//! # On disk
//! Superblock at byte 32768. Blocks are counted from byte 0.
//!
//! # Sources
//! Linux `fs/jfs/jfs_superblock.h` (`struct jfs_superblock`).

use super::{Format, FormatKind, Inside, Sign};
use crate::base::ondisk::{self, on_disk};
use crate::probe::Probe;
use zerocopy::little_endian::{U16, U32, U64};

/// The format, for the registry.
pub struct Jfs;

/// The kind that blkid calls `jfs`.
pub const KIND: FormatKind = FormatKind::new("jfs", &Jfs);

impl Format for Jfs {
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
    /// `struct jfs_superblock`, as far as it is read.
    struct Super of 168 bytes {
          0 => s_magic: [u8; 4],
          4 => s_version: U32,
          8 => s_size: U64,
         16 => s_bsize: U32,
         20 => s_l2bsize: U16,
         22 => s_l2bfactor: U16,
         24 => s_pbsize: U32,
         28 => s_l2pbsize: U16,
         30 => skip: [u8; 106],
        136 => s_uuid: [u8; 16],
        152 => s_label: [u8; 16],
    }
}

const AT: u64 = 32768;

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    if !probe.reaches(AT) || !probe.has(AT, b"JFS1") {
        return None;
    }
    let sb: Super = probe.read(AT)?;
    let (block, sector) = (u64::from(sb.s_bsize.get()), u64::from(sb.s_pbsize.get()));
    let valid = block.is_power_of_two()
        && (512..=4096).contains(&block)
        && block.trailing_zeros() == u32::from(sb.s_l2bsize.get())
        && sector.is_power_of_two()
        && (512..=block).contains(&sector)
        && sector.trailing_zeros() == u32::from(sb.s_l2pbsize.get())
        && block / sector == 1u64.checked_shl(u32::from(sb.s_l2bfactor.get()))?;
    if !valid {
        return None;
    }
    let mut sign = Sign::new(KIND, AT);
    sign.label = ondisk::text(&sb.s_label);
    sign.uuid = ondisk::uuid(&sb.s_uuid);
    sign.size = sb.s_size.get().checked_mul(sector);
    sign.sector = Some(sector);
    sign.block = Some(block);
    Some(sign)
}
