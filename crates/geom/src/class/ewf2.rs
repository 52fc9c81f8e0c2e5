//! EWF 2, `.Ex01`: a disk as it was acquired for evidence, by EnCase 7 and those after it.
//!
//! # On disk
//! A header of 32 bytes, and little-endian sections, each with a descriptor of 64 bytes behind its
//! data that leads to the one before: the last one is at the end of the file, `done`, or `next`
//! where another file goes on. Texts say how large the disk and its chunks are; they are packed as
//! chunks are, by zlib or bzip2. Each sector table has the number of its first chunk, and of each
//! chunk its place, its length, and how it is stored: packed, as it is with an Adler-32 behind, or
//! as eight bytes in the table that it repeats.
//!
//! # Topology
//! Chunks lie at any offset: such a file carries a disk to where it is unpacked, and the disk in it
//! is judged as if it began where the file does.
//!
//! # Limits
//! Encrypted evidence is named, and not looked into; logical evidence (`Lx01`) is `unknown`. 32,768
//! sections, chunks of up to 16 MiB and tables without gaps are read. Hashes of sections and
//! checksums of chunks are not compared. What EnCase itself writes was not seen: libewf's files
//! were.
//!
//! # Sources
//! libewf "Expert Witness Compression Format version 2": Segment files, Section descriptor, Device
//! information, Case data, Sector data, Sector table, Serialized file object data, Bzip2.

use super::Taste;
use super::container::{BlockTable, Container, FILE, NotFollowed, Place};
use super::ewf::segment::{
    self, CUT_OFF, DAMAGED, DiskSizes, EMPTY, FEWER, LOGICAL, Looked, OTHER, Segment, checked,
    part_of,
};
use crate::base::ondisk::{Guid, on_disk};
use crate::format::{Format, FormatKind, Sign};
use crate::mapping::geom::{Extent, Packed, Packing};
use crate::mapping::tables::Tables;
use crate::probe::Probe;
use std::sync::Arc;
use zerocopy::FromBytes;
use zerocopy::little_endian::{U16, U32, U64};

/// The class and format, for the registry.
pub struct Ewf2;

/// The kind that libewf calls EWF2.
pub const KIND: FormatKind = FormatKind::new("ewf2", &Ewf2);

on_disk! {
    /// Header of a segment file.
    struct Header of 32 bytes {
         0 => signature: [u8; 8],
         8 => major_version: u8,
         9 => minor_version: u8,
        10 => compression_method: U16,
        12 => segment_number: U32,
        16 => set_identifier: Guid,
    }

    /// Descriptor of a section, behind its data.
    struct Descriptor of 64 bytes {
         0 => section_type: U32,
         4 => data_flags: U32,
         8 => previous_offset: U64,
        16 => data_size: U64,
        24 => descriptor_size: U32,
        28 => padding_size: U32,
        32 => integrity_hash: [u8; 16],
        48 => reserved: [u8; 12],
        60 => checksum: U32,
    }

    /// Begin of a sector table.
    struct Table of 20 bytes {
         0 => first_chunk: U64,
         8 => number_of_entries: U32,
        12 => padding: [u8; 4],
        16 => checksum: U32,
    }

    /// Entry of a sector table.
    struct ChunkEntry of 16 bytes {
         0 => offset: U64,
         8 => size: U32,
        12 => flags: U32,
    }
}

/// Magic of EWF 2, and that of logical evidence.
const EWF2: &[u8] = b"EVF2\x0d\x0a\x81\0";
const LOGICAL2: &[u8] = b"LEF2\x0d\x0a\x81\0";
/// Types of sections that are looked into.
const DEVICE: u32 = 1;
const CASE: u32 = 2;
const TABLE: u32 = 4;
const KEYS: u32 = 11;
const NEXT: u32 = 13;
const DONE: u32 = 15;
/// Data flag of a section that is encrypted.
const ENCRYPTED: u32 = 2;
/// Flags of a chunk: packed, and made of eight bytes that repeat.
const PACKED: u32 = 1;
const PATTERN: u32 = 4;
/// Bytes of a header, of a descriptor, and of what stands in a table before its entries.
const HEADER: u64 = size_of::<Header>() as u64;
const DESCRIPTOR: u64 = size_of::<Descriptor>() as u64;
const ENTRIES: u64 = 32;
/// Bytes of an entry.
const ENTRY: u64 = size_of::<ChunkEntry>() as u64;
/// Sections that are looked at.
const MOST_SECTIONS: usize = 32_768;
/// Bytes of a text that are read, packed, and that are made of it: EnCase writes up to 15 values of
/// 3000 characters.
const MOST_STORED: u64 = 64 << 10;
const MOST_TEXT: u64 = 256 << 10;

/// Part of the chunks that one sector table has.
struct Part {
    /// Number of its first chunk, on the whole disk.
    first: u64,
    count: u64,
    /// First byte of its entries.
    entries: u64,
}

