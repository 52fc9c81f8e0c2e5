//! Disks that are compressed as a whole: gzip, xz, Zstandard, bzip2 and LZ4 files.
//!
//! # On disk
//! A stream, of which the begin is unpacked and nothing else: a table, and what stands near it. The
//! length of the disk is in the index at the end of an xz file, in the header of a Zstandard frame,
//! in that of an LZ4 frame at will, and, modulo 4 GiB, at the end of a gzip file. bzip2 does not
//! have it.
//!
//! # Topology
//! Such a file carries a disk to where it is unpacked. The disk in it is judged as if it began
//! where the file does; the file itself is never off.
//!
//! # Limits
//! The first 4 MiB of the disk are unpacked. What lies behind them was not looked at, so that
//! nothing there is called aligned. Where nothing says how long a disk is, its table does; one
//! without a table is `unknown`. xz with other filters than LZMA2 or several streams, Zstandard
//! with a dictionary or several frames, and frames that do not say their length are `unknown`.
//!
//! # Sources
//! RFC 1952 (gzip); "The .xz File Format" 1.2.1, 2.1 Stream, 3.1 Block Header, 4 Index; RFC 8878
//! (Zstandard), 3.1.1 Frame Header; lz4 `lz4_Frame_format.md`, Frame Descriptor; bzip2 1.0.8
//! manual, for what follows a stream.

use super::container::{Container, NotFollowed};
use super::tar::archive;
use super::{Taste, gpt, mbr};
use crate::base::finding::{self, Finding, Severity};
use crate::base::topology::round_up;
use crate::format::FormatKind;
use crate::format::by_magic::by_magic;
use crate::mapping::pieces::{Pieces, Stored};
use crate::mapping::unpack::xz::{self, BlockFault};
use crate::probe::Probe;
use flate2::read::MultiGzDecoder;
use std::io::{self, Read};
use std::sync::Arc;
use zerocopy::FromBytes;

/// The class of gzip files, for the registry.
pub struct Gzip;
/// The class of xz files, for the registry.
pub struct Xz;
/// The class of Zstandard files, for the registry.
pub struct Zstd;
/// The class of bzip2 files, for the registry.
pub struct Bzip2;
/// The class of LZ4 files, for the registry.
pub struct Lz4;

/// Bytes of the smallest disk.
const SECTOR: usize = 512;
/// Bytes of a disk that are unpacked.
const PREFIX: usize = 4 << 20;
/// Bytes of a dictionary in which all that is unpacked has room.
const DICTIONARY: u32 = 8 << 20;
/// Bytes of the smallest dictionary.
const LEAST_DICTIONARY: u32 = 4096;
/// Bytes of a file from which they may be unpacked.
const MOST_READ: u64 = 16 << 20;
/// Bytes of the header of an xz stream, and of its footer.
const XZ_HEADER: u64 = 12;
const XZ_FOOTER: u64 = 12;
/// Most blocks of an xz file that is looked into: of 1 MiB each, a disk of 16 GiB.
const MOST_BLOCKS: usize = 16384;
/// Bytes of an xz index that are looked at.
const MOST_INDEX: u64 = 1 << 20;
/// Bytes of a file that are read at once.
const PIECE: usize = 64 << 10;
/// Modulus of the length at the end of a gzip file.
const GZIP_LENGTHS: u64 = 1 << 32;

/// Begin of the disk in a file, and its length.
struct Unpacked {
    bytes: Vec<u8>,
    length: u64,
}

impl Unpacked {
    /// The disk, of which what lies behind its begin was not looked at.
    fn disk(mut self, probe: &Probe<'_>) -> Option<Pieces> {
        self.bytes.truncate(usize::try_from(self.length).unwrap_or(usize::MAX));
        let here = self.bytes.len() as u64;
        let mut pieces = Pieces::new(probe.length(), 1);
        pieces.push(here, Stored::Here(self.bytes.into()))?;
        pieces.push(self.length - here, Stored::Unread)?;
        Some(pieces)
    }
}

/// A file as a stream of bytes.
struct Source<'a> {
    probe: &'a Probe<'a>,
    at: u64,
    /// The byte after the last one that is read.
    end: u64,
    piece: Vec<u8>,
    taken: usize,
}

