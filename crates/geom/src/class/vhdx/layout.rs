//! Headers and region tables of a VHDX, and what they lead to.

use super::super::container::NotFollowed;
use super::log::Overlay;
use super::metadata::{self, Disk};
use super::{CRC32C, MIB};
use crate::base::ondisk::{Guid, on_disk};
use crate::base::topology::is_whole;
use crate::probe::Probe;
use zerocopy::little_endian::{U16, U32, U64};

const HEADERS: [u64; 2] = [64 << 10, 128 << 10];
const REGION_TABLES: [u64; 2] = [192 << 10, 256 << 10];
/// Bytes of a region table.
const REGION_TABLE: usize = 64 << 10;
/// Largest number of entries of a region table (2.2.3.1).
const MOST_REGIONS: u32 = 2047;

on_disk! {
    /// 2.2.2 Headers, but for the reserved rest.
    #[derive(Clone)]
    pub(super) struct Header of 80 bytes {
         0 => signature: [u8; 4],
         4 => checksum: U32,
         8 => sequence_number: U64,
        16 => file_write_guid: Guid,
        32 => data_write_guid: Guid,
        48 => pub(super) log_guid: Guid,
        64 => log_version: U16,
        66 => version: U16,
        68 => pub(super) log_length: U32,
        72 => pub(super) log_offset: U64,
    }
}

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
    #[derive(Clone)]
    pub(super) struct Region of 32 bytes {
         0 => guid: Guid,
        16 => pub(super) file_offset: U64,
        24 => pub(super) length: U32,
        28 => required: U32,
    }
}

/// Places of the table, the metadata and their items: two regions of 1 MiB, in either order, behind
/// a log of that size.
const USUAL: [u64; 4] = {
    let items = metadata::ITEMS as u64;
    [2 * MIB, 2 * MIB + items, 3 * MIB, 3 * MIB + items]
};
/// Bytes from the second header to the end of the region tables.
const AHEAD: usize = 192 << 10;
/// Bytes at the begin of a region that are asked for ahead.
const ASKED: usize = 8 << 10;
/// Region of the metadata: 8B7CA206-4790-4B9A-B8FE-575F050F886E.
const METADATA: Guid = guid(0x8b7c_a206, 0x4790, 0x4b9a, 0xb8fe_575f_050f_886e);
/// Region of the block allocation table: 2DC27766-F623-4200-9D64-115E9BFD4A08.
const BAT: Guid = guid(0x2dc2_7766, 0xf623, 0x4200, 0x9d64_115e_9bfd_4a08);

/// A GUID from its printed parts.
pub(super) const fn guid(a: u32, b: u16, c: u16, d: u64) -> Guid {
    let (a, b, c, d) = (a.to_le_bytes(), b.to_le_bytes(), c.to_le_bytes(), d.to_be_bytes());
    Guid([
        a[0], a[1], a[2], a[3], b[0], b[1], c[0], c[1], d[0], d[1], d[2], d[3], d[4], d[5], d[6],
        d[7],
    ])
}

/// Places and numbers that a VHDX says of itself.
pub(super) struct Layout {
    pub(super) disk: Disk,
    /// First byte of the block allocation table.
    pub(super) table: u64,
    pub(super) overlay: Overlay,
    /// Identity of its data, by which a differencing disk knows its parent.
    pub(super) identity: Guid,
    /// Damage to one of two copies.
    pub(super) damage: Option<&'static str>,
}

impl Layout {
    /// The layout of a file that begins as a VHDX does.
    ///
    /// Errors: the reason for which it is not followed.
    pub(super) fn read(probe: &Probe<'_>) -> Result<Layout, NotFollowed> {
        if probe.is_far() {
            // Where Hyper-V and QEMU put the regions is asked for with the tables that say so.
            let _ = probe.bytes(HEADERS[1], AHEAD);
            for at in USUAL {
                let _ = probe.bytes(at, ASKED);
            }
        }
        let (header, torn) = header(probe)?;
        let (bat, metadata, copy) = regions(probe)?;
        let overlay = Overlay::read(probe, &header)?;
        if probe.is_far() {
            // What is needed next is asked for at once; that it is read again is no error yet.
            let (bat, metadata) = (bat.file_offset.get(), metadata.file_offset.get());
            for at in [bat, metadata, metadata.saturating_add(u64::from(metadata::ITEMS))] {
                let _ = probe.bytes(at, ASKED);
            }
        }
        let disk = Disk::read(probe, &metadata, &overlay)?;
        if disk.entries().saturating_mul(8) > u64::from(bat.length.get()) {
            return Err(NotFollowed("its block allocation table is too small for its size"));
        }
        let (table, damage) = (bat.file_offset.get(), torn.or(copy));
        Ok(Layout { disk, table, overlay, identity: header.data_write_guid, damage })
    }
}

