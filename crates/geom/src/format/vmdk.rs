//! VMDK: a disk image of VMware; a sparse extent, or the descriptor of a disk whose extents are
//! files of their own.
//!
//! # On disk
//! A sparse extent begins with `KDMV` (hosted) or `COWD` (ESX), little-endian, and is cut into
//! grains. A descriptor is text that begins with `# Disk DescriptorFile`; its extent lines give the
//! size in 512-byte sectors.
//!
//! # Limits
//! Of a descriptor its first 4 KiB are read.
//!
//! # Sources
//! VMware "Virtual Disk Format 5.0", The Descriptor File, Hosted Sparse Extent Header, ESX Server
//! Sparse Extent Header.

use super::{Format, FormatKind, Inside, Sign};
use crate::base::ondisk::{self, on_disk};
use crate::probe::Probe;
use zerocopy::little_endian::{U32, U64};

/// The format, for the registry.
pub struct Vmdk;

/// The kind that blkid calls `vmdk`.
pub const KIND: FormatKind = FormatKind::new("vmdk", &Vmdk);

impl Format for Vmdk {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }
}

const SECTOR: u64 = 512;
const DESCRIPTOR: &[u8] = b"# Disk DescriptorFile";
const TEXT: u64 = 4096;

on_disk! {
    /// On-disk head of a sparse extent, `SparseExtentHeader`.
    struct Sparse of 28 bytes {
         0 => magic_number: [u8; 4],
         4 => version: U32,
         8 => flags: U32,
        12 => capacity: U64,
        20 => grain_size: U64,
    }
}

on_disk! {
    /// On-disk head of a copy-on-write disk, `COWDisk_Header`.
    struct Cowd of 20 bytes {
         0 => magic_number: [u8; 4],
         4 => version: U32,
         8 => flags: U32,
        12 => num_sectors: U32,
        16 => grain_size: U32,
    }
}

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    let hosted = probe.read(0).filter(|h: &Sparse| h.magic_number == *b"KDMV");
    let esx = probe.read(0).filter(|h: &Cowd| h.magic_number == *b"COWD");
    let mut sign = Sign::new(KIND, 0);
    sign.inside = Inside::CONTAINER;
    if let Some(header) = hosted {
        describe(&mut sign, header.version.get(), header.capacity.get(), header.grain_size.get());
    } else if let Some(header) = esx {
        describe(
            &mut sign,
            header.version.get(),
            header.num_sectors.get().into(),
            header.grain_size.get().into(),
        );
    } else if probe.has(0, DESCRIPTOR) {
        let length = usize::try_from(probe.length().min(TEXT)).ok()?;
        descriptor(&mut sign, &String::from_utf8_lossy(&probe.bytes(0, length)?));
    } else {
        return None;
    }
    Some(sign)
}

fn describe(sign: &mut Sign, version: u32, sectors: u64, grain: u64) {
    sign.version = Some(version.to_string());
    sign.details
        .extend(sectors.checked_mul(SECTOR).map(|bytes| ("virtual size", bytes.to_string())));
    sign.details.extend(grain.checked_mul(SECTOR).map(|bytes| ("cluster size", bytes.to_string())));
}

/// `version=`, `createType=` and the sum of the extents: lines such as `RW 20480 FLAT
/// "disk-flat.vmdk" 0`.
fn descriptor(sign: &mut Sign, text: &str) {
    let value = |key| {
        text.lines()
            .find_map(|line: &str| line.strip_prefix(key))
            .and_then(|v| ondisk::text(v.trim_matches('"').as_bytes()))
    };
    sign.version = value("version=");
    let mut words = text.lines().map(str::split_whitespace);
    let sectors = words.try_fold(0u64, |sum, mut line| match line.next() {
        Some("RW" | "RDONLY" | "NOACCESS") => sum.checked_add(line.next()?.parse().ok()?),
        _ => Some(sum),
    });
    sign.details.extend(
        sectors
            .and_then(|n| n.checked_mul(SECTOR))
            .map(|bytes| ("virtual size", bytes.to_string())),
    );
    sign.details.extend(value("createType=").map(|kind| ("create type", kind)));
}