impl<'a> Source<'a> {
    fn new(probe: &'a Probe<'a>, at: u64) -> Source<'a> {
        let end = probe.length().min(at.saturating_add(MOST_READ));
        Source { probe, at, end, piece: Vec::new(), taken: 0 }
    }
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.piece.len() {
            let size =
                usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(PIECE).min(PIECE);
            self.piece = vec![0; size];
            self.taken = 0;
            if size > 0 {
                self.probe.map(self.at, &mut self.piece).map_err(|_| io::ErrorKind::Other)?;
            }
            self.at += size as u64;
        }
        let rest = &self.piece[self.taken..];
        let size = rest.len().min(buffer.len());
        buffer[..size].copy_from_slice(&rest[..size]);
        self.taken += size;
        Ok(size)
    }
}

/// The first bytes of a stream, and whether it ended with them.
///
/// Errors: a stream that is damaged, or cut off, before that.
fn begin(mut stream: impl Read) -> Result<(Vec<u8>, bool), NotFollowed> {
    let (mut bytes, mut done) = (vec![0; PREFIX], 0);
    while done < PREFIX {
        match stream.read(&mut bytes[done..]) {
            Ok(0) => break,
            Ok(more) => done += more,
            Err(_) => return Err(NotFollowed("its stream is damaged, or cut off")),
        }
    }
    bytes.truncate(done);
    Ok((bytes, done < PREFIX))
}

/// The begin of a disk of so many bytes.
///
/// Errors: as [`begin`], and a stream that ends before that.
fn begin_of(length: u64, stream: impl Read) -> Result<Unpacked, NotFollowed> {
    let (bytes, _) = begin(stream)?;
    if (bytes.len() as u64) < length.min(PREFIX as u64) {
        return Err(NotFollowed("its stream is damaged, or cut off"));
    }
    Ok(Unpacked { bytes, length })
}

/// The least length in bytes of a disk that begins so, by the table at its front, or of an archive.
pub(super) fn least(disk: &[u8]) -> u64 {
    let mbr = || {
        let (record, _) = mbr::Record::read_from_prefix(disk).ok()?;
        let ends = record.used().map(|(_, entry)| entry.end()).filter(|_| record.is_signed());
        ends.max()?.checked_mul(SECTOR as u64)
    };
    // What lies in an archive is no table of it.
    archive::length_of(disk)
        .or_else(|| gpt::length_of(disk))
        .or_else(mbr)
        .unwrap_or_default()
        .max(disk.len() as u64)
}

fn gzip(probe: &Probe<'_>) -> Result<Unpacked, NotFollowed> {
    let (bytes, is_all) = begin(MultiGzDecoder::new(Source::new(probe, 0)))?;
    if is_all {
        let length = bytes.len() as u64;
        return Ok(Unpacked { bytes, length });
    }
    let last = probe.from_end(4).and_then(|at| probe.read::<zerocopy::little_endian::U32>(at));
    let length = u64::from(last.ok_or(NotFollowed("its end cannot be read"))?.get());
    let wanted = least(&bytes).saturating_sub(length);
    let length = round_up(wanted, GZIP_LENGTHS).and_then(|more| more.checked_add(length));
    Ok(Unpacked { bytes, length: length.unwrap_or(u64::MAX) })
}

fn zstd(probe: &Probe<'_>) -> Result<Unpacked, NotFollowed> {
    /// A header without any option, and a window of 8 MiB: of what is unpacked nothing lies further
    /// apart, whatever the frame's own header asks for.
    const HEADER: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, 0, 13 << 3];
    let head = probe.bytes(0, 18).ok_or(NotFollowed("its header is cut off"))?;
    let flags = head[4];
    let (single, dictionary, checked) = (flags & 0x20 != 0, flags & 3, flags & 0x18);
    if checked != 0 {
        return Err(NotFollowed("its header has features that are not known here"));
    }
    if dictionary != 0 {
        return Err(NotFollowed("it needs a dictionary"));
    }
    let at = 5 + usize::from(!single);
    let width = match (flags >> 6, single) {
        (0, true) => 1,
        (0, false) => return Err(NotFollowed("it does not say how long its disk is")),
        (1, _) => 2,
        (2, _) => 4,
        (_, _) => 8,
    };
    let mut number = [0; 8];
    number[..width].copy_from_slice(&head[at..at + width]);
    // A length of two bytes counts from 256.
    let length = u64::from_le_bytes(number) + if width == 2 { 256 } else { 0 };
    let blocks = Source::new(probe, (at + width) as u64);
    let stream = HEADER.as_slice().chain(blocks);
    let stream = ruzstd::decoding::StreamingDecoder::new(stream)
        .map_err(|_| NotFollowed("its first frame is damaged"))?;
    let unpacked = begin_of(length, stream)?;
    if least(&unpacked.bytes) > length {
        return Err(NotFollowed("its first frame is shorter than its disk: it may have several"));
    }
    Ok(unpacked)
}

