//! Containers of APFS, Apple's file system.
//!
//! # On disk
//! Block 0 is a container superblock. Every object, metadata or data, is a whole number of blocks
//! at a multiple of the block size from byte 0, and is never overwritten in place.
//!
//! # Limits
//! Block 0 may be an older copy of the superblock: its size is right, its volumes need not be.
//! Volumes have names; a container has none. The checksum is not computed.
//!
//! # Sources
//! Apple "Apple File System Reference" (2020-06-22), "Objects", "Container" (`nx_superblock_t`).

use super::{Format, FormatKind, Inside, Sign};
use crate::base::ondisk::{self, on_disk};
use crate::probe::Probe;
use zerocopy::little_endian::{U16, U32, U64};

/// The format, for the registry.
pub struct Apfs;

/// The kind that blkid calls `apfs`.
pub const KIND: FormatKind = FormatKind::new("apfs", &Apfs);

impl Format for Apfs {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn by_name(&self, _kind: FormatKind, _block: Option<u64>) -> Option<Inside> {
        Some(Inside::FURTHER_IN)
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }
}

on_disk! {
    /// `nx_superblock_t` behind its `obj_phys_t`, as far as they are read.
    struct Super of 88 bytes {
         0 => o_cksum: U64,
         8 => o_oid: U64,
        16 => o_xid: U64,
        24 => o_type: U16,
        26 => o_type_flags: U16,
        28 => o_subtype: U32,
        32 => nx_magic: [u8; 4],
        36 => nx_block_size: U32,
        40 => nx_block_count: U64,
        48 => skip: [u8; 24],
        72 => nx_uuid: [u8; 16],
    }
}

const OBJECT_TYPE_NX_SUPERBLOCK: u16 = 1;

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    let sb: Super = probe.read(0)?;
    let block = u64::from(sb.nx_block_size.get());
    let valid = sb.nx_magic == *b"NXSB"
        && sb.o_type.get() == OBJECT_TYPE_NX_SUPERBLOCK
        && sb.o_subtype.get() == 0
        && block.is_power_of_two()
        && (4096..=65536).contains(&block);
    if !valid {
        return None;
    }
    let mut sign = Sign::new(KIND, 32);
    sign.uuid = ondisk::uuid(&sb.nx_uuid);
    sign.size = sb.nx_block_count.get().checked_mul(block);
    sign.block = Some(block);
    Some(sign)
}
