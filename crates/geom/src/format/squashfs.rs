//! squashfs, a compressed read-only file system of Linux.
//!
//! # On disk
//! Superblock at byte 0. Compressed blocks lie at any byte; nothing is ever written in place.
//!
//! # Limits
//! Version 4, the only one since 2009; before it the byte order was the maker's.
//!
//! # Sources
//! Linux `fs/squashfs/squashfs_fs.h` (`struct squashfs_super_block`).

use super::{Format, FormatKind, Inside, Sign};
use crate::base::ondisk::on_disk;
use crate::probe::Probe;
use zerocopy::little_endian::{U16, U32, U64};

/// The format, for the registry.
pub struct SquashFs;

/// The kind that blkid calls `squashfs`.
pub const KIND: FormatKind = FormatKind::new("squashfs", &SquashFs);

impl Format for SquashFs {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn by_name(&self, _kind: FormatKind, _block: Option<u64>) -> Option<Inside> {
        Some(Inside::ReadOnly)
    }

    fn keeps_to_its_size(&self) -> bool {
        true
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }
}

on_disk! {
    /// `struct squashfs_super_block`, as far as it is read.
    struct Super of 48 bytes {
         0 => s_magic: [u8; 4],
         4 => inodes: U32,
         8 => mkfs_time: U32,
        12 => block_size: U32,
        16 => fragments: U32,
        20 => compression: U16,
        22 => block_log: U16,
        24 => flags: U16,
        26 => no_ids: U16,
        28 => s_major: U16,
        30 => s_minor: U16,
        32 => root_inode: U64,
        40 => bytes_used: U64,
    }
}

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    let sb: Super = probe.read(0)?;
    let block = u64::from(sb.block_size.get());
    // 4 KiB to 1 MiB.
    if sb.s_magic != *b"hsqs"
        || sb.s_major.get() != 4
        || !block.is_power_of_two()
        || !(12..=20).contains(&block.trailing_zeros())
    {
        return None;
    }
    let mut sign = Sign::new(KIND, 0);
    sign.inside = Inside::ReadOnly;
    sign.version = Some(format!("{}.{}", sb.s_major.get(), sb.s_minor.get()));
    sign.size = Some(sb.bytes_used.get());
    sign.block = Some(block);
    Some(sign)
}
