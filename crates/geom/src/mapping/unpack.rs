//! Blocks that containers store compressed, unpacked within a bound: the size that the container
//! says a block has.
//!
//! # Sources
//! RFC 1951 (deflate), RFC 1950 (zlib), RFC 8878 (Zstandard).

use crate::base::error::Errno;
use flate2::{Decompress, FlushDecompress, Status};
use std::io::Read;

/// Method by which a block is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// A raw deflate stream (RFC 1951), as a qcow2 has it.
    Deflate,
    /// A zlib stream (RFC 1950), as a streamOptimized VMDK has it.
    Zlib,
    /// A Zstandard frame (RFC 8878).
    Zstd,
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
        }
    }
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
}
