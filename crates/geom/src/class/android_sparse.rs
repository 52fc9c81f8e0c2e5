//! Android's sparse images: what `fastboot` and build tools hand to a phone's flash.
//!
//! # On disk
//! Little-endian header at byte 0, then chunks one after another, each behind a header of its own:
//! raw blocks, one word for all of them, blocks that nothing is known of, or a checksum.
//!
//! # Topology
//! Blocks lie behind headers of 12 bytes, so at any offset; the image is unpacked onto a disk, and
//! judged as if it began where the file does.
//!
//! # Limits
//! Of more than 16384 chunks the others are not looked at. Checksums are not compared.
//!
//! # Sources
//! AOSP `system/core/libsparse/sparse_format.h`; `sparse_read.cpp`, for what is refused.

use super::Taste;
use super::container::{Container, NotFollowed};
use crate::base::ondisk::on_disk;
use crate::format::{Format, FormatKind, Inside, Sign};
use crate::mapping::pieces::{Pieces, Stored};
use crate::probe::Probe;
use std::sync::Arc;
use zerocopy::FromBytes;
use zerocopy::little_endian::{U16, U32};

/// The class and format, for the registry.
pub struct AndroidSparse;

/// The kind that AOSP's tools call an Android sparse image.
pub const KIND: FormatKind = FormatKind::new("android_sparse", &AndroidSparse);

on_disk! {
    /// Header of the file, `sparse_header_t`.
    struct Header of 28 bytes {
         0 => magic: U32,
         4 => major_version: U16,
         6 => minor_version: U16,
         8 => file_hdr_sz: U16,
        10 => chunk_hdr_sz: U16,
        12 => blk_sz: U32,
        16 => total_blks: U32,
        20 => total_chunks: U32,
        24 => image_checksum: U32,
    }

    /// Header of a chunk, `chunk_header_t`.
    struct Chunk of 12 bytes {
        0 => chunk_type: U16,
        2 => reserved1: U16,
        4 => chunk_sz: U32,
        8 => total_sz: U32,
    }
}

/// Magic at byte 0, `SPARSE_HEADER_MAGIC`.
const MAGIC: u32 = 0xed26_ff3a;
/// `CHUNK_TYPE_RAW`, `CHUNK_TYPE_FILL`, `CHUNK_TYPE_DONT_CARE`, `CHUNK_TYPE_CRC32`.
const RAW: u16 = 0xcac1;
const FILL: u16 = 0xcac2;
const DONT_CARE: u16 = 0xcac3;
const CRC32: u16 = 0xcac4;
/// Chunks that are looked at.
const MOST_CHUNKS: u32 = 16384;

/// The header on a provider, where it is of a version that is known here.
fn found(probe: &Probe<'_>) -> Option<Header> {
    let header: Header = probe.read(0)?;
    (header.magic.get() == MAGIC && header.major_version.get() == 1).then_some(header)
}

impl Header {
    /// Size of a block in bytes.
    fn block(&self) -> u64 {
        self.blk_sz.get().into()
    }

    /// Length of the disk in bytes.
    fn length(&self) -> u64 {
        self.block() * u64::from(self.total_blks.get())
    }

    /// The disk by its chunks, as far as they are looked at.
    ///
    /// Errors: a chunk that cannot be, or is not there.
    fn pieces(&self, probe: &Probe<'_>) -> Result<Pieces, NotFollowed> {
        let (head, chunk_head) = (self.file_hdr_sz.get(), self.chunk_hdr_sz.get());
        if usize::from(head) < size_of::<Header>() || usize::from(chunk_head) < size_of::<Chunk>() {
            return Err(NotFollowed("its headers are shorter than headers are"));
        }
        if self.blk_sz.get() == 0 || !self.blk_sz.get().is_multiple_of(4) {
            return Err(NotFollowed("its blocks are no whole words"));
        }
        let untrue = NotFollowed("its chunks are not of the size that it says");
        let mut pieces = Pieces::new(probe.length(), self.block());
        let mut at = u64::from(head);
        for _ in 0..self.total_chunks.get().min(MOST_CHUNKS) {
            let mut bytes = [0; size_of::<Chunk>()];
            probe.map(at, &mut bytes).map_err(|_| NotFollowed("it is cut off"))?;
            let chunk = Chunk::read_from_bytes(&bytes).map_err(|_| untrue)?;
            let size = u64::from(chunk.chunk_sz.get()) * self.block();
            let (data, all) = (at + u64::from(chunk_head), u64::from(chunk.total_sz.get()));
            let (length, stored, place) = match chunk.chunk_type.get() {
                RAW => (size, size, Stored::At(data)),
                FILL => {
                    let mut word = [0; 4];
                    probe.map(data, &mut word).map_err(|_| NotFollowed("it is cut off"))?;
                    (size, 4, Stored::Fill(word))
                }
                // A disk that was erased before has zeros there.
                DONT_CARE => (size, 0, Stored::Fill([0; 4])),
                CRC32 => (0, 4, Stored::Unread),
                _ => return Err(NotFollowed("it has a chunk of a type that is not known here")),
            };
            if all != stored + u64::from(chunk_head) {
                return Err(untrue);
            }
            pieces.push(length, place).ok_or(untrue)?;
            at += all;
        }
        let left = self.length().checked_sub(pieces.length()).ok_or(untrue)?;
        if left > 0 && self.total_chunks.get() <= MOST_CHUNKS {
            return Err(untrue);
        }
        pieces.push(left, Stored::Unread).ok_or(untrue)?;
        Ok(pieces)
    }
}

