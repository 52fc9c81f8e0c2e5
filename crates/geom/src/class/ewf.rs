//! EWF: a disk as it was acquired for evidence, by EnCase, FTK Imager, SMART or `ewfacquire`.
//!
//! # On disk
//! Little-endian sections one after another, each with its name, the byte at which the next one
//! begins, its length and an Adler-32. A `volume` has the size of the disk and of its chunks. Each
//! `table` has the places of some of the chunks, in their order: a zlib stream, or the bytes
//! themselves and an Adler-32 of them. The last section is `done`, or `next` where another file
//! goes on.
//!
//! # Topology
//! Chunks lie at any offset: such a file carries a disk to where it is unpacked, and the disk in it
//! is judged as if it began where the file does.
//!
//! # Limits
//! A disk in several files is joined where all of them are there. SMART's files behind the first do
//! not say how large a chunk is: it is as large as the first chunk of the file, of up to 1 MiB, and
//! files of two disks are told apart by their names alone. Logical evidence (`LVF`) is `unknown`;
//! EWF 2 (`Ex01`) is a class of its own. 8192 sections and chunks of up to 16 MiB are read.
//! Checksums of chunks are not compared; `table2`, a copy, is not read.
//!
//! # Sources
//! libewf "Expert Witness Compression Format (EWF)": Segment file header, Section, Volume section,
//! Table section; "Logical Evidence File", for its magic; libewf `libewf_chunk_group.c`, for
//! tables of more than 2 GiB.

use super::Taste;
use super::container::{BlockTable, Container, FILE, NotFollowed, Place};
use crate::base::ondisk::{Guid, on_disk};
use crate::format::{Format, FormatKind, Sign};
use crate::mapping::geom::{Extent, Packed, Packing};
use crate::mapping::tables::Tables;
use crate::probe::Probe;
use segment::{
    CUT_OFF, DAMAGED, DiskSizes, EMPTY, FEWER, Looked, OTHER, Segment, checked, part_of,
};
use std::sync::Arc;
use zerocopy::FromBytes;
use zerocopy::little_endian::{U16, U32, U64};

pub(super) mod segment;

/// The class and format, for the registry.
pub struct Ewf;

/// The kind that libewf calls EWF.
pub const KIND: FormatKind = FormatKind::new("ewf", &Ewf);

on_disk! {
    /// Header of a segment file.
    struct Header of 13 bytes {
         0 => signature: [u8; 8],
         8 => fields_start: u8,
         9 => segment_number: U16,
        11 => fields_end: U16,
    }

    /// Descriptor of a section.
    struct Section of 76 bytes {
         0 => name: [u8; 16],
        16 => next_offset: U64,
        24 => size: U64,
        32 => padding: [u8; 40],
        72 => checksum: U32,
    }

    /// Begin of a volume section.
    struct Volume of 80 bytes {
         0 => media_type: [u8; 4],
         4 => number_of_chunks: U32,
         8 => sectors_per_chunk: U32,
        12 => bytes_per_sector: U32,
        16 => number_of_sectors: U64,
        24 => geometry: [u8; 40],
        64 => set_identifier: Guid,
    }

    /// Begin of a table section.
    struct Table of 24 bytes {
         0 => number_of_entries: U32,
         4 => padding1: [u8; 4],
         8 => base_offset: U64,
        16 => padding2: [u8; 4],
        20 => checksum: U32,
    }
}

/// Magic of EWF, and that of logical evidence.
const EWF: &[u8] = b"EVF\x09\x0d\x0a\xff\0";
const LOGICAL: &[u8] = b"LVF\x09\x0d\x0a\xff\0";
/// Bytes of a descriptor.
const DESCRIPTOR: u64 = size_of::<Section>() as u64;
/// Sections that are looked at.
const MOST_SECTIONS: usize = 8192;
/// Bit of an entry whose chunk is compressed, and the first number that has no room beside it.
const COMPRESSED: u32 = 1 << 31;
/// Length in bytes of the volume section of SMART, whose number of sectors is of 32 bits.
const SMART: usize = 94;

/// Bytes up to which a chunk is unpacked to see how large it is.
const MOST_MEASURED: u64 = 1 << 20;

/// Sizes and identity that a volume section says.
struct VolumeSizes {
    disk: DiskSizes,
    set: Guid,
}

/// The sizes that a volume section at `at`, of `size` bytes, says.
fn volume(probe: &Probe<'_>, at: u64, size: u64) -> Result<VolumeSizes, NotFollowed> {
    let is_smart = size == SMART as u64;
    let bytes = match is_smart {
        true => checked::<SMART>(probe, at)?.to_vec(),
        false => checked::<1052>(probe, at)?.to_vec(),
    };
    let (volume, _) = Volume::read_from_prefix(&bytes).map_err(|_| DAMAGED)?;
    let mut sectors = volume.number_of_sectors.get();
    let mut set = volume.set_identifier;
    if is_smart {
        (sectors, set) = (sectors & 0xffff_ffff, Guid::default());
    }
    let (sector, of_chunk) = (volume.bytes_per_sector.get(), volume.sectors_per_chunk.get());
    let disk = DiskSizes::new(sectors, sector.into(), of_chunk.into())?;
    Ok(VolumeSizes { disk, set })
}

