//! Blocks that containers store compressed, unpacked within a bound: the size that the container
//! says a block has.
//!
//! # Sources
//! RFC 1951 (deflate), RFC 1950 (zlib), RFC 8878 (Zstandard); `unpack/adc.rs`, `unpack/xz.rs`.

use crate::base::error::Errno;
use flate2::bufread::ZlibDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use std::io::Read;

mod adc;
pub(crate) mod xz;

/// Method by which a block is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// A raw deflate stream (RFC 1951), as a qcow2 has it.
    Deflate,
    /// A zlib stream (RFC 1950), as a streamOptimized VMDK has it.
    Zlib,
    /// A Zstandard frame (RFC 8878).
    Zstd,
    /// A bzip2 stream, as a dmg has it.
    Bzip2,
    /// Apple Data Compression, as an old dmg has it.
    Adc,
    /// An LZFSE stream, as a dmg has it.
    Lzfse,
    /// An xz stream of LZMA2, as a dmg has it.
    Xz,
    /// Bytes that are repeated, as EWF 2 has it.
    Repeated,
}

impl Packing {
    /// Fills `block` with what `stored` unpacks to; what follows the stream is passed over.
    ///
    /// Errors: [`Errno::Io`] for a stream that is damaged or yields fewer bytes. What would be more
    /// than the block is never made.
    pub(crate) fn unpack(self, stored: &[u8], block: &mut [u8]) -> Result<(), Errno> {
        match self {
            Packing::Deflate => inflate(Decompress::new(false), stored, block),
            Packing::Zlib => inflate(Decompress::new(true), stored, block),
            Packing::Zstd => {
                let mut source = stored;
                let mut frame =
                    ruzstd::decoding::StreamingDecoder::new(&mut source).map_err(|_| Errno::Io)?;
                frame.read_exact(block).map_err(|_| Errno::Io)
            }
            Packing::Bzip2 => fill(bunzip(stored), block),
            Packing::Adc => adc::unpack(stored, block),
            Packing::Lzfse => {
                let mut decoder = lzfse_rust::LzfseRingDecoder::default();
                fill(decoder.reader_bytes(stored), block)
            }
            Packing::Xz => xz::unpack(stored, block),
            Packing::Repeated if stored.is_empty() => Err(Errno::Io),
            Packing::Repeated => {
                block.iter_mut().zip(stored.iter().cycle()).for_each(|(to, from)| *to = *from);
                Ok(())
            }
        }
    }

    /// Bytes that `stored` unpacks to, whose number is not known: at most `most`. Of zlib
    /// and bzip2 alone.
    ///
    /// Errors: [`Errno::Io`] for a stream that is damaged, makes more, or is of another kind.
    pub(crate) fn unpack_at_most(self, stored: &[u8], most: u64) -> Result<Vec<u8>, Errno> {
        let mut made = Vec::new();
        let limit = most.saturating_add(1);
        let read = match self {
            Packing::Zlib => ZlibDecoder::new(stored).take(limit).read_to_end(&mut made),
            Packing::Bzip2 => bunzip(stored).take(limit).read_to_end(&mut made),
            _ => return Err(Errno::Io),
        };
        if read.is_ok() && made.len() as u64 <= most { Ok(made) } else { Err(Errno::Io) }
    }
}

/// Begin of a bzip2 stream, and of the first block in it. EnCase leaves the former out.
const BZIP2: &[u8] = b"BZh9";
const BZIP2_BLOCK: &[u8] = b"1AY&SY";

/// A reader of a bzip2 stream, which may lack its begin.
fn bunzip(stored: &[u8]) -> impl Read + '_ {
    let begin = if stored.starts_with(BZIP2_BLOCK) { BZIP2 } else { &[] };
    bzip2::read::BzDecoder::new(begin.chain(stored))
}

/// Fills `block` from a stream.
fn fill(mut stream: impl Read, block: &mut [u8]) -> Result<(), Errno> {
    stream.read_exact(block).map_err(|_| Errno::Io)
}

