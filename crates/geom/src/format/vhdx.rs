//! VHDX: a disk image of Hyper-V.
//!
//! # On disk
//! `vhdxfile` at byte 0; a region table at 192 KiB (a copy at 256 KiB) names the metadata region,
//! whose table names items by GUID: file parameters with the block size, virtual disk size, logical
//! and physical sector size.
//!
//! # Limits
//! Checksums (CRC-32C) are not verified and the log is not replayed: the numbers are for people.
//!
//! # Sources
//! [MS-VHDX] 2.2.1 File Type Identifier, 2.2.3 Region Table, 2.6 Metadata Region.

use super::{Format, FormatKind, Inside, Sign};
use crate::base::ondisk::{Guid, on_disk};
use crate::probe::Probe;
use zerocopy::little_endian::{U16, U32, U64};

/// The format, for the registry.
pub struct Vhdx;

/// The kind that blkid calls `vhdx`.
pub const KIND: FormatKind = FormatKind::new("vhdx", &Vhdx);

impl Format for Vhdx {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }
}

const REGION_TABLES: [u64; 2] = [192 << 10, 256 << 10];
/// Entries looked at in either table; images have 2 regions and 5 or 6 items.
const ENTRIES: u64 = 32;

on_disk! {
    /// 2.2.3.1 Region Table Header.
    struct RegionTable of 16 bytes {
         0 => signature: [u8; 4],
         4 => checksum: U32,
         8 => entry_count: U32,
        12 => reserved: U32,
    }
}

on_disk! {
    /// 2.2.3.2 Region Table Entry.
    struct Region of 32 bytes {
         0 => guid: Guid,
        16 => file_offset: U64,
        24 => length: U32,
        28 => required: U32,
    }
}

on_disk! {
    /// 2.6.1.1 Metadata Table Header.
    struct MetadataTable of 32 bytes {
         0 => signature: [u8; 8],
         8 => reserved: U16,
        10 => entry_count: U16,
        12 => reserved2: [u8; 20],
    }
}

on_disk! {
    /// 2.6.1.2 Metadata Table Entry.
    struct Item of 32 bytes {
         0 => item_id: Guid,
        16 => offset: U32,
        20 => length: U32,
        24 => flags: U32,
        28 => reserved2: U32,
    }
}

/// Region of the metadata: 8B7CA206-4790-4B9A-B8FE-575F050F886E.
const METADATA: Guid = guid(0x8b7c_a206, 0x4790, 0x4b9a, 0xb8fe_575f_050f_886e);
/// Item "File Parameters": CAA16737-FA36-4D43-B3B6-33F0AA44E76B.
const FILE_PARAMETERS: Guid = guid(0xcaa1_6737, 0xfa36, 0x4d43, 0xb3b6_33f0_aa44_e76b);
/// Item "Virtual Disk Size": 2FA54224-CD1B-4876-B211-5DBED83BF4B8.
const VIRTUAL_DISK_SIZE: Guid = guid(0x2fa5_4224, 0xcd1b, 0x4876, 0xb211_5dbe_d83b_f4b8);
/// 8141BF1D-A96F-4709-BA47-F233A8FAAB5F, Logical Sector Size.
const LOGICAL_SECTOR_SIZE: Guid = guid(0x8141_bf1d, 0xa96f, 0x4709, 0xba47_f233_a8fa_ab5f);
/// CDA348C7-445D-4471-9CC9-E9885251C556, Physical Sector Size.
const PHYSICAL_SECTOR_SIZE: Guid = guid(0xcda3_48c7, 0x445d, 0x4471, 0x9cc9_e988_5251_c556);

/// A GUID from its printed parts.
const fn guid(a: u32, b: u16, c: u16, d: u64) -> Guid {
    let (a, b, c, d) = (a.to_le_bytes(), b.to_le_bytes(), c.to_le_bytes(), d.to_be_bytes());
    Guid([
        a[0], a[1], a[2], a[3], b[0], b[1], c[0], c[1], d[0], d[1], d[2], d[3], d[4], d[5], d[6],
        d[7],
    ])
}

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    if !probe.has(0, b"vhdxfile") {
        return None;
    }
    let mut sign = Sign::new(KIND, 0);
    sign.inside = Inside::CONTAINER;
    if let Some(region) = REGION_TABLES.iter().find_map(|&at| metadata_region(probe, at)) {
        let number = |id| {
            item(probe, region, id)
                .and_then(|at| probe.read::<U32>(at))
                .map(|n| n.get().to_string())
        };
        let size = item(probe, region, VIRTUAL_DISK_SIZE).and_then(|at| probe.read::<U64>(at));
        sign.details.extend(size.map(|size| ("virtual size", size.get().to_string())));
        sign.details.extend(number(FILE_PARAMETERS).map(|size| ("cluster size", size)));
        sign.details.extend(number(LOGICAL_SECTOR_SIZE).map(|size| ("logical sector size", size)));
        sign.details
            .extend(number(PHYSICAL_SECTOR_SIZE).map(|size| ("physical sector size", size)));
    }
    Some(sign)
}

/// The byte at which the metadata region begins, from the region table at `at`.
fn metadata_region(probe: &Probe<'_>, at: u64) -> Option<u64> {
    let table: RegionTable =
        probe.read(at).filter(|table: &RegionTable| table.signature == *b"regi")?;
    let count = u64::from(table.entry_count.get()).min(ENTRIES);
    let mut regions = (0..count).map_while(|n| probe.read::<Region>(at + 16 + n * 32));
    regions.find(|region| region.guid == METADATA).map(|region| region.file_offset.get())
}

/// The byte at which an item of the metadata region at `region` stands.
fn item(probe: &Probe<'_>, region: u64, id: Guid) -> Option<u64> {
    let table: MetadataTable =
        probe.read(region).filter(|table: &MetadataTable| table.signature == *b"metadata")?;
    let count = u64::from(table.entry_count.get()).min(ENTRIES);
    // The table was read at `region`, so no sum here comes near 2^64.
    let mut items = (0..count).map_while(|n| probe.read::<Item>(region + 32 + n * 32));
    items.find(|item| item.item_id == id).map(|item| region + u64::from(item.offset.get()))
}