/// Contents of the sections of a file.
struct Sections {
    goes_on: bool,
    /// Texts of the device and of the case, the last one of each.
    device: Option<String>,
    case: Option<String>,
    /// Tables in the order of their chunks.
    parts: Vec<Part>,
}

/// The method by which texts and chunks are packed; `None` for none.
fn packing(method: u16) -> Result<Option<Packing>, NotFollowed> {
    match method {
        0 => Ok(None),
        1 => Ok(Some(Packing::Zlib)),
        2 => Ok(Some(Packing::Bzip2)),
        _ => Err(NotFollowed("it is packed by a method that is not known")),
    }
}

/// The text in `size` bytes at `at`: UTF-16 with its byte order, packed.
fn text(
    probe: &Probe<'_>,
    (at, size): (u64, u64),
    packing: Option<Packing>,
) -> Result<String, NotFollowed> {
    let stored = usize::try_from(size.min(MOST_STORED)).map_err(|_| DAMAGED)?;
    let mut bytes = vec![0; stored];
    probe.map(at, &mut bytes).map_err(|_| CUT_OFF)?;
    if let Some(packing) = packing {
        bytes = packing.unpack_at_most(&bytes, MOST_TEXT).map_err(|_| DAMAGED)?;
    }
    let is_big = bytes.starts_with(&[0xfe, 0xff]);
    let pairs = bytes.chunks_exact(2).filter_map(|pair| <[u8; 2]>::try_from(pair).ok());
    let units = pairs.map(|pair| match is_big {
        true => u16::from_be_bytes(pair),
        false => u16::from_le_bytes(pair),
    });
    Ok(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}

/// The number that the object `main` of a text has for a tag.
fn number(text: &str, tag: &str) -> Option<u64> {
    let mut lines = text.split('\n').map(|line| line.trim_end_matches('\r'));
    let main = lines.find(|&line| line == "main");
    let (tags, values) = (lines.next()?, lines.next()?);
    let mut both = tags.split('\t').zip(values.split('\t')).filter(|_| main.is_some());
    both.find(|&(known, _)| known == tag)?.1.parse().ok()
}

/// The part of the chunks that a sector table of `size` bytes at `at` has.
fn part(probe: &Probe<'_>, at: u64, size: u64) -> Result<Part, NotFollowed> {
    let table = Table::read_from_bytes(&checked::<20>(probe, at)?).map_err(|_| DAMAGED)?;
    let count = u64::from(table.number_of_entries.get());
    let room = size.checked_sub(ENTRIES).ok_or(DAMAGED)?;
    if count.saturating_mul(ENTRY) > room {
        return Err(DAMAGED);
    }
    let entries = at.checked_add(ENTRIES).ok_or(DAMAGED)?;
    Ok(Part { first: table.first_chunk.get(), count, entries })
}

/// The sections of a file, from the last one to the first.
fn sections(probe: &Probe<'_>, packing: Option<Packing>) -> Result<Sections, NotFollowed> {
    let mut all = Sections { goes_on: false, device: None, case: None, parts: Vec::new() };
    let mut at = probe.length().checked_sub(DESCRIPTOR).ok_or(CUT_OFF)?;
    for nth in 0..MOST_SECTIONS {
        // Whatever a file that was cut ends with is no descriptor.
        let bytes = checked::<64>(probe, at).map_err(|e| if nth == 0 { CUT_OFF } else { e })?;
        let section = Descriptor::read_from_bytes(&bytes).map_err(|_| DAMAGED)?;
        let size = section.data_size.get();
        let body = at.checked_sub(size).filter(|&body| body >= HEADER).ok_or(DAMAGED)?;
        let kind = section.section_type.get();
        if section.data_flags.get() & ENCRYPTED != 0 || kind == KEYS {
            return Err(NotFollowed("it is encrypted"));
        }
        let data = || Some((body, size.checked_sub(section.padding_size.get().into())?));
        match kind {
            NEXT | DONE if nth == 0 => all.goes_on = kind == NEXT,
            _ if nth == 0 => return Err(CUT_OFF),
            DEVICE if all.device.is_none() => {
                all.device = Some(text(probe, data().ok_or(DAMAGED)?, packing)?);
            }
            CASE if all.case.is_none() => {
                all.case = Some(text(probe, data().ok_or(DAMAGED)?, packing)?);
            }
            TABLE => all.parts.push(part(probe, body, size)?),
            _ => {}
        }
        let before = section.previous_offset.get();
        if before == 0 {
            all.parts.reverse();
            return Ok(all);
        }
        if before.checked_add(DESCRIPTOR).is_none_or(|behind| behind > body) {
            return Err(DAMAGED);
        }
        at = before;
    }
    Err(NotFollowed("it has more sections than are looked at"))
}

/// The disk in a file with the magic of EWF 2, or its part of one.
///
/// Errors: the reason for which it is not looked for.
fn image(probe: &Probe<'_>) -> Looked<Chunks> {
    let header: Header = probe.read(0).ok_or(CUT_OFF)?;
    let (file, packing) = (header.segment_number.get(), packing(header.compression_method.get())?);
    let Sections { goes_on, device, case, mut parts } = sections(probe, packing)?;
    let say = |text: &Option<String>, tag| text.as_deref().and_then(|text| number(text, tag));
    let said = |text, tag| {
        say(text, tag).ok_or(NotFollowed("it does not say how large its disk and its chunks are"))
    };
    let disk = DiskSizes::new(said(&device, "ts")?, said(&device, "bp")?, said(&case, "sb")?)?;
    let (chunk, all) = (disk.chunk, disk.length.div_ceil(disk.chunk));
    let first = parts.first().ok_or(EMPTY)?.first;
    let mut end = first;
    for part in &mut parts {
        if part.first != end {
            return Err(NotFollowed("its tables have gaps, or chunks twice"));
        }
        end = end.checked_add(part.count).ok_or(DAMAGED)?;
        part.first -= first;
    }
    match (file, goes_on) {
        (0, _) => return Err(DAMAGED),
        (1, _) if first != 0 => return Err(OTHER),
        (2.., _) if first == 0 => return Err(OTHER),
        (_, false) if end < all => return Err(FEWER),
        (_, true) if end >= all => return Err(OTHER),
        _ => {}
    }
    let begin = first.checked_mul(chunk).filter(|&begin| begin < disk.length).ok_or(OTHER)?;
    let end = end.saturating_mul(chunk).min(disk.length);
    let length = end.checked_sub(begin).filter(|&length| length > 0).ok_or(OTHER)?;
    let table = Chunks { chunk, length, packing, parts: parts.into() };
    Ok(Segment::new((file, goes_on), header.set_identifier, &disk, (chunk, length), table))
}

/// The disk, or the reason for which it is not looked for, in a file of either magic.
fn found(probe: &Probe<'_>) -> Option<Looked<Chunks>> {
    if probe.has(0, EWF2) {
        return Some(image(probe));
    }
    probe.has(0, LOGICAL2).then_some(Err(LOGICAL))
}

impl Format for Ewf2 {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn unpack(&self) -> Option<&'static str> {
        Some(segment::UNPACK)
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        Some(segment::sign(found(probe)?, KIND, "Ex"))
    }
}

