//! LVM2: a physical volume.
//!
//! # On disk
//! A label in one of the first four 512-byte sectors: `LABELONE`, its own sector number, a CRC,
//! then the physical volume's identity, its size, a list of data areas and a list of metadata
//! areas, each ended by a zero pair. A metadata area begins with a 512-byte header that points into
//! a circular buffer of text.
//!
//! # Topology
//! Extents lie at multiples of the extent size from the data area (`pe_start`).
//!
//! # Limits
//! Of the text only its first 4 KiB are looked at, for the volume group's name and extent size;
//! which logical volume holds which extent is not followed. The text's own CRC is not verified.
//!
//! # Sources
//! LVM2 `lib/label/label.h`, `lib/format_text/layout.h`, `lib/misc/crc.c`.

use super::{Format, Inside, Kind, Sign, StrayData};
use crate::assert_offsets;
use crate::base::ondisk;
use crate::probe::Probe;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// The format, for the registry.
pub struct Lvm2;

/// The kind that blkid calls `LVM2_member`.
pub const KIND: Kind = Kind::new("LVM2_member", &Lvm2);

impl Format for Lvm2 {
    fn kinds(&self) -> Vec<Kind> {
        vec![KIND]
    }

    fn by_name(&self, _kind: Kind, _block: Option<u64>) -> Option<Inside> {
        Some(Inside::FURTHER_IN)
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }

    fn shift_data(&self, area: &StrayData<'_>) -> String {
        format!(
            "empty it (pvmove, vgreduce, pvremove), then pvcreate --dataalignment {}b and vgextend",
            area.unit
        )
    }
}

const SECTOR: u64 = 512;
/// Initial value of LVM's CRC-32, instead of all ones.
const INITIAL_CRC: u32 = 0xf597_a6cf;
const FMTT_MAGIC: &[u8; 16] = b" LVM2 x[5A%r0N*>";
/// Enough for the head of the text, where the extent size stands.
const TEXT: u64 = 4096;

/// `struct label_header`, then `struct pv_header` up to its lists.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Label {
    id: [u8; 8],
    sector_xl: U64,
    crc_xl: U32,
    offset_xl: U32,
    r#type: [u8; 8],
    pv_uuid: [u8; 32],
    device_size_xl: U64,
}
assert_offsets!(Label, 72, sector_xl @ 8, crc_xl @ 16, offset_xl @ 20, r#type @ 24, pv_uuid @ 32, device_size_xl @ 64);

/// On-disk location of an area, `struct disk_locn`.
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Location {
    offset: U64,
    size: U64,
}
assert_offsets!(Location, 16, size @ 8);

/// `struct mda_header` with its first `struct raw_locn`.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct MetadataArea {
    checksum_xl: U32,
    magic: [u8; 16],
    version: U32,
    start: U64,
    size: U64,
    raw_locn: Location,
    checksum: U32,
    flags: U32,
}
assert_offsets!(MetadataArea, 64, magic @ 4, start @ 24, size @ 32, raw_locn @ 40);

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    (0..4).find_map(|sector| label(probe, sector))
}

fn label(probe: &Probe<'_>, sector: u64) -> Option<Sign> {
    let at = sector * SECTOR;
    let raw = probe.bytes(at, 512)?;
    let (label, lists) = Label::read_from_prefix(&raw).ok()?;
    let valid = label.id == *b"LABELONE"
        && label.r#type == *b"LVM2 001"
        && label.sector_xl.get() == sector
        && label.offset_xl.get() == 32;
    if !valid || crc(raw.get(20..)?) != label.crc_xl.get() {
        return None;
    }
    let (data, lists) = locations(lists);
    let (metadata, _) = locations(lists);
    let mut sign = Sign::new(KIND, at + 24);
    sign.version = Some("LVM2 001".to_string());
    sign.uuid = grouped(&label.pv_uuid);
    sign.size = Some(label.device_size_xl.get()).filter(|&size| size > 0);
    match data.first() {
        Some(area) => sign.data_at(
            probe,
            Some(area.offset.get()),
            Some(area.size.get()).filter(|&size| size > 0),
            false,
        ),
        None => sign.inside = Inside::Unknown("its label names no data area"),
    }
    if let Some(text) = metadata.first().and_then(|area| metadata_text(probe, area.offset.get())) {
        describe(&mut sign, &text);
    }
    Some(sign)
}

/// LVM's CRC-32: the usual polynomial, another start, no final complement.
fn crc(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(!INITIAL_CRC);
    hasher.update(bytes);
    !hasher.finalize()
}

/// A list up to its zero pair, and what follows it. The sector bounds it.
fn locations(bytes: &[u8]) -> (Vec<Location>, &[u8]) {
    let (mut found, mut rest) = (Vec::new(), bytes);
    while let Ok((location, after)) = Location::read_from_prefix(rest) {
        rest = after;
        if location.offset.get() == 0 {
            break;
        }
        found.push(location);
    }
    (found, rest)
}

