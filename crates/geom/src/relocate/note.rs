//! Note of a journal: the step of a move that begins, and checksums that prove a journal and a disk
//! to be of the same moment.
//!
//! # On disk
//! A record: the magic, 1 if the journal has bytes that the step needs, the step, the CRC-32 of the
//! piece copied before, of this one and of the next, of the bytes that the journal has, and of
//! those that it will have with the next step (0 where there is none), the seal of the note before,
//! and a CRC-32C of all that comes before it. That CRC is the seal of the note: the next one
//! contains it, and the first contains the CRC of the head.

use super::{Move, Piece};
use crate::base::error::Errno;
use crate::base::ondisk::on_disk;
use crate::base::store::Store;
use crate::format::moving::mark::CRC;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, IntoBytes};

on_disk! {
    #[derive(IntoBytes)]
    struct Record of 44 bytes {
         0 => magic: [u8; 4],
         4 => saved: U32,
         8 => step: U64,
        16 => behind: U32,
        20 => copied: U32,
        24 => ahead: U32,
        28 => kept: U32,
        32 => keeps: U32,
        36 => before: U32,
        40 => crc: U32,
    }
}
const RECORD: [u8; 4] = *b"TLMN";
/// Bytes of a record on the disk.
pub(super) const LENGTH: usize = size_of::<Record>();

/// Step that begins, with the proof that a disk is at it. Sums are CRC-32 of the bytes of a piece,
/// adapted to the new place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// Number of the step: all steps before it are on the medium. Behind the last one, the move is
    /// done.
    pub step: u64,
    /// True if the journal has the bytes of `kept`.
    pub saved: bool,
    /// Sum of the piece that the step before copied; 0 if it copied none.
    pub behind: u32,
    /// Sum of the piece that this step copies; 0 if it copies none.
    pub copied: u32,
    /// Sum of the piece that the next step copies; 0 if it copies none.
    pub ahead: u32,
    /// Sum of the bytes that the journal has while this step is done; 0 if none.
    pub kept: u32,
    /// Sum of the bytes that are saved with the next step, if they are not those that it copies; 0
    /// if there are none.
    pub keeps: u32,
    /// Seal of the note before; of the first note, the sum of the head.
    pub before: u32,
}

impl Note {
    /// The note of the first step of a move whose head has the sum `head`, before its pieces are
    /// known.
    pub(super) fn first(head: u32) -> Note {
        Note { before: head, ..Note::default() }
    }

    /// The note of the step after this one, which copies what this one calls `ahead`.
    pub(super) fn next(&self) -> Note {
        Note {
            step: self.step + 1,
            saved: false,
            behind: self.copied,
            copied: self.ahead,
            ahead: 0,
            kept: 0,
            keeps: 0,
            before: self.seal(),
        }
    }

    /// The CRC-32C over all of the note, and so over all notes before it.
    pub fn seal(&self) -> u32 {
        self.record().crc.get()
    }

    fn record(&self) -> Record {
        let mut record = Record {
            magic: RECORD,
            saved: u32::from(self.saved).into(),
            step: self.step.into(),
            behind: self.behind.into(),
            copied: self.copied.into(),
            ahead: self.ahead.into(),
            kept: self.kept.into(),
            keeps: self.keeps.into(),
            before: self.before.into(),
            crc: 0.into(),
        };
        record.crc = CRC.checksum(&record.as_bytes()[..LENGTH - 4]).into();
        record
    }

    /// The record as it is written to the disk.
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.record().as_bytes().to_vec()
    }

    /// The note at the beginning of `bytes`; `None` if its magic, its CRC or a number is wrong.
    pub(super) fn read(bytes: &[u8]) -> Option<Note> {
        let (record, _) = Record::read_from_prefix(bytes).ok()?;
        let whole = record.magic == RECORD
            && record.crc.get() == CRC.checksum(&bytes[..LENGTH - 4])
            && record.saved.get() < 2;
        whole.then(|| Note {
            step: record.step.get(),
            saved: record.saved.get() == 1,
            behind: record.behind.get(),
            copied: record.copied.get(),
            ahead: record.ahead.get(),
            kept: record.kept.get(),
            keeps: record.keeps.get(),
            before: record.before.get(),
        })
    }
}

/// The CRC-32 of `bytes`, by which pieces are compared: every byte that moves passes through it, so
/// it is the one that processors help with here.
pub(super) fn sum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// True if the bytes of `piece` have the sum `wanted` at the old place.
pub(super) fn is_source(
    plan: &Move,
    disk: &dyn Store,
    piece: Piece,
    wanted: u32,
) -> Result<bool, Errno> {
    let mut sum = crc32fast::Hasher::new();
    // What a sum was made of was read, or is known to have failed.
    plan.load(disk, piece, &mut Vec::new(), None, &mut |part| sum.update(part))?;
    Ok(sum.finalize() == wanted)
}

/// True if the bytes of `piece` without its gaps have the sum `wanted` at the new place.
pub(super) fn is_copied(
    plan: &Move,
    disk: &dyn Store,
    piece: Piece,
    wanted: u32,
) -> Result<bool, Errno> {
    let mut bytes = vec![0; plan.weight(piece)?];
    plan.each(piece, &mut bytes, &mut |at, bytes| disk.read_at(bytes, plan.to + at))?;
    Ok(sum(&bytes) == wanted)
}