impl Container for Ewf2 {
    const KIND: FormatKind = KIND;

    fn look(&self, probe: &Probe<'_>) -> Taste {
        segment::taste(found(probe), probe)
    }
}

/// Places of the chunks that a file has.
#[derive(Clone)]
struct Chunks {
    /// Size of a chunk in bytes.
    chunk: u64,
    /// Length of what the file has of the disk in bytes: its last chunk may be shorter.
    length: u64,
    packing: Option<Packing>,
    /// Tables, whose first chunks count from that of the file.
    parts: Arc<[Part]>,
}

impl BlockTable for Chunks {
    fn block(&self) -> u64 {
        self.chunk
    }

    fn find(&self, nth: u64, length: u64, tables: &Tables<'_>) -> Result<Place, Extent> {
        let chunks = |part: &Part| (part.first, part.count);
        let Some((part, within)) = part_of(&self.parts, nth, chunks) else {
            return Ok(Place::Broken);
        };
        let at = within.checked_mul(ENTRY).and_then(|behind| part.entries.checked_add(behind));
        let at = at.ok_or(Extent::Fail { length })?;
        let bytes = tables.bytes::<16>(FILE, at, length)?;
        let left = nth.checked_mul(self.chunk).and_then(|begin| self.length.checked_sub(begin));
        let (Ok(entry), Some(left @ 1..)) = (ChunkEntry::read_from_bytes(&bytes), left) else {
            return Ok(Place::Broken);
        };
        let (size, stored) = (left.min(self.chunk), u64::from(entry.size.get()));
        let (offset, flags) = (entry.offset.get(), entry.flags.get());
        let packed = match (flags & PACKED != 0, flags & PATTERN != 0, self.packing) {
            (false, ..) if stored < size => return Ok(Place::Broken),
            (false, ..) => return Ok(Place::At(offset)),
            (true, true, _) if offset == 0 => return Ok(Place::Zero),
            // The entry's own first eight bytes.
            (true, true, _) => Packed { offset: at, stored: 8, size, packing: Packing::Repeated },
            (true, false, Some(packing)) => {
                // A stream that is longer than its chunk is not stored: so much is enough.
                let most = self.chunk + self.chunk / 64 + 1024;
                Packed { offset, stored: stored.min(most), size, packing }
            }
            (true, false, None) => return Ok(Place::Broken),
        };
        Ok(Place::Packed(packed, 0))
    }
}

#[cfg(test)]
mod tests;