/// The begin of a disk whose file does not say how long it is: as long as its table says.
///
/// Errors: as [`begin`], and a disk that goes on and has no table.
fn begin_of_table(stream: impl Read) -> Result<Unpacked, NotFollowed> {
    let (bytes, is_all) = begin(stream)?;
    let length = least(&bytes);
    if !is_all && length == bytes.len() as u64 {
        return Err(NotFollowed("it does not say how long its disk is"));
    }
    let length = if is_all { bytes.len() as u64 } else { length };
    Ok(Unpacked { bytes, length })
}

fn bzip2_file(probe: &Probe<'_>) -> Result<Unpacked, NotFollowed> {
    begin_of_table(bzip2::read::MultiBzDecoder::new(Source::new(probe, 0)))
}

fn lz4(probe: &Probe<'_>) -> Result<Unpacked, NotFollowed> {
    /// Flags of a frame that says its length, and of one that needs a dictionary.
    const HAS_LENGTH: u8 = 1 << 3;
    const HAS_DICTIONARY: u8 = 1;
    let head = probe.bytes(0, 14).ok_or(NotFollowed("its header is cut off"))?;
    let (flags, mut number) = (head[4], [0; 8]);
    if flags & HAS_DICTIONARY != 0 {
        return Err(NotFollowed("it needs a dictionary"));
    }
    let stream = lz4_flex::frame::FrameDecoder::new(Source::new(probe, 0));
    if flags & HAS_LENGTH == 0 {
        return begin_of_table(stream);
    }
    number.copy_from_slice(&head[6..14]);
    let unpacked = begin_of(u64::from_le_bytes(number), stream)?;
    if least(&unpacked.bytes) > unpacked.length {
        return Err(NotFollowed("its first frame is shorter than its disk: it may have several"));
    }
    Ok(unpacked)
}

fn xz_file(probe: &Probe<'_>) -> Result<Unpacked, NotFollowed> {
    let blocks = xz_index(probe)?;
    let length = blocks.iter().try_fold(0_u64, |sum, block| sum.checked_add(block.size));
    let (mut bytes, mut at) = (Vec::new(), XZ_HEADER);
    for block in &blocks {
        let left = (PREFIX - bytes.len()) as u64;
        if left == 0 {
            break;
        }
        let wanted = block.size.min(left);
        let mut unpacked = xz_block(probe, at, block.size)?.take(wanted);
        match unpacked.read_to_end(&mut bytes) {
            Ok(done) if done as u64 == wanted => {}
            _ => return Err(NotFollowed("its stream is damaged, or cut off")),
        }
        at += block.stored;
    }
    Ok(Unpacked { bytes, length: length.unwrap_or(u64::MAX) })
}

/// The contents, of `unpacked` bytes, of the block whose header is at `at`.
fn xz_block<'a>(
    probe: &'a Probe<'a>,
    at: u64,
    unpacked: u64,
) -> Result<impl Read + use<'a>, NotFollowed> {
    let damaged = NotFollowed("the header of a block is damaged");
    let size = xz::header_size(probe.bytes(at, 1).ok_or(damaged)?[0]).ok_or(damaged)?;
    let header = probe.bytes(at, size).ok_or(damaged)?;
    xz::require_lzma2(&header).map_err(|fault| match fault {
        BlockFault::Damaged => damaged,
        BlockFault::Filters => NotFollowed("its filters are not LZMA2 alone"),
    })?;
    // Of what is unpacked nothing lies further apart, whatever dictionary the header asks for.
    let dictionary =
        u32::try_from(unpacked).unwrap_or(DICTIONARY).clamp(LEAST_DICTIONARY, DICTIONARY);
    Ok(lzma_rust2::Lzma2Reader::new(Source::new(probe, at + size as u64), dictionary, None))
}

/// A block by the index of an xz file.
struct Block {
    /// Bytes of it in the file, to where the next one begins.
    stored: u64,
    /// Bytes that it unpacks to.
    size: u64,
}

