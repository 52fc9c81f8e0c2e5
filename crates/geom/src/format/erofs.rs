//! EROFS, a read-only file system of Linux.
//!
//! # On disk
//! Superblock at byte 1024. Nothing is ever written in place.
//!
//! # Limits
//! The checksum is not computed.
//!
//! # Sources
//! Linux `fs/erofs/erofs_fs.h` (`struct erofs_super_block`).

use super::{Format, FormatKind, Inside, Sign};
use crate::base::ondisk::{self, on_disk};
use crate::probe::Probe;
use zerocopy::little_endian::U32;

/// The format, for the registry.
pub struct Erofs;

/// The kind that blkid calls `erofs`.
pub const KIND: FormatKind = FormatKind::new("erofs", &Erofs);

impl Format for Erofs {
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
    /// `struct erofs_super_block`, as far as it is read.
    struct Super of 80 bytes {
         0 => magic: U32,
         4 => checksum: U32,
         8 => feature_compat: U32,
        12 => blkszbits: u8,
        13 => skip0: [u8; 23],
        36 => blocks: U32,
        40 => meta_blkaddr: U32,
        44 => xattr_blkaddr: U32,
        48 => uuid: [u8; 16],
        64 => volume_name: [u8; 16],
    }
}

const AT: u64 = 1024;
const MAGIC: u32 = 0xe0f5_e1e2;

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    let sb: Super = probe.read(AT)?;
    // A block holds the superblock and is no larger than the largest page.
    if sb.magic.get() != MAGIC || !(9..=16).contains(&sb.blkszbits) {
        return None;
    }
    let block = 1u64 << sb.blkszbits;
    let mut sign = Sign::new(KIND, AT);
    sign.inside = Inside::ReadOnly;
    sign.label = ondisk::text(&sb.volume_name);
    sign.uuid = ondisk::uuid(&sb.uuid);
    sign.size = Some(u64::from(sb.blocks.get()) * block);
    sign.block = Some(block);
    Some(sign)
}