/// The part of the chunks that a table section at `at`, of `size` bytes behind its descriptor, has.
fn part(probe: &Probe<'_>, first: u64, at: u64, size: u64) -> Result<Part, NotFollowed> {
    let table = Table::read_from_bytes(&checked::<24>(probe, at)?).map_err(|_| DAMAGED)?;
    let (entries, base) = (at.checked_add(24).ok_or(DAMAGED)?, table.base_offset.get());
    let count = u64::from(table.number_of_entries.get());
    let behind = entries.checked_add(count * 4).ok_or(DAMAGED)?;
    let end = at.checked_add(size).filter(|&end| behind <= end).ok_or(DAMAGED)?;
    // SMART keeps chunks in the table section itself, others in front of it.
    let overflows = end.saturating_sub(base) > COMPRESSED.into();
    Ok(Part { first, count, entries, base, overflows, end })
}

/// The disk in a file with the magic of EWF, or its part of one.
///
/// Errors: the reason for which it is not looked for.
fn image(probe: &Probe<'_>) -> Looked<Chunks> {
    let header: Header = probe.read(0).ok_or(CUT_OFF)?;
    let number = header.segment_number.get();
    let (mut sizes, mut parts, mut count) = (None, Vec::new(), 0_u64);
    let mut at = size_of::<Header>() as u64;
    for _ in 0..MOST_SECTIONS {
        let section = Section::read_from_bytes(&checked::<76>(probe, at)?).map_err(|_| DAMAGED)?;
        let next = section.next_offset.get();
        let body = at.checked_add(DESCRIPTOR).ok_or(DAMAGED)?;
        let all = || section.size.get().checked_sub(DESCRIPTOR).ok_or(DAMAGED);
        let end = section.name.iter().position(|&byte| byte == 0).unwrap_or(section.name.len());
        match &section.name[..end] {
            // Of several that are there the first is right for the chunks behind it.
            b"volume" | b"disk" | b"data" if sizes.is_none() => {
                sizes = Some(volume(probe, body, all()?)?);
            }
            b"table" => {
                let part = part(probe, count, body, all()?)?;
                count = count.checked_add(part.count).ok_or(DAMAGED)?;
                parts.push(part);
            }
            name @ (b"next" | b"done") => {
                let file = (number, name == b"next");
                return match sizes {
                    Some(sizes) => own(file, &sizes, count, parts),
                    None if number > 1 && !parts.is_empty() => measured(probe, file, count, parts),
                    None => Err(NotFollowed("it does not say how large its disk is")),
                };
            }
            _ => {}
        }
        if next <= at {
            return Err(DAMAGED);
        }
        at = next;
    }
    Err(NotFollowed("it has more sections than are looked at"))
}

/// The part of a disk that the file `number` has in `count` chunks, and whether another goes on.
fn own(
    (number, goes_on): (u16, bool),
    VolumeSizes { disk, set }: &VolumeSizes,
    count: u64,
    parts: Vec<Part>,
) -> Looked<Chunks> {
    let (chunk, all) = (disk.chunk, disk.length.div_ceil(disk.chunk));
    let bytes = match (number, goes_on) {
        (0, _) => return Err(DAMAGED),
        (_, true) => Some(count).filter(|&count| count < all).and_then(|n| n.checked_mul(chunk)),
        (1, false) if count < all => return Err(FEWER),
        (1, false) => Some(disk.length),
        // The last chunk of the disk may be shorter.
        (_, false) => {
            let before = all.checked_sub(count).and_then(|before| before.checked_mul(chunk));
            before.and_then(|before| disk.length.checked_sub(before))
        }
    };
    let length = bytes.filter(|&bytes| bytes > 0).ok_or(OTHER)?;
    let table = Chunks { chunk, length, parts: parts.into() };
    Ok(Segment::new((number.into(), goes_on), *set, disk, (chunk, length), table))
}

/// The part of a disk that the file `number` of SMART has in `count` chunks: their sizes are those
/// of its first and its last one.
fn measured(
    probe: &Probe<'_>,
    (number, goes_on): (u16, bool),
    count: u64,
    parts: Vec<Part>,
) -> Looked<Chunks> {
    let (Some(first), Some(last)) = (parts.first(), parts.iter().rfind(|part| part.count > 0))
    else {
        return Err(EMPTY);
    };
    let (before, last) = (count.checked_sub(1).ok_or(OTHER)?, (last, last.count.saturating_sub(1)));
    let (chunk, end) = (measure(probe, first, 0)?, measure(probe, last.0, last.1)?);
    let length = before.checked_mul(chunk).and_then(|bytes| bytes.checked_add(end));
    let length = length.filter(|_| chunk > 0 && end > 0 && end <= chunk).ok_or(OTHER)?;
    let disk = DiskSizes { length, sector: 512, chunk };
    let table = Chunks { chunk, length, parts: parts.into() };
    let set = Guid::default();
    Ok(Segment::new((number.into(), goes_on), set, &disk, (chunk, length), table))
}

