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

use super::{Format, FormatKind, Inside, Sign};
use crate::base::ondisk::on_disk;
use crate::probe::Probe;
use zerocopy::little_endian::{U16, U32, U64};

/// The format, for the registry.
pub struct BitLocker;

/// The kind that blkid calls `BitLocker`.
pub const KIND: FormatKind = FormatKind::new("BitLocker", &BitLocker);

impl Format for BitLocker {
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
    /// The volume header, both kinds of it.
    struct Header of 448 bytes {
          0 => boot_entry_point: [u8; 3],
          3 => fs_signature: [u8; 8],
         11 => bytes_per_sector: U16,
         13 => sectors_per_cluster: u8,
         14 => skip0: [u8; 53],
         67 => volume_serial: U32,
         71 => skip1: [u8; 105],
        176 => fve_metadata_offset: U64,
        184 => skip2: [u8; 256],
        440 => togo_metadata_offset: U64,
    }
}

on_disk! {
    /// `bde_fve_metadata`: the head of the FVE metadata block.
    struct Metadata of 12 bytes {
         0 => signature: [u8; 8],
         8 => size: U16,
        10 => version: U16,
    }
}

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
