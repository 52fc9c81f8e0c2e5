//! Pieces of the xz format: headers of blocks, numbers, and whole streams in memory.
//!
//! # Sources
//! "The .xz File Format" 1.2: 1.2 Multibyte integers, 2.1.1 Stream Header, 3.1 Block Header.

use crate::base::error::Errno;
use crate::base::topology::round_up;
use std::io::Read;

/// Bytes of the header of a stream.
const HEADER: usize = 12;
/// Bytes of the smallest dictionary, and of the largest that a block here needs.
const DICTIONARIES: std::ops::RangeInclusive<u32> = 4096..=16 << 20;
/// Bytes of the check behind a block, by its type.
const CHECKS: [u64; 16] = [0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64];

/// Header of a block that cannot be unpacked here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockFault {
    /// Header that is damaged, or cut off.
    Damaged,
    /// Filters other than LZMA2 alone.
    Filters,
}

/// Size in bytes of the header of a block by its first byte; `None` for an index.
pub(crate) fn header_size(first: u8) -> Option<usize> {
    (first != 0).then(|| (usize::from(first) + 1) * 4)
}

/// Checks the whole header of a block whose one filter is LZMA2.
pub(crate) fn require_lzma2(header: &[u8]) -> Result<(), BlockFault> {
    let body = header.len().checked_sub(4).filter(|&body| body >= 4);
    let (body, sum) = header.split_at(body.ok_or(BlockFault::Damaged)?);
    if crc32fast::hash(body).to_le_bytes() != sum {
        return Err(BlockFault::Damaged);
    }
    let flags = body[1];
    let mut rest = &body[2..];
    for _ in 0..(flags >> 6).count_ones() {
        variable(&mut rest).ok_or(BlockFault::Damaged)?;
    }
    // One filter, LZMA2, with one byte of properties: the size of its dictionary.
    if flags & 3 != 0 || rest.get(..2) != Some(&[0x21, 1]) {
        return Err(BlockFault::Filters);
    }
    Ok(())
}

/// A number of 7 bits in each byte, the lowest first, taken from the front of `bytes`.
pub(crate) fn variable(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for nth in 0..9 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << (7 * nth);
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Fills `block` with what the blocks of the stream `stored` unpack to. Checks are not compared.
///
/// Errors: [`Errno::Io`] for a stream that is damaged, has other filters, or yields fewer bytes.
pub(super) fn unpack(stored: &[u8], block: &mut [u8]) -> Result<(), Errno> {
    let head = stored.get(..HEADER).filter(|head| head.starts_with(b"\xfd7zXZ\0"));
    let check = CHECKS[usize::from(head.ok_or(Errno::Io)?[7] & 0xf)];
    // Of what is unpacked nothing lies further apart, whatever dictionary a header asks for.
    let dictionary = u32::try_from(block.len()).unwrap_or(u32::MAX);
    let dictionary = dictionary.clamp(*DICTIONARIES.start(), *DICTIONARIES.end());
    let (mut rest, mut done) = (&stored[HEADER..], 0);
    while done < block.len() {
        let size = rest.first().and_then(|&first| header_size(first)).ok_or(Errno::Io)?;
        require_lzma2(rest.get(..size).ok_or(Errno::Io)?).map_err(|_| Errno::Io)?;
        let mut source = &rest[size..];
        let room = source.len();
        let mut stream = lzma_rust2::Lzma2Reader::new(&mut source, dictionary, None);
        while done < block.len() {
            match stream.read(&mut block[done..]).map_err(|_| Errno::Io)? {
                0 => break,
                more => done += more,
            }
        }
        drop(stream);
        let used =
            round_up((room - source.len()) as u64, 4).and_then(|used| used.checked_add(check));
        let next = used.and_then(|used| usize::try_from(used).ok());
        rest = next.and_then(|used| rest[size..].get(used..)).unwrap_or_default();
    }
    Ok(())
}