/// Size in bytes of the chunk `nth` of a table.
fn measure(probe: &Probe<'_>, part: &Part, nth: u64) -> Result<u64, NotFollowed> {
    let entry = |index: u64| -> Result<(u64, bool), NotFollowed> {
        let mut bytes = [0; 4];
        let at = index.checked_mul(4).and_then(|behind| part.entries.checked_add(behind));
        probe.map(at.ok_or(DAMAGED)?, &mut bytes).map_err(|_| CUT_OFF)?;
        let entry = u32::from_le_bytes(bytes);
        let place = part.base.checked_add(u64::from(entry & !COMPRESSED)).ok_or(DAMAGED)?;
        Ok((place, entry & COMPRESSED != 0))
    };
    let (place, is_packed) = entry(nth)?;
    let end = if nth + 1 < part.count { entry(nth + 1)?.0 } else { part.end };
    let stored = end.checked_sub(place).ok_or(DAMAGED)?;
    if !is_packed {
        // An Adler-32 follows the bytes.
        return stored.checked_sub(4).ok_or(DAMAGED);
    }
    let most = MOST_MEASURED.min(stored).min(probe.length().saturating_sub(place));
    let mut bytes = vec![0; usize::try_from(most).map_err(|_| DAMAGED)?];
    probe.map(place, &mut bytes).map_err(|_| CUT_OFF)?;
    let unpacked = Packing::Zlib.unpack_at_most(&bytes, MOST_MEASURED).map_err(|_| DAMAGED)?;
    Ok(unpacked.len() as u64)
}

/// The disk, or the reason for which it is not looked for, in a file of any of its magics.
fn found(probe: &Probe<'_>) -> Option<Looked<Chunks>> {
    if probe.has(0, EWF) {
        return Some(image(probe));
    }
    probe.has(0, LOGICAL).then_some(Err(segment::LOGICAL))
}

impl Format for Ewf {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn unpack(&self) -> Option<&'static str> {
        Some(segment::UNPACK)
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        Some(segment::sign(found(probe)?, KIND, "E"))
    }
}

impl Container for Ewf {
    const KIND: FormatKind = KIND;

    fn look(&self, probe: &Probe<'_>) -> Taste {
        segment::taste(found(probe), probe)
    }
}

/// Part of the chunks that one table section has.
struct Part {
    /// Number of its first chunk.
    first: u64,
    count: u64,
    /// First byte of its entries.
    entries: u64,
    /// Byte of the file from which they count.
    base: u64,
    /// True if its chunks may lie more than 2 GiB from there. From the first that does, entries are
    /// numbers of 32 bits, and no chunk is compressed: EnCase 6.7 and libewf have it so.
    overflows: bool,
    /// First byte behind its section.
    end: u64,
}

/// Places of the chunks of a disk.
#[derive(Clone)]
struct Chunks {
    /// Size of a chunk in bytes.
    chunk: u64,
    /// Length of the disk in bytes: its last chunk may be shorter.
    length: u64,
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
        let entry = |index: u64| {
            let at = index.checked_mul(4).and_then(|behind| part.entries.checked_add(behind));
            tables.bytes(FILE, at.ok_or(Extent::Fail { length })?, length).map(u32::from_le_bytes)
        };
        // Entries ascend: one whose number of 31 bits is less than the first is one of 32.
        let least = if part.overflows { entry(0)? & !COMPRESSED } else { 0 };
        let is_wide = |entry: u32| entry & !COMPRESSED < least;
        let place = |entry: u32| {
            let number = if is_wide(entry) { entry } else { entry & !COMPRESSED };
            part.base.checked_add(number.into())
        };
        let own = entry(within)?;
        let left = nth.checked_mul(self.chunk).and_then(|begin| self.length.checked_sub(begin));
        let (Some(offset), Some(left @ 1..)) = (place(own), left) else {
            return Ok(Place::Broken);
        };
        if own & COMPRESSED == 0 || is_wide(own) {
            return Ok(Place::At(offset));
        }
        // A stream that is longer than its chunk is not stored: so much is enough.
        let most = self.chunk + self.chunk / 256 + 64;
        let behind = if within + 1 < part.count { place(entry(within + 1)?) } else { None };
        let stored = behind.and_then(|behind| behind.checked_sub(offset)).unwrap_or(most);
        let (size, stored) = (left.min(self.chunk), stored.min(most));
        let packed = Packed { offset, stored, size, packing: Packing::Zlib };
        Ok(Place::Packed(packed, 0))
    }
}

#[cfg(test)]
mod tests;
