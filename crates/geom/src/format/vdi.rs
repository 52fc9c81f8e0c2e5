//! VDI: a disk image of VirtualBox.
//!
//! # On disk
//! A line of text, then a little-endian header at byte 64. The virtual disk is cut into blocks of 1
//! MiB, as a rule.
//!
//! # Sources
//! VirtualBox `src/VBox/Storage/VDICore.h` (`VDIPREHEADER`, `VDIHEADER1`); QEMU `block/vdi.c`.

use super::{Format, Inside, Kind, Sign};
use crate::assert_offsets;
use crate::probe::Probe;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// The format, for the registry.
pub struct Vdi;

/// The kind that blkid calls `vdi`.
pub const KIND: Kind = Kind::new("vdi", &Vdi);

impl Format for Vdi {
    fn kinds(&self) -> Vec<Kind> {
        vec![KIND]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }
}

const AT: u64 = 64;

/// `VdiHeader` from its signature on.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    signature: U32,
    version: U32,
    header_size: U32,
    image_type: U32,
    image_flags: U32,
    description: [u8; 256],
    offset_bmap: U32,
    offset_data: U32,
    cylinders: U32,
    heads: U32,
    sectors: U32,
    sector_size: U32,
    unused1: U32,
    disk_size: U64,
    block_size: U32,
}
assert_offsets!(Header, 316, version @ 4, offset_bmap @ 276, offset_data @ 280, sector_size @ 296, disk_size @ 304, block_size @ 312);

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
