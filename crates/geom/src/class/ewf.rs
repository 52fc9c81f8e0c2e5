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
//! A disk in several files is joined where all of them are there; SMART's files behind the first do
//! not say how large a chunk is, and are not. Logical evidence (`LVF`) and EWF 2 (`Ex01`) are
//! `unknown`. 8192 sections and chunks of up to 16 MiB are read. Checksums of chunks are not
//! compared; `table2`, a copy, is not read.
//!
//! # Sources
//! libewf "Expert Witness Compression Format (EWF)": Segment file header, Section, Volume section,
//! Table section; "Expert Witness Compression Format 2" and "Logical Evidence File", for their
//! magics; libewf `libewf_chunk_group.c`, for tables of more than 2 GiB.

use super::Taste;
use super::container::{BlockTable, Container, Contents, FILE, Home, NotFollowed, Parent, Place};
use crate::base::ondisk::{Guid, on_disk};
use crate::base::topology::{Topology, Translation};
use crate::format::{Format, FormatKind, Inside, Reference, Sign};
use crate::mapping::geom::{Extent, Geom, Op, Packed, Packing, Slot};
use crate::mapping::tables::Tables;
use crate::probe::Probe;
use std::sync::Arc;
use zerocopy::FromBytes;
use zerocopy::little_endian::{U16, U32, U64};

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

/// Magics of EWF, and of its relatives, which have other sections.
const EWF: &[u8] = b"EVF\x09\x0d\x0a\xff\0";
const OTHERS: [(&[u8], &str); 3] = [
    (b"LVF\x09\x0d\x0a\xff\0", "it is logical evidence: files, and no disk"),
    (b"LEF2\x0d\x0a\x81\0", "it is logical evidence: files, and no disk"),
    (b"EVF2\x0d\x0a\x81\0", "its version, EWF 2, is not read here"),
];
/// Bytes of a descriptor.
const DESCRIPTOR: u64 = size_of::<Section>() as u64;
/// Sections that are looked at.
const MOST_SECTIONS: usize = 8192;
/// Bytes of the largest chunk that is unpacked.
const MOST_CHUNK: u64 = 16 << 20;
/// Sizes of a sector in bytes.
const SECTORS: std::ops::RangeInclusive<u64> = 512..=4096;
/// Bit of an entry whose chunk is compressed, and the first number that has no room beside it.
const COMPRESSED: u32 = 1 << 31;
/// Length in bytes of the volume section of SMART, whose number of sectors is of 32 bits.
const SMART: usize = 94;

const CUT_OFF: NotFollowed = NotFollowed("it is cut off");
/// Reason for which a file that is not the first is no disk.
const FURTHER: &str = "it is a further segment of a disk, which begins in another file";
const DAMAGED: NotFollowed = NotFollowed("a section of it is damaged");

/// Adler-32 as RFC 1950 has it, which every structure here ends with.
fn adler32(bytes: &[u8]) -> u32 {
    let (low, high) = bytes.iter().fold((1_u32, 0), |(low, high), &byte| {
        let low = (low + u32::from(byte)) % 65521;
        (low, (high + low) % 65521)
    });
    high << 16 | low
}

/// `N` bytes at `at`, of which the last four are the Adler-32 of the others.
///
/// Errors: a file that ends before, and another checksum.
fn checked<const N: usize>(probe: &Probe<'_>, at: u64) -> Result<[u8; N], NotFollowed> {
    let mut bytes = [0; N];
    probe.map(at, &mut bytes).map_err(|_| CUT_OFF)?;
    let (body, sum) = bytes.split_at(N.saturating_sub(4));
    if sum != adler32(body).to_le_bytes() {
        return Err(DAMAGED);
    }
    Ok(bytes)
}

/// Disk as a file has it, or its part of one.
struct Image {
    /// Number of the file, from 1.
    number: u16,
    /// True if another file goes on.
    goes_on: bool,
    /// Identity of the set of files, nil where the format has none.
    set: Guid,
    /// Length of the whole disk in bytes.
    length: u64,
    /// Size of a sector in bytes.
    sector: u64,
    /// The chunks of this file.
    chunks: Chunks,
}

impl Image {
    /// Identity of the file `number` of this set.
    fn identity(&self, number: u16) -> String {
        format!("{}/{number}", self.set)
    }

