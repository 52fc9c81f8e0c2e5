//! VDI: a disk image of VirtualBox.
//!
//! # On disk
//! A line of text, then a little-endian header at byte 64. The virtual disk is cut into blocks of 1
//! MiB, as a rule.
//!
//! # Sources
//! VirtualBox `src/VBox/Storage/VDICore.h` (`VDIPREHEADER`, `VDIHEADER1`); QEMU `block/vdi.c`.

use super::{Format, FormatKind, Inside, Sign};
use crate::base::ondisk::on_disk;
use crate::probe::Probe;
use zerocopy::little_endian::{U32, U64};

/// The format, for the registry.
pub struct Vdi;

/// The kind that blkid calls `vdi`.
pub const KIND: FormatKind = FormatKind::new("vdi", &Vdi);

impl Format for Vdi {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }
}

const AT: u64 = 64;

on_disk! {
    /// `VdiHeader` from its signature on.
    struct Header of 316 bytes {
          0 => signature: U32,
          4 => version: U32,
          8 => header_size: U32,
         12 => image_type: U32,
         16 => image_flags: U32,
         20 => description: [u8; 256],
        276 => offset_bmap: U32,
        280 => offset_data: U32,
        284 => cylinders: U32,
        288 => heads: U32,
        292 => sectors: U32,
        296 => sector_size: U32,
        300 => unused1: U32,
        304 => disk_size: U64,
        312 => block_size: U32,
    }
}

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    let signature: U32 = probe.read(AT)?;
    if signature.get() != 0xbeda_107f {
        return None;
    }
    let header: Header = probe.read(AT)?;
    let mut sign = Sign::new(KIND, AT);
    sign.version =
        Some(format!("{}.{}", header.version.get() >> 16, header.version.get() & 0xffff));
    sign.inside = Inside::CONTAINER;
    sign.details.push(("virtual size", header.disk_size.get().to_string()));
    sign.details.push(("cluster size", header.block_size.get().to_string()));
    sign.details.push(("data offset", header.offset_data.get().to_string()));
    Some(sign)
}