/// An LVM identity as its tools print it: 6-4-4-4-4-4-6 characters.
fn grouped(id: &[u8; 32]) -> Option<String> {
    let id = ondisk::text(id).filter(|id| id.len() == 32 && id.is_ascii())?;
    Some(
        [&id[..6], &id[6..10], &id[10..14], &id[14..18], &id[18..22], &id[22..26], &id[26..]]
            .join("-"),
    )
}

/// The head of the current text of the metadata area at `at`; `None` if the volume is in no group.
fn metadata_text(probe: &Probe<'_>, at: u64) -> Option<String> {
    let area: MetadataArea = probe.read(at)?;
    let (offset, size) = (area.raw_locn.offset.get(), area.raw_locn.size.get());
    // The text may run over the end of its circular buffer; its head is before that.
    let room = area.size.get().checked_sub(offset)?;
    let length = usize::try_from(size.min(room).min(TEXT)).ok()?;
    if area.magic != *FMTT_MAGIC || area.start.get() != at || offset == 0 || length == 0 {
        return None;
    }
    let text = probe.bytes(at.checked_add(offset)?, length)?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// The text begins with the group's name and a brace; its extent size is in 512-byte sectors.
fn describe(sign: &mut Sign, text: &str) {
    let name = text.split_once('{').and_then(|(name, _)| ondisk::text(name.trim().as_bytes()));
    let extent = text.lines().find_map(|line| line.trim().strip_prefix("extent_size = "));
    let extent = extent.and_then(|rest| {
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok()?.checked_mul(SECTOR)
    });
    sign.details.extend(name.map(|name| ("volume group", name)));
    sign.details.extend(extent.map(|bytes| ("extent size", bytes.to_string())));
}

#[cfg(test)]
mod tests {
    use super::super::tests::{disk, recognised};
    use super::*;

    #[test]
    fn hostile_numbers_are_not_followed() {
        let mut label = [0xffu8; 512];
        label[..8].copy_from_slice(b"LABELONE");
        label[8..16].copy_from_slice(&3u64.to_le_bytes());
        label[20..24].copy_from_slice(&32u32.to_le_bytes());
        label[24..32].copy_from_slice(b"LVM2 001");
        let sum = crc(&label[20..]);
        label[16..20].copy_from_slice(&sum.to_le_bytes());
        let sign = recognised(&Lvm2, disk(1 << 20, &[(1536, &label)])).unwrap();
        assert_eq!((sign.uuid, sign.data), (None, None));
        assert!(matches!(sign.inside, Inside::Unknown(_)));
        // In another sector than it says, or with another sum, it is no label.
        assert_eq!(recognised(&Lvm2, disk(1 << 20, &[(1024, &label)])), None);
        label[500] = 0;
        assert_eq!(recognised(&Lvm2, disk(1 << 20, &[(1536, &label)])), None);
    }

    /// A physical volume whose metadata area of `size` bytes, at 4096, says it begins at `start`
    /// and has text at its byte 512.
    fn volume(offset_xl: u32, start: u64, size: u64) -> Vec<u8> {
        let mut disk = vec![0; 8192];
        disk[512..520].copy_from_slice(b"LABELONE");
        disk[536..544].copy_from_slice(b"LVM2 001");
        let words = [
            (520, 1),
            (584, 1 << 20),
            (616, 4096),
            (624, size),
            (4096 + 24, start),
            (4096 + 32, size),
            (4096 + 40, 512),
            (4096 + 48, 4096),
        ];
        for (at, value) in words.into_iter().chain([(532, u64::from(offset_xl))]) {
            disk[at..at + 4].copy_from_slice(&u32::try_from(value).unwrap().to_le_bytes());
        }
        let sum = crc(&disk[532..1024]);
        disk[528..532].copy_from_slice(&sum.to_le_bytes());
        disk[4100..4116].copy_from_slice(FMTT_MAGIC);
        disk[4608..4640].copy_from_slice(b"data {\nextent_size = 8192\n      ");
        disk
    }

    #[test]
    fn the_text_is_read_where_its_area_is_and_no_further() {
        let details = |disk_bytes: &[u8]| {
            recognised(&Lvm2, disk(8 << 20, &[(0, disk_bytes)])).map(|sign| sign.details)
        };
        let (group, extent) =
            (("volume group", "data".to_string()), ("extent size", "4194304".to_string()));
        assert_eq!(details(&volume(32, 4096, 1024)), Some(vec![group.clone(), extent]));
        // The area ends behind the name.
        assert_eq!(details(&volume(32, 4096, 512 + 8)), Some(vec![group]));
        assert_eq!(details(&volume(32, 8192, 1024)), Some(vec![]));
        assert_eq!(details(&volume(40, 4096, 1024)), None);
    }
}