impl Format for AndroidSparse {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn unpack(&self) -> Option<&'static str> {
        Some("unpack it with simg2img")
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        let header = found(probe)?;
        let mut sign = Sign::new(KIND, 0);
        let (major, minor) = (header.major_version, header.minor_version);
        sign.version = Some(format!("{major}.{minor}"));
        sign.inside = match header.pieces(probe) {
            Ok(_) => Inside::Container,
            Err(NotFollowed(reason)) => Inside::Unknown(reason),
        };
        sign.details.push(("virtual size", header.length().to_string()));
        sign.details.push(("cluster size", header.block().to_string()));
        Some(sign)
    }
}

impl Container for AndroidSparse {
    const KIND: FormatKind = KIND;

    fn look(&self, probe: &Probe<'_>) -> Taste {
        match found(probe).map(|header| header.pieces(probe)) {
            Some(Ok(pieces)) => Taste::Geom(Arc::new(pieces), Vec::new()),
            _ => Taste::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::container::tests::{opened, read, reason, survives};
    use crate::base::error::Errno;
    use crate::format::tests::disk;

    /// An image of blocks of 512 bytes by chunks: type, blocks, and what is stored.
    fn image(blocks: u32, chunks: &[(u16, u32, &[u8])]) -> Vec<u8> {
        let mut file = 0xed26_ff3a_u32.to_le_bytes().to_vec();
        for number in [1_u16, 0, 28, 12] {
            file.extend(number.to_le_bytes());
        }
        let count = u32::try_from(chunks.len()).expect("a count");
        for number in [512, blocks, count, 0_u32] {
            file.extend(number.to_le_bytes());
        }
        for (kind, blocks, stored) in chunks {
            file.extend(kind.to_le_bytes());
            file.extend([0; 2]);
            file.extend(blocks.to_le_bytes());
            file.extend(u32::try_from(stored.len() + 12).expect("a size").to_le_bytes());
            file.extend_from_slice(stored);
        }
        file
    }

    fn whole() -> Vec<u8> {
        let chunks: [(u16, u32, &[u8]); 5] = [
            (0xcac1, 1, &[b'a'; 512]),
            (0xcac2, 2, b"wxyz"),
            (0xcac3, 1, &[]),
            (0xcac4, 0, &[0; 4]),
            (0xcac1, 2, &[b'b'; 1024]),
        ];
        image(6, &chunks)
    }

    fn file(bytes: &[u8]) -> crate::base::store::Sparse {
        disk(bytes.len() as u64, &[(0, bytes)])
    }

    #[test]
    fn chunks_are_the_disk() {
        let it = opened(file(&whole()));
        let expected = [&[b'a'; 512][..], &b"wxyz".repeat(256), &[0; 512], &[b'b'; 1024]].concat();
        assert_eq!(read(&it, 0, 3072), Ok(expected));
        assert_eq!(read(&it, 1023, 4), Ok(b"zwxy".to_vec()));
        assert!(it.0.providers[0].findings.is_empty());
    }

    #[test]
    fn what_cannot_be_true_is_refused() {
        for (at, bytes, part) in [
            (8, &[27, 0][..], "shorter"),
            (10, &[11, 0], "shorter"),
            (12, &[0, 0, 0, 0], "whole words"),
            (12, &[2, 2, 0, 0], "whole words"),
            (12, &[4, 2, 0, 0], "size that it says"),
            (16, &[5, 0, 0, 0], "size that it says"),
            (16, &[7, 0, 0, 0], "size that it says"),
            (20, &[4, 0, 0, 0], "size that it says"),
            (20, &[6, 0, 0, 0], "cut off"),
            (28, &[0xc5, 0xca], "type"),
            (32, &[0xff, 0xff, 0xff, 0xff], "size that it says"),
            (36, &[0, 0, 0, 0], "size that it says"),
        ] {
            let mut bad = whole();
            bad[at..at + bytes.len()].copy_from_slice(bytes);
            let why = reason(file(&bad));
            assert!(why.is_some_and(|why| why.contains(part)), "{at} {bytes:?}: {why:?}");
        }
        let cut = whole();
        let it = opened(file(&cut[..cut.len() - 512]));
        assert_eq!(read(&it, 2560, 512), Err(Errno::Io));
        survives(&whole(), 0..80);
    }

    #[test]
    fn of_a_long_list_the_rest_is_not_looked_at() {
        let chunks = vec![(0xcac3_u16, 1, &[][..]); 16385];
        let it = opened(file(&image(16385, &chunks)));
        assert_eq!(read(&it, 16383 * 512, 512), Ok(vec![0; 512]));
        assert_eq!(read(&it, 16384 * 512, 512), Err(Errno::Packed));
    }
}