    /// The file that goes on, if there is one.
    fn next(&self) -> Option<Reference> {
        let number = self.number.checked_add(1).filter(|_| self.goes_on)?;
        // From the hundredth file on they have letters.
        let ending = match number.checked_sub(100) {
            None => format!("E{number:02}"),
            Some(more) => format!("E{}{}", letter(more / 26), letter(more)),
        };
        Some(Reference {
            role: "next segment",
            name: format!("*.{ending}"),
            format: Some(KIND.name.into()),
            identity: Some(self.identity(number)),
        })
    }

    /// The disk, or the part of one that the file and those behind it have.
    fn contents(self, file: u64) -> Arc<dyn Geom> {
        let (goes_on, whole) = (self.goes_on, self.length);
        let own = Contents {
            length: self.chunks.length,
            home: Home::File(file),
            parent: Parent::None,
            sector: Some(self.sector),
            translation: Translation::transport(self.chunks.chunk),
            table: self.chunks,
        };
        if !goes_on {
            return Arc::new(own);
        }
        let length = if self.number == 1 { whole } else { own.length };
        Arc::new(Segment { own, rest: None, is_first: self.number == 1, length })
    }
}

/// The letter `nth` of the alphabet, which begins anew behind Z.
fn letter(nth: u16) -> char {
    u8::try_from(nth % 26).map_or('A', |nth| char::from(b'A' + nth))
}

/// Sizes that a volume section says.
struct Size {
    sector: u64,
    chunk: u64,
    length: u64,
    set: Guid,
    /// True for SMART, which says this in the first of its files alone.
    is_smart: bool,
}

/// The sizes that a volume section at `at`, of `size` bytes, says.
fn volume(probe: &Probe<'_>, at: u64, size: u64) -> Result<Size, NotFollowed> {
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
    let sector = u64::from(volume.bytes_per_sector.get());
    let chunk = u64::from(volume.sectors_per_chunk.get()) * sector;
    let length = sectors.checked_mul(sector).filter(|&length| length > 0);
    let length = length.ok_or(NotFollowed("its size cannot be true"))?;
    if !sector.is_power_of_two() || !SECTORS.contains(&sector) {
        return Err(NotFollowed("its sectors are of a size that disks do not have"));
    }
    if chunk == 0 || chunk > MOST_CHUNK {
        return Err(NotFollowed("its chunks are empty, or larger than are unpacked"));
    }
    Ok(Size { sector, chunk, length, set, is_smart })
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
    Ok(Part { first, count, entries, base, overflows })
}

