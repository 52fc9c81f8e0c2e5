//! BitLocker: an encrypted NTFS volume, or a FAT one to go.
//!
//! # On disk
//! The boot sector is the file system's with another name; in it the place of the FVE metadata.
//! Windows Vista's has no such field that is read here.
//!
//! # Topology
//! Sectors are encrypted in place: the file system's clusters are where they would be without it,
//! from byte 0.
//!
//! # Limits
//! The cluster size is taken from the boot sector, which a volume to go replaces by that of its
//! visible helper volume; it is then not known. The content is noise and is not tasted.
//!
//! # Sources
//! libyal `libbde`, "BitLocker Drive Encryption (BDE) format", Volume header.

use super::{Format, Inside, Kind, Sign};
use crate::assert_offsets;
use crate::probe::Probe;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// The format, for the registry.
pub struct BitLocker;

/// The kind that blkid calls `BitLocker`.
pub const KIND: Kind = Kind::new("BitLocker", &BitLocker);

impl Format for BitLocker {
    fn kinds(&self) -> Vec<Kind> {
        vec![KIND]
    }

    fn by_name(&self, _kind: Kind, _block: Option<u64>) -> Option<Inside> {
        Some(Inside::FURTHER_IN)
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }
}

/// The volume header, both kinds of it.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    boot_entry_point: [u8; 3],
    fs_signature: [u8; 8],
    bytes_per_sector: U16,
    sectors_per_cluster: u8,
    skip0: [u8; 53],
    volume_serial: U32,
    skip1: [u8; 105],
    fve_metadata_offset: U64,
    skip2: [u8; 256],
    togo_metadata_offset: U64,
}
assert_offsets!(Header, 448, bytes_per_sector @ 11, volume_serial @ 67, fve_metadata_offset @ 176, togo_metadata_offset @ 440);

/// `bde_fve_metadata`: the head of the FVE metadata block.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Metadata {
    signature: [u8; 8],
    size: U16,
    version: U16,
}
assert_offsets!(Metadata, 12, version @ 10);

/// True if the boot sector of a FAT or NTFS volume is BitLocker's: the file system is then its
/// helper's, not the volume's.
pub(super) fn is_bitlocker(probe: &Probe<'_>) -> bool {
    recognise(probe).is_some()
}

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    let header: Header = probe.read(0)?;
    let (metadata, to_go) = match (header.boot_entry_point, &header.fs_signature) {
        ([0xeb, 0x52, 0x90], b"-FVE-FS-") => (None, false),
        ([0xeb, 0x58, 0x90], b"-FVE-FS-") => (Some(header.fve_metadata_offset.get()), false),
        ([0xeb, 0x58, 0x90], b"MSWIN4.1") => (Some(header.togo_metadata_offset.get()), true),
        _ => return None,
    };
    let mut sign = Sign::new(KIND, 0);
    if let Some(at) = metadata {
        let metadata: Metadata =
            probe.read(at).filter(|m: &Metadata| at != 0 && m.signature == *b"-FVE-FS-")?;
        sign.version = Some(metadata.version.get().to_string());
        // blkid prints the serial number as a decimal, and an empty one not at all.
        let serial = header.volume_serial.get().cast_signed();
        sign.uuid = (!to_go && serial != 0).then(|| format!("{serial:016}"));
    }
    let sector = u64::from(header.bytes_per_sector.get());
    let cluster = sector * u64::from(header.sectors_per_cluster);
    let sane = |size: u64| size.is_power_of_two() && size >= 512;
    sign.sector = Some(sector).filter(|&size| sane(size));
    sign.block = Some(cluster).filter(|&size| !to_go && sane(size));
    if sign.block.is_none() {
        sign.inside = Inside::Unknown("the cluster size of the encrypted file system is not known");
    }
    Some(sign)
}
