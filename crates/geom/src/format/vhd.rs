//! VHD (QEMU's `vpc`): a disk image of Microsoft Virtual PC.
//!
//! # On disk
//! A big-endian footer in the last 512 bytes, `conectix`, with a checksum. A fixed disk is the raw
//! content before it. A dynamic or differencing disk has a copy of the footer at byte 0 and a
//! header, `cxsparse`, that gives the block size.
//!
//! # Topology
//! A fixed disk's content is tasted in turn. Of a dynamic one each block is preceded by a bitmap of
//! 512 bytes or more, so that its content is often off every grain larger than that.
//!
//! # Sources
//! Microsoft "Virtual Hard Disk Image Format Specification" 1.0, Hard Disk Footer Format, Dynamic
//! Disk Header Format.

use super::{Format, FormatKind, Inside, Sign};
use crate::base::ondisk::{self, on_disk};
use crate::probe::Probe;
use zerocopy::big_endian::{U32, U64};

/// The format, for the registry.
pub struct Vhd;

/// The kind that blkid calls `vhd`.
pub const KIND: FormatKind = FormatKind::new("vhd", &Vhd);

impl Format for Vhd {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }
}

const FOOTER: u64 = 512;
const FIXED: u32 = 2;

on_disk! {
    /// "Hard Disk Footer Format".
    struct Footer of 84 bytes {
         0 => cookie: [u8; 8],
         8 => features: U32,
        12 => file_format_version: U32,
        16 => data_offset: U64,
        24 => time_stamp: U32,
        28 => creator_application: [u8; 4],
        32 => creator_version: U32,
        36 => creator_host_os: U32,
        40 => original_size: U64,
        48 => current_size: U64,
        56 => disk_geometry: [u8; 4],
        60 => disk_type: U32,
        64 => checksum: U32,
        68 => unique_id: [u8; 16],
    }
}

on_disk! {
    /// "Dynamic Disk Header Format", its head.
    struct Dynamic of 36 bytes {
         0 => cookie: [u8; 8],
         8 => data_offset: U64,
        16 => table_offset: U64,
        24 => header_version: U32,
        28 => max_table_entries: U32,
        32 => block_size: U32,
    }
}

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    // A dynamic disk has the footer twice; a fixed one only at the end, and what stands at its byte
    // 0 is its content.
    let end = probe.from_end(FOOTER)?;
    footer(probe, end).or_else(|| footer(probe, 0).filter(|sign| sign.data.is_none()))
}

fn footer(probe: &Probe<'_>, at: u64) -> Option<Sign> {
    if !probe.has(at, b"conectix") {
        return None;
    }
    let footer: Footer = probe.read(at)?;
    let sum: u32 = probe.bytes(at, 512)?.iter().map(|&b| u32::from(b)).sum();
    // The checksum's own bytes do not count.
    let own: u32 = footer.checksum.get().to_be_bytes().into_iter().map(u32::from).sum();
    if footer.checksum.get() != !(sum - own) {
        return None;
    }
    let mut sign = Sign::new(KIND, at);
    let version = footer.file_format_version.get();
    sign.version = Some(format!("{}.{}", version >> 16, version & 0xffff));
    sign.uuid = ondisk::uuid(&footer.unique_id);
    let size = footer.current_size.get();
    sign.details.push(("virtual size", size.to_string()));
    if footer.disk_type.get() == FIXED {
        sign.data_at(probe, Some(0), Some(size.min(at)), true);
        return Some(sign);
    }
    sign.inside = Inside::CONTAINER;
    let header = probe
        .read(footer.data_offset.get())
        .filter(|header: &Dynamic| header.cookie == *b"cxsparse");
    sign.details.extend(header.map(|header| ("cluster size", header.block_size.get().to_string())));
    Some(sign)
}