/// The disk in a file with the magic of EWF, or its part of one.
///
/// Errors: the reason for which it is not looked for.
fn image(probe: &Probe<'_>) -> Result<Image, NotFollowed> {
    let header: Header = probe.read(0).ok_or(CUT_OFF)?;
    let number = header.segment_number.get();
    let (mut size, mut parts, mut count) = (None, Vec::new(), 0_u64);
    let mut at = size_of::<Header>() as u64;
    for _ in 0..MOST_SECTIONS {
        let section = Section::read_from_bytes(&checked::<76>(probe, at)?).map_err(|_| DAMAGED)?;
        let next = section.next_offset.get();
        let body = at.checked_add(DESCRIPTOR).ok_or(DAMAGED)?;
        let all = || section.size.get().checked_sub(DESCRIPTOR).ok_or(DAMAGED);
        let end = section.name.iter().position(|&byte| byte == 0).unwrap_or(section.name.len());
        match &section.name[..end] {
            // Of several that are there the first is right for the chunks behind it.
            b"volume" | b"disk" | b"data" if size.is_none() => {
                size = Some(volume(probe, body, all()?)?);
            }
            b"table" => {
                let part = part(probe, count, body, all()?)?;
                count = count.checked_add(part.count).ok_or(DAMAGED)?;
                parts.push(part);
            }
            name @ (b"next" | b"done") => {
                let size = size.ok_or(NotFollowed("it does not say how large its disk is"))?;
                return own((number, name == b"next"), size, count, parts);
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
    size: Size,
    count: u64,
    parts: Vec<Part>,
) -> Result<Image, NotFollowed> {
    let fewer = NotFollowed("its tables have fewer chunks than its disk");
    let (chunk, all) = (size.chunk, size.length.div_ceil(size.chunk));
    let bytes = match (number, goes_on) {
        (0, _) => return Err(DAMAGED),
        (_, true) if size.is_smart => {
            return Err(NotFollowed("its further segments do not say how large a chunk is"));
        }
        (_, true) => Some(count).filter(|&count| count < all).and_then(|n| n.checked_mul(chunk)),
        (1, false) if count < all => return Err(fewer),
        (1, false) => Some(size.length),
        // The last chunk of the disk may be shorter.
        (_, false) => {
            let before = all.checked_sub(count).and_then(|before| before.checked_mul(chunk));
            before.and_then(|before| size.length.checked_sub(before))
        }
    };
    let length = bytes.filter(|&bytes| bytes > 0);
    let length = length.ok_or(NotFollowed("its tables have other chunks than its disk"))?;
    Ok(Image {
        number,
        goes_on,
        set: size.set,
        length: size.length,
        sector: size.sector,
        chunks: Chunks { chunk, length, parts: parts.into() },
    })
}

/// The disk, or the reason for which it is not looked for, in a file of any of its magics.
fn found(probe: &Probe<'_>) -> Option<Result<Image, NotFollowed>> {
    if probe.has(0, EWF) {
        return Some(image(probe));
    }
    let other = OTHERS.iter().find(|(magic, _)| probe.has(0, magic));
    other.map(|(_, reason)| Err(NotFollowed(reason)))
}

impl Format for Ewf {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn unpack(&self) -> Option<&'static str> {
        Some("unpack it with ewfexport -f raw")
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        let found = found(probe)?;
        let mut sign = Sign::new(KIND, 0);
        match found {
            Ok(image) => {
                sign.inside = match image.number {
                    1 => Inside::Container,
                    _ => Inside::Unknown(FURTHER),
                };
                sign.identity = Some(image.identity(image.number));
                sign.references.extend(image.next());
                sign.details.push(("virtual size", image.length.to_string()));
                sign.details.push(("cluster size", image.chunks.chunk.to_string()));
                sign.details.push(("segment", image.number.to_string()));
            }
            Err(NotFollowed(reason)) => sign.inside = Inside::Unknown(reason),
        }
        Some(sign)
    }
}

impl Container for Ewf {
    const KIND: FormatKind = KIND;

    fn look(&self, probe: &Probe<'_>) -> Taste {
        match found(probe) {
            Some(Ok(image)) => Taste::Geom(image.contents(probe.length()), Vec::new()),
            _ => Taste::No,
        }
    }
}

/// Part of a disk that a file has, and what the files behind it have.
#[derive(Clone)]
struct Segment {
    own: Contents<Chunks>,
    /// Bytes of the files behind it, which are consumer 1; `None` while they are not here.
    rest: Option<u64>,
    is_first: bool,
    length: u64,
}

impl Geom for Segment {
    fn providers(&self) -> Vec<Slot> {
        vec![Slot { name: String::new(), length: self.length, kind: None }]
    }

    fn topology(&self, slot: usize, below: &[Topology]) -> Topology {
        Topology { length: self.length, ..self.own.topology(slot, below) }
    }

    fn map(&self, slot: usize, offset: u64, length: u64, op: Op) -> Extent {
        self.map_by(slot, offset, length, op, &Tables::NONE)
    }

    fn map_by(&self, slot: usize, offset: u64, length: u64, op: Op, tables: &Tables<'_>) -> Extent {
        let own = self.own.length;
        match (own.checked_sub(offset), offset.checked_sub(own)) {
            (Some(here @ 1..), _) => self.own.map_by(slot, offset, length.min(here), op, tables),
            (_, Some(offset)) if op == Op::Read => {
                match self.rest.and_then(|rest| rest.checked_sub(offset)) {
                    Some(left @ 1..) => {
                        Extent::At { consumer: 1, offset, length: length.min(left) }
                    }
                    _ => Extent::Fail { length },
                }
            }
            _ => Extent::ReadOnly { length },
        }
    }

    fn read_only(&self, slot: usize) -> Option<&'static str> {
        self.own.read_only(slot)
    }

    fn over(&self, lengths: &[u64]) -> Option<Arc<dyn Geom>> {
        let rest = *lengths.first()?;
        let length = match self.is_first {
            true => self.length,
            false => self.own.length.checked_add(rest)?,
        };
        Some(Arc::new(Segment { rest: Some(rest), length, ..self.clone() }))
    }

    fn translation(&self) -> Option<&Translation> {
        self.own.translation()
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
        let next = self.parts.partition_point(|part| part.first <= nth);
        let part = next.checked_sub(1).and_then(|last| self.parts.get(last));
        let within = part.and_then(|part| Some((part, nth.checked_sub(part.first)?)));
        let Some((part, within)) = within.filter(|(part, within)| *within < part.count) else {
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
