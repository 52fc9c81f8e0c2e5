//! UDIF, `.dmg`: a disk image of macOS that is packed by chunks.
//!
//! # On disk
//! The last 512 bytes are a big-endian trailer, `koly`: where chunks lie, and where a property list
//! is. That is XML, in which the array `blkx` has a table (`mish`, in base64) for each piece of the
//! disk. An entry of it is a chunk: its sectors, what packed it, and its bytes in the file.
//!
//! # Topology
//! Chunks lie at any offset: such a file carries a disk to where it is unpacked, and the disk in it
//! is judged as if it began where the file does.
//!
//! # Limits
//! Chunks of up to 16 MiB are read. Larger ones, and those that another way packed, are not looked
//! at, which a note says. A property list of up to 8 MiB is read: room for 140,000 chunks,
//! 34 GiB in those of 256 KiB. Images in several files, and those whose tables are in a resource
//! fork, are `unknown`; encrypted ones have another header. Checksums are not compared.
//!
//! # Sources
//! libmodi "Mac OS disk image types", Universal Disk Image Format, but for the place of a table's
//! entries; QEMU `block/dmg.c`, `dmg_read_mish_block`, for that, for what a chunk's place counts
//! from, and for types that are read as zeros.

use super::Taste;
use super::container::{Container, NotFollowed};
use crate::base::finding::{self, Finding, Severity};
use crate::base::ondisk::on_disk;
use crate::format::{Format, FormatKind, Inside, Sign};
use crate::mapping::geom::{Packed, Packing};
use crate::mapping::pieces::{Pieces, Stored};
use crate::probe::Probe;
use std::collections::BTreeMap;
use std::sync::Arc;
use zerocopy::FromBytes;
use zerocopy::big_endian::{U32, U64};

mod plist;

/// The class and format, for the registry.
pub struct Dmg;

/// The kind that QEMU calls `dmg`.
pub const KIND: FormatKind = FormatKind::new("dmg", &Dmg);

on_disk! {
    /// Trailer of the file, `UDIFResourceFile`.
    struct Trailer of 512 bytes {
          0 => signature: [u8; 4],
          4 => version: U32,
          8 => header_size: U32,
         12 => flags: U32,
         16 => running_data_fork_offset: U64,
         24 => data_fork_offset: U64,
         32 => data_fork_length: U64,
         40 => rsrc_fork_offset: U64,
         48 => rsrc_fork_length: U64,
         56 => segment_number: U32,
         60 => segment_count: U32,
         64 => segment_id: [u8; 16],
         80 => data_checksum: [u8; 136],
        216 => xml_offset: U64,
        224 => xml_length: U64,
        232 => reserved1: [u8; 120],
        352 => master_checksum: [u8; 136],
        488 => image_variant: U32,
        492 => sector_count: U64,
        500 => reserved2: [u8; 12],
    }

    /// Head of a table, `BLKXTable`.
    struct Table of 204 bytes {
          0 => signature: [u8; 4],
          4 => version: U32,
          8 => sector_number: U64,
         16 => sector_count: U64,
         24 => data_offset: U64,
         32 => buffers_needed: U32,
         36 => block_descriptors: U32,
         40 => reserved: [u8; 24],
         64 => checksum: [u8; 136],
        200 => number_of_chunks: U32,
    }

    /// Entry of a table, `BLKXChunkEntry`.
    struct Chunk of 40 bytes {
         0 => entry_type: U32,
         4 => comment: U32,
         8 => sector_number: U64,
        16 => sector_count: U64,
        24 => compressed_offset: U64,
        32 => compressed_length: U64,
    }
}

const SECTOR: u64 = 512;
/// Bytes of a property list that is read.
const MOST_PLIST: u64 = 8 << 20;
/// Bytes of the largest chunk that is unpacked, and of what one may be packed to.
const MOST_CHUNK: u64 = 16 << 20;
const MOST_STORED: u64 = 2 * MOST_CHUNK;
/// Types of chunks: zeros, bytes as they are, nothing of interest, a comment, the last entry.
const ZERO: u32 = 0;
const RAW: u32 = 1;
const IGNORE: u32 = 2;
const COMMENT: u32 = 0x7fff_fffe;
const END: u32 = 0xffff_ffff;
/// Types of chunks that are packed, and by what.
const PACKINGS: [(u32, &str, Packing); 5] = [
    (0x8000_0004, "ADC", Packing::Adc),
    (0x8000_0005, "zlib", Packing::Zlib),
    (0x8000_0006, "bzip2", Packing::Bzip2),
    (0x8000_0007, "LZFSE", Packing::Lzfse),
    (0x8000_0008, "LZMA", Packing::Xz),
];

const UNTRUE: NotFollowed = NotFollowed("its chunks are not of the size that it says");

/// The trailer of a whole disk, and its first byte.
fn found(probe: &Probe<'_>) -> Option<(u64, Trailer)> {
    let at = probe.from_end(size_of::<Trailer>() as u64).filter(|_| probe.kind().is_none())?;
    let trailer: Trailer = probe.has(at, b"koly").then(|| probe.read(at))??;
    (trailer.header_size.get() == 512).then_some((at, trailer))
}

/// Disk of a file, by its chunks.
struct Image {
    pieces: Pieces,
    /// Chunks that are not read, by what packed them.
    unread: BTreeMap<&'static str, usize>,
    chunks: usize,
}

impl Trailer {
    /// Length of the disk in bytes.
    fn length(&self) -> Option<u64> {
        self.sector_count.get().checked_mul(SECTOR)
    }

