//! What a partition begins with while it is moved.
//!
//! # On disk
//! One sector: the magic, version 1, the move's identity, from where to where and how many bytes, a CRC-32C of what comes before it; then,
//! for who looks with a hexdump, what it means, in words. All numbers are little-endian.

use super::journal::CRC;
use crate::layout;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What it begins with.
pub const MAGIC: &[u8; 16] = b"TRUELINE-MOVING\0";
const WORDS: &[u8] = b"\nThis partition is being moved by trueline, and was interrupted. Do not write to it and do not repair it: \
run 'trueline move --resume JOURNAL', where JOURNAL is the file that was named when the move began.\n";

/// The numbers of a mark.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Sector {
    magic: [u8; 16],
    version: U32,
    id: [u8; 16],
    from: U64,
    to: U64,
    length: U64,
    crc: U32,
}
layout!(Sector, 64, version @ 16, id @ 20, from @ 36, to @ 44, length @ 52, crc @ 60);

/// Which move it is the mark of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// What tells the move from others.
    pub id: [u8; 16],
    /// Where the bytes were, on the provider with the table.
    pub from: u64,
    /// Where they will be.
    pub to: u64,
    /// How many.
    pub length: u64,
}

impl Mark {
    /// The sector, of `size` bytes.
    pub fn sector(&self, size: u64) -> Vec<u8> {
        let Mark { id, from, to, length } = *self;
        let (from, to, length) = (from.into(), to.into(), length.into());
        let mut head = Sector { magic: *MAGIC, version: 1.into(), id, from, to, length, crc: 0.into() };
        head.crc = CRC.checksum(&head.as_bytes()[..60]).into();
        let mut bytes = [head.as_bytes(), WORDS].concat();
        bytes.resize(usize::try_from(size).unwrap_or_default(), 0);
        bytes
    }

    /// The mark that `bytes` begin with.
    pub fn read(bytes: &[u8]) -> Option<Mark> {
        let (head, _) = Sector::read_from_prefix(bytes).ok()?;
        let whole = head.magic == *MAGIC && head.version.get() == 1 && head.crc.get() == CRC.checksum(&bytes[..60]);
        whole.then(|| Mark { id: head.id, from: head.from.get(), to: head.to.get(), length: head.length.get() })
    }
}