fn inflate(mut stream: Decompress, stored: &[u8], block: &mut [u8]) -> Result<(), Errno> {
    let status = stream.decompress(stored, block, FlushDecompress::Finish);
    // A stream that would go on past the block has filled it as well.
    let ended = matches!(status, Ok(Status::StreamEnd | Status::Ok | Status::BufError));
    if ended && stream.total_out() == block.len() as u64 { Ok(()) } else { Err(Errno::Io) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, ZlibEncoder};
    use std::io::Write;

    #[test]
    fn a_block_is_unpacked_and_no_more() {
        let plain: Vec<u8> = (0..9000_u32).map(|n| n.to_le_bytes()[0] / 3).collect();
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::best());
        raw.write_all(&plain).unwrap();
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
        zlib.write_all(&plain).unwrap();
        for (packing, packed) in
            [(Packing::Deflate, raw.finish().unwrap()), (Packing::Zlib, zlib.finish().unwrap())]
        {
            let trailed = [packed.as_slice(), &[0xaa; 100]].concat();
            for (length, works) in [(9000, true), (4096, true), (9001, false)] {
                let mut block = vec![0; length];
                let unpacked = packing.unpack(&trailed, &mut block);
                assert_eq!(unpacked.is_ok(), works, "{packing:?} {length}");
                assert!(!works || block == plain[..length]);
            }
            assert_eq!(packing.unpack(&packed[..packed.len() / 2], &mut [0; 9000]), Err(Errno::Io));
        }
    }

    #[test]
    fn a_frame_is_unpacked_and_damage_is_an_error() {
        // `printf trueline | zstd -1`
        let frame = b"\x28\xb5\x2f\xfd\x04\x48\x41\0\0trueline\x6c\xc5\x03\xf4";
        let mut block = [0; 8];
        assert_eq!(Packing::Zstd.unpack(frame, &mut block), Ok(()));
        assert_eq!(&block, b"trueline");
        assert_eq!(Packing::Zstd.unpack(frame, &mut [0; 9]), Err(Errno::Io));
        assert_eq!(Packing::Zstd.unpack(&frame[..10], &mut block), Err(Errno::Io));
        assert_eq!(Packing::Zstd.unpack(b"not a frame at all", &mut block), Err(Errno::Io));
    }

    /// Streams of `trueline` by their own tools: `bzip2`, `xz --check=crc32`, LZFSE's block that is
    /// not packed, and ADC.
    const STREAMS: [(Packing, &[u8]); 4] = [
        (
            Packing::Bzip2,
            b"BZh91AY&SY\xc8\0\xa9\xd4\0\0\x03\x01\x80\x02%\x16\0 \x001\x0c\x01\r\x1e\xa7\xa8\x86\x8e>.\xe4\x8ap\xa1!\x90\x01S\xa8",
        ),
        (
            Packing::Xz,
            b"\xfd7zXZ\0\0\x01i\"\xde6\x02\0!\x01\x16\0\0\0t/\xe5\xa3\x01\0\x07trueline\0\xa4\x8e\xa2\xcc\0\x01\x1c\x08D`*\xc8\x90B\x99\r\x01\0\0\0\0\x01YZ",
        ),
        (Packing::Lzfse, b"bvx-\x08\0\0\0truelinebvx$"),
        (Packing::Adc, b"\x87trueline"),
    ];

    #[test]
    fn streams_of_a_dmg_are_unpacked_and_damage_is_an_error() {
        for (packing, stream) in STREAMS {
            let mut block = [0; 8];
            assert_eq!(packing.unpack(stream, &mut block), Ok(()), "{packing:?}");
            assert_eq!(&block, b"trueline", "{packing:?}");
            assert_eq!(packing.unpack(stream, &mut [0; 9]), Err(Errno::Io), "{packing:?}");
            assert_eq!(packing.unpack(b"", &mut block), Err(Errno::Io), "{packing:?}");
            assert_eq!(packing.unpack(b"not a stream", &mut block), Err(Errno::Io), "{packing:?}");
        }
    }

    #[test]
    fn streams_of_an_unknown_length_are_unpacked_within_a_bound() {
        let plain = [7; 5000];
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
        zlib.write_all(&plain).unwrap();
        let zlib = zlib.finish().unwrap();
        let trailed = [&zlib[..], &[0; 9]].concat();
        assert_eq!(Packing::Zlib.unpack_at_most(&trailed, 5000), Ok(plain.to_vec()));
        assert_eq!(Packing::Zlib.unpack_at_most(&trailed, 4999), Err(Errno::Io));
        assert_eq!(Packing::Zlib.unpack_at_most(&zlib[..9], 5000), Err(Errno::Io));
        let bzip2 = STREAMS[0].1;
        assert_eq!(Packing::Bzip2.unpack_at_most(bzip2, 8), Ok(b"trueline".to_vec()));
        assert_eq!(Packing::Bzip2.unpack_at_most(bzip2, 7), Err(Errno::Io));
        assert_eq!(Packing::Zstd.unpack_at_most(bzip2, 9), Err(Errno::Io));
        // EnCase's, without the begin and the end.
        let mut block = [0; 8];
        let inner = &bzip2[4..bzip2.len() - 10];
        assert_eq!(Packing::Bzip2.unpack(inner, &mut block), Ok(()));
        assert_eq!(&block, b"trueline");
    }

    #[test]
    fn bytes_are_repeated_to_the_end_of_a_block() {
        let mut block = [0; 11];
        assert_eq!(Packing::Repeated.unpack(b"abcd", &mut block), Ok(()));
        assert_eq!(&block, b"abcdabcdabc");
        assert_eq!(Packing::Repeated.unpack(b"", &mut block), Err(Errno::Io));
    }

    /// A stream with one byte changed, or cut off, or longer than it is: no more is made than the
    /// block, and nothing panics.
    #[test]
    fn hostile_streams_end() {
        let plain: Vec<u8> = (0..40_000_u32).map(|n| (n * n / 700).to_le_bytes()[0]).collect();
        let mut packed = Vec::new();
        lzfse_rust::encode_bytes(&plain, &mut packed).expect("a stream");
        let mut block = vec![0; plain.len()];
        assert_eq!(Packing::Lzfse.unpack(&packed, &mut block), Ok(()));
        assert!(block == plain);
        for (packing, stream) in STREAMS.into_iter().chain([(Packing::Lzfse, &packed[..])]) {
            for at in 0..stream.len().min(200) {
                for change in [0x01, 0x40, 0x80, 0xff] {
                    let mut hostile = stream.to_vec();
                    hostile[at] ^= change;
                    let _ = packing.unpack(&hostile, &mut block);
                }
                let _ = packing.unpack(&stream[..at], &mut block);
            }
        }
    }
}
