//! bcachefs: one device of a file system.
//!
//! # On disk
//! A superblock at byte 4096, little-endian; sectors are of 512 bytes. Everything lies in buckets,
//! which are cut from byte 0 and hold whole blocks.
//!
//! # Limits
//! The bucket size is in a field of variable place and not read; checksums are not verified.
//!
//! # Sources
//! bcachefs "Principles of Operation", On disk format, Superblock; Linux
//! `fs/bcachefs/bcachefs_format.h`, `struct bch_sb`.

use super::{Format, FormatKind, Inside, Sign};
use crate::base::ondisk::{self, on_disk};
use crate::probe::Probe;
use zerocopy::little_endian::{U16, U64};

/// The format, for the registry.
pub struct Bcachefs;

/// The kind that blkid calls `bcachefs`.
pub const KIND: FormatKind = FormatKind::new("bcachefs", &Bcachefs);

impl Format for Bcachefs {
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

const AT: u64 = 4096;
const SECTOR: u64 = 512;
const MAGIC: &[u8; 16] = b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef";
/// bcache's own, which bcachefs used before it had one.
const BCACHE_MAGIC: &[u8; 16] = b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81";

on_disk! {
    /// `struct bch_sb`, as far as it is read.
    struct Super of 124 bytes {
          0 => csum: [u8; 16],
         16 => version: U16,
         18 => version_min: U16,
         20 => pad: [u8; 4],
         24 => magic: [u8; 16],
         40 => uuid: [u8; 16],
         56 => user_uuid: [u8; 16],
         72 => label: [u8; 32],
        104 => offset: U64,
        112 => seq: U64,
        120 => block_size: U16,
        122 => dev_idx: u8,
        123 => nr_devices: u8,
    }
}

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    let sb: Super = probe.read(AT)?;
    let magic = sb.magic == *MAGIC || sb.magic == *BCACHE_MAGIC;
    let here = sb.offset.get().checked_mul(SECTOR) == Some(AT);
    let block = u64::from(sb.block_size.get()) * SECTOR;
    if !magic || !here || block == 0 || sb.dev_idx >= sb.nr_devices {
        return None;
    }
    let mut sign = Sign::new(KIND, AT + 24);
    sign.version = Some(sb.version.get().to_string());
    sign.label = ondisk::text(&sb.label);
    sign.uuid = ondisk::uuid(&sb.user_uuid);
    sign.block = Some(block);
    sign.details.push(("devices", sb.nr_devices.to_string()));
    Some(sign)
}