/// The blocks by the index of an xz file.
///
/// Errors: an index that is damaged, and one that is not of all the file.
fn xz_index(probe: &Probe<'_>) -> Result<Vec<Block>, NotFollowed> {
    let (blocks, size) =
        xz_last_index(probe).ok_or(NotFollowed("its index, at the end, is damaged"))?;
    let stored = blocks.iter().try_fold(size, |sum, block| sum.checked_add(block.stored));
    let all = stored.and_then(|stored| stored.checked_add(XZ_HEADER + XZ_FOOTER));
    if all != Some(probe.length()) {
        return Err(NotFollowed("it has several streams, or something behind its stream"));
    }
    if blocks.len() > MOST_BLOCKS {
        return Err(NotFollowed("it has more blocks than are read"));
    }
    Ok(blocks)
}

/// The blocks by the index before the footer, and the bytes of that index.
fn xz_last_index(probe: &Probe<'_>) -> Option<(Vec<Block>, u64)> {
    let footer = probe.bytes(probe.from_end(XZ_FOOTER)?, 12)?;
    let (sum, rest) = footer.split_at(4);
    if rest.get(6..) != Some(b"YZ") || crc32fast::hash(&rest[..6]).to_le_bytes() != sum {
        return None;
    }
    let words = u32::from_le_bytes(rest.get(..4)?.try_into().ok()?);
    let size = (u64::from(words) + 1) * 4;
    let at = probe.from_end(XZ_FOOTER + size).filter(|_| size <= MOST_INDEX)?;
    let mut index = vec![0; usize::try_from(size).ok()?];
    probe.map(at, &mut index).ok()?;
    let (body, sum) = index.split_at(index.len() - 4);
    if body.first() != Some(&0) || crc32fast::hash(body).to_le_bytes() != sum {
        return None;
    }
    let mut rest = &body[1..];
    let mut blocks = Vec::new();
    for _ in 0..xz::variable(&mut rest)? {
        let stored = round_up(xz::variable(&mut rest)?, 4)?;
        blocks.push(Block { stored, size: xz::variable(&mut rest)? });
    }
    Some((blocks, size))
}

/// The contents of a file by the begin of them, as a way of packing unpacks it. A partition may
/// hold such a file too; that one is no disk.
fn contents(
    probe: &Probe<'_>,
    magic: &[u8],
    unpack: fn(&Probe<'_>) -> Result<Unpacked, NotFollowed>,
) -> Taste {
    if probe.kind().is_some() || !probe.has(0, magic) {
        return Taste::No;
    }
    match unpack(probe) {
        Ok(Unpacked { bytes, .. }) if bytes.len() < SECTOR => Taste::No,
        Ok(unpacked) => match unpacked.disk(probe) {
            Some(disk) => Taste::Geom(Arc::new(disk), Vec::new()),
            None => refused("its length is not one that a disk has"),
        },
        Err(NotFollowed(reason)) => refused(reason),
    }
}

fn refused(reason: &str) -> Taste {
    let message = format!("it is compressed, and not looked into: {reason}");
    Taste::Refused(vec![Finding::new(&finding::BLIND, Severity::Note, 0, message)])
}

impl Container for Gzip {
    const KIND: FormatKind = by_magic("gzip");

    fn look(&self, probe: &Probe<'_>) -> Taste {
        contents(probe, b"\x1f\x8b\x08", gzip)
    }
}

impl Container for Xz {
    const KIND: FormatKind = by_magic("xz");

    fn look(&self, probe: &Probe<'_>) -> Taste {
        contents(probe, b"\xfd7zXZ\0", xz_file)
    }
}

impl Container for Zstd {
    const KIND: FormatKind = by_magic("zstd");

    fn look(&self, probe: &Probe<'_>) -> Taste {
        contents(probe, b"\x28\xb5\x2f\xfd", zstd)
    }
}

impl Container for Bzip2 {
    const KIND: FormatKind = by_magic("bzip2");

    fn look(&self, probe: &Probe<'_>) -> Taste {
        // A digit follows, and the magic of a block.
        if !probe.has(4, b"1AY&SY") {
            return Taste::No;
        }
        contents(probe, b"BZh", bzip2_file)
    }
}

impl Container for Lz4 {
    const KIND: FormatKind = by_magic("lz4");

    fn look(&self, probe: &Probe<'_>) -> Taste {
        contents(probe, b"\x04\x22\x4d\x18", lz4)
    }
}