    /// The disk by the tables in the property list.
    ///
    /// Errors: the reason for which it is not looked for.
    fn image(&self, probe: &Probe<'_>) -> Result<Image, NotFollowed> {
        if self.version.get() != 4 {
            return Err(NotFollowed("its version is not known here"));
        }
        if self.segment_count.get() > 1 {
            return Err(NotFollowed("it is one of several segments, which are not joined here"));
        }
        let size = self.xml_length.get();
        if size == 0 {
            return Err(NotFollowed("its tables are in a resource fork, which is not read here"));
        }
        if size > MOST_PLIST {
            return Err(NotFollowed("its tables are larger than are looked at"));
        }
        let mut xml = vec![0; usize::try_from(size).unwrap_or_default()];
        probe.map(self.xml_offset.get(), &mut xml).map_err(|_| NotFollowed("it is cut off"))?;
        let tables = plist::tables(&xml).ok_or(NotFollowed("its property list is damaged"))?;
        drop(xml);
        let length = self.length().filter(|&length| length > 0).ok_or(UNTRUE)?;
        let mut image = Image {
            pieces: Pieces::new(probe.length(), SECTOR),
            unread: BTreeMap::new(),
            chunks: 0,
        };
        let mut chunks = Vec::new();
        for table in tables {
            self.read(&table, &mut image, &mut chunks)?;
        }
        chunks.sort_by_key(|(first, ..)| *first);
        for (first, size, place) in chunks {
            // What no table has is not looked at either.
            let gap = first.checked_sub(image.pieces.length()).ok_or(UNTRUE)?;
            image.pieces.push(gap, Stored::Unread).ok_or(UNTRUE)?;
            image.pieces.push(size, place).ok_or(UNTRUE)?;
        }
        let rest = length.checked_sub(image.pieces.length()).ok_or(UNTRUE)?;
        image.pieces.push(rest, Stored::Unread).ok_or(UNTRUE)?;
        Ok(image)
    }

    /// Appends the chunks of one table: first byte on the disk, length, and place.
    fn read(
        &self,
        table: &[u8],
        image: &mut Image,
        chunks: &mut Vec<(u64, u64, Stored)>,
    ) -> Result<(), NotFollowed> {
        let damaged = NotFollowed("a table of its chunks is damaged");
        let (head, entries) = Table::read_from_prefix(table).map_err(|_| damaged)?;
        if head.signature != *b"mish" || head.version.get() != 1 {
            return Err(damaged);
        }
        let count = usize::try_from(head.number_of_chunks.get()).map_err(|_| damaged)?;
        let entries = entries.as_chunks::<{ size_of::<Chunk>() }>().0;
        for entry in entries.get(..count).ok_or(damaged)? {
            let chunk = Chunk::read_from_bytes(entry).map_err(|_| damaged)?;
            let kind = chunk.entry_type.get();
            if kind == END {
                break;
            }
            let bytes = |sectors: u64| sectors.checked_mul(SECTOR).ok_or(UNTRUE);
            let size = bytes(chunk.sector_count.get())?;
            if kind == COMMENT || size == 0 {
                continue;
            }
            let sector = head.sector_number.get().checked_add(chunk.sector_number.get());
            let first = bytes(sector.ok_or(UNTRUE)?)?;
            let place = self.data_fork_offset.get().checked_add(head.data_offset.get());
            let place = place.and_then(|at| at.checked_add(chunk.compressed_offset.get()));
            let (offset, stored) = (place.ok_or(UNTRUE)?, chunk.compressed_length.get());
            let is_small = size <= MOST_CHUNK && stored <= MOST_STORED;
            let packing = PACKINGS.iter().find(|(other, ..)| *other == kind);
            let place = match (kind, packing) {
                (ZERO | IGNORE, _) => Stored::Fill([0; 4]),
                (RAW, _) if stored == size => Stored::At(offset),
                (RAW, _) => return Err(UNTRUE),
                (_, Some(&(.., packing))) if is_small => {
                    Stored::Packed(Packed { offset, stored, size, packing })
                }
                (_, large) => {
                    let name = large.map_or("an unknown way", |(_, name, _)| name);
                    *image.unread.entry(name).or_default() += 1;
                    Stored::Unread
                }
            };
            image.chunks += 1;
            chunks.push((first, size, place));
        }
        Ok(())
    }
}

impl Format for Dmg {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn unpack(&self) -> Option<&'static str> {
        Some("unpack it with hdiutil convert -format UDTO, or qemu-img convert -O raw")
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        let (at, trailer) = found(probe)?;
        let mut sign = Sign::new(KIND, at);
        sign.version = Some(trailer.version.to_string());
        sign.inside = match trailer.image(probe) {
            Ok(_) => Inside::Container,
            Err(NotFollowed(reason)) => Inside::Unknown(reason),
        };
        sign.details.extend(trailer.length().map(|size| ("virtual size", size.to_string())));
        Some(sign)
    }
}

impl Container for Dmg {
    const KIND: FormatKind = KIND;

    fn look(&self, probe: &Probe<'_>) -> Taste {
        let Some(Ok(image)) = found(probe).map(|(_, trailer)| trailer.image(probe)) else {
            return Taste::No;
        };
        let mut findings = Vec::new();
        if !image.unread.is_empty() {
            let packed: Vec<String> =
                image.unread.iter().map(|(name, count)| format!("{count} by {name}")).collect();
            let message = format!(
                "of its {} chunks some are packed in ways that are not read here ({}): what lies in them is not looked at",
                image.chunks,
                packed.join(", ")
            );
            let note = Finding::new(&finding::BLIND, Severity::Note, 0, message);
            findings.push(note.fix("convert it: hdiutil convert -format UDZO"));
        }
        Taste::Geom(Arc::new(image.pieces), findings)
    }
}

#[cfg(test)]
mod tests;
