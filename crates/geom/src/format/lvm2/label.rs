//! Label of a physical volume, and the headers of its metadata areas.

use crate::base::ondisk::{self, on_disk};
use crate::probe::Probe;
use zerocopy::FromBytes;
use zerocopy::little_endian::{U32, U64};

const SECTOR: u64 = 512;
/// Initial value of LVM's CRC-32, instead of all ones.
const INITIAL_CRC: u32 = 0xf597_a6cf;
const FMTT_MAGIC: &[u8; 16] = b" LVM2 x[5A%r0N*>";
/// `MDA_HEADER_SIZE`: the circular buffer of text follows it.
pub const HEADER: u64 = 512;
/// `RAW_LOCN_IGNORED`: a metadata area that is kept empty or stale on purpose.
const IGNORED: u32 = 1;

on_disk! {
    /// `struct label_header`, then `struct pv_header` up to its lists.
    struct LabelHeader of 72 bytes {
         0 => id: [u8; 8],
         8 => sector_xl: U64,
        16 => crc_xl: U32,
        20 => offset_xl: U32,
        24 => r#type: [u8; 8],
        32 => pv_uuid: [u8; 32],
        64 => device_size_xl: U64,
    }
}

on_disk! {
    /// On-disk location of an area, `struct disk_locn`.
    #[derive(Clone, Copy)]
    struct DiskLocation of 16 bytes {
        0 => offset: U64,
        8 => size: U64,
    }
}

on_disk! {
    /// `struct mda_header` with its first `struct raw_locn`, the committed text.
    struct MdaHeader of 64 bytes {
         0 => checksum_xl: U32,
         4 => magic: [u8; 16],
        20 => version: U32,
        24 => start: U64,
        32 => size: U64,
        40 => raw_locn: DiskLocation,
        56 => checksum: U32,
        60 => flags: U32,
    }
}

/// Bytes of a physical volume that its label sets aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// First byte of the area.
    pub offset: u64,
    /// Length in bytes; 0 for "up to the end".
    pub size: u64,
}

/// A physical volume, by its label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Byte at which the label stands.
    pub at: u64,
    /// Identity as LVM's tools print it; `None` if it is no text.
    pub uuid: Option<String>,
    /// Size of the device in bytes when the label was written; 0 if it does not say.
    pub size: u64,
    /// Data areas, of which LVM2 writes one.
    pub data: Vec<Area>,
    /// Metadata areas, up to two.
    pub metadata: Vec<Area>,
}

/// The label in the first four sectors, with a good checksum; LVM takes the first.
pub fn find(probe: &Probe<'_>) -> Option<Label> {
    (0..4).find_map(|sector| label(probe, sector))
}

fn label(probe: &Probe<'_>, sector: u64) -> Option<Label> {
    let at = sector * SECTOR;
    if !probe.has(at, b"LABELONE") {
        return None;
    }
    let raw = probe.bytes(at, 512)?;
    let (label, lists) = LabelHeader::read_from_prefix(&raw).ok()?;
    let valid = label.r#type == *b"LVM2 001"
        && label.sector_xl.get() == sector
        && label.offset_xl.get() == 32;
    if !valid || crc(raw.get(20..)?) != label.crc_xl.get() {
        return None;
    }
    let (data, lists) = areas(lists);
    let (metadata, _) = areas(lists);
    let (uuid, size) = (grouped(&label.pv_uuid), label.device_size_xl.get());
    Some(Label { at, uuid, size, data, metadata })
}

/// LVM's CRC-32: the usual polynomial, another start, no final complement.
pub fn crc(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(!INITIAL_CRC);
    hasher.update(bytes);
    !hasher.finalize()
}

/// A list up to its zero pair, and what follows it. The sector bounds it.
fn areas(bytes: &[u8]) -> (Vec<Area>, &[u8]) {
    let (mut found, mut rest) = (Vec::new(), bytes);
    while let Ok((location, after)) = DiskLocation::read_from_prefix(rest) {
        rest = after;
        if location.offset.get() == 0 {
            break;
        }
        found.push(Area { offset: location.offset.get(), size: location.size.get() });
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

/// Header of a metadata area: the place of the committed text in its circular buffer.
pub struct Header {
    /// First byte of the area on the physical volume.
    pub start: u64,
    /// Length of the area in bytes, header included.
    pub size: u64,
    /// First byte of the text, counted from the start of the area.
    pub offset: u64,
    /// Length of the text in bytes; 0 if there is none.
    pub length: u64,
    /// Checksum of the text.
    pub checksum: u32,
    /// True for an area that LVM keeps but does not use.
    pub is_ignored: bool,
    /// True if the checksum of the header is good.
    pub is_sound: bool,
}

/// The header of the metadata area at `at`; `None` if there is none, or it says that it is
/// elsewhere.
pub fn header(probe: &Probe<'_>, at: u64) -> Option<Header> {
    let raw = probe.bytes(at, 512)?;
    let (area, _) = MdaHeader::read_from_prefix(&raw).ok()?;
    let valid = area.magic == *FMTT_MAGIC && area.version.get() == 1 && area.start.get() == at;
    valid.then(|| Header {
        start: at,
        size: area.size.get(),
        offset: area.raw_locn.offset.get(),
        length: area.raw_locn.size.get(),
        checksum: area.checksum.get(),
        is_ignored: area.flags.get() & IGNORED != 0,
        is_sound: raw.get(4..).is_some_and(|rest| crc(rest) == area.checksum_xl.get()),
    })
}

impl Header {
    /// The first bytes of the text, at most `most` of them, up to the end of the circular buffer;
    /// `None` if there is no text.
    pub fn head(&self, probe: &Probe<'_>, most: u64) -> Option<Vec<u8>> {
        let room = self.size.checked_sub(self.offset)?;
        let length = usize::try_from(self.length.min(room).min(most)).ok()?;
        if self.offset == 0 || length == 0 {
            return None;
        }
        probe.bytes(self.start.checked_add(self.offset)?, length)
    }

    /// The whole text, around the end of the circular buffer if it runs over it; `None` if it
    /// cannot be read, or the header contradicts itself.
    pub fn text(&self, probe: &Probe<'_>) -> Option<Vec<u8>> {
        let buffer = self.size.checked_sub(HEADER)?;
        if self.offset < HEADER || self.offset >= self.size || self.length > buffer {
            return None;
        }
        let mut text = self.head(probe, u64::MAX)?;
        let left = self.length.checked_sub(text.len() as u64)?;
        if left > 0 {
            let from = self.start.checked_add(HEADER)?;
            text.extend(probe.bytes(from, usize::try_from(left).ok()?)?);
        }
        Some(text)
    }
}