/// The bytes at a place with the four of a checksum at 4 set to zero, if the sum of them all is
/// that.
fn summed(probe: &Probe<'_>, at: u64, length: usize) -> Option<Vec<u8>> {
    let mut bytes = probe.bytes(at, length)?;
    let own = u32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?);
    bytes[4..8].fill(0);
    (CRC32C.checksum(&bytes) == own).then_some(bytes)
}

/// The header that counts, and the damage to the other.
fn header(probe: &Probe<'_>) -> Result<(Header, Option<&'static str>), NotFollowed> {
    let whole = |at: u64| {
        let bytes = summed(probe, at, 4096)?;
        let header: Header = zerocopy::FromBytes::read_from_prefix(&bytes).ok()?.0;
        (header.signature == *b"head").then_some((header, bytes))
    };
    let (header, damage) = match HEADERS.map(whole) {
        [None, None] => return Err(NotFollowed("neither of its headers is whole")),
        [Some((first, _)), None] => (first, Some("its second header is damaged")),
        [None, Some((second, _))] => (second, Some("its first header is damaged")),
        [Some((first, one)), Some((second, other))] => {
            let (a, b) = (first.sequence_number.get(), second.sequence_number.get());
            // Disk2vhd writes the same header twice.
            if a == b && one != other {
                return Err(NotFollowed("its headers have one sequence number and differ"));
            }
            (if a >= b { first } else { second }, None)
        }
    };
    if header.version.get() != 1 || header.log_version.get() != 0 {
        return Err(NotFollowed("its version is not known here"));
    }
    Ok((header, damage))
}

/// The regions of the table and of the metadata, and the damage to one of the two region tables.
fn regions(probe: &Probe<'_>) -> Result<(Region, Region, Option<&'static str>), NotFollowed> {
    let whole =
        |at: u64| summed(probe, at, REGION_TABLE).filter(|bytes| bytes.starts_with(b"regi"));
    let (bytes, damage) = match whole(REGION_TABLES[0]) {
        Some(first) => {
            let is_whole = whole(REGION_TABLES[1]).is_some();
            (first, (!is_whole).then_some("the copy of its region table is damaged"))
        }
        None => match whole(REGION_TABLES[1]) {
            Some(second) => (second, Some("its first region table is damaged")),
            None => return Err(NotFollowed("neither of its region tables is whole")),
        },
    };
    let mut all = read_regions(&bytes)?;
    all.sort_by_key(|region| region.file_offset.get());
    let end =
        |region: &Region| region.file_offset.get().checked_add(u64::from(region.length.get()));
    let is_placed = |region: &Region| {
        let (start, length) = (region.file_offset.get(), u64::from(region.length.get()));
        start >= MIB
            && length > 0
            && is_whole(start, MIB)
            && is_whole(length, MIB)
            && end(region).is_some_and(|end| end <= probe.length())
    };
    let overlap = all.windows(2).any(|pair| end(&pair[0]) > Some(pair[1].file_offset.get()));
    if overlap || !all.iter().all(is_placed) {
        return Err(NotFollowed("its regions are not where they can be"));
    }
    let region = |id: Guid| all.iter().find(|region| region.guid == id).cloned();
    match (region(BAT), region(METADATA)) {
        (Some(bat), Some(metadata)) => Ok((bat, metadata, damage)),
        _ => Err(NotFollowed("a region that every VHDX has is missing")),
    }
}

/// The entries of a region table that is whole.
fn read_regions(bytes: &[u8]) -> Result<Vec<Region>, NotFollowed> {
    let (table, entries) = <RegionTable as zerocopy::FromBytes>::ref_from_prefix(bytes)
        .map_err(|_| NotFollowed("its region table is too short"))?;
    let count = table.entry_count.get();
    if count > MOST_REGIONS {
        return Err(NotFollowed("its region table counts more entries than it holds"));
    }
    let entries = entries.chunks_exact(32).take(usize::try_from(count).unwrap_or_default());
    let regions: Vec<Region> =
        entries.filter_map(|entry| zerocopy::FromBytes::read_from_bytes(entry).ok()).collect();
    let is_known = |region: &Region| region.guid == BAT || region.guid == METADATA;
    if regions.iter().any(|region| region.required.get() & 1 != 0 && !is_known(region)) {
        return Err(NotFollowed("it needs a region that is not known here"));
    }
    Ok(regions)
}
