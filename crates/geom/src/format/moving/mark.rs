//! Mark in the first sector of a partition while it is moved.
//!
//! # On disk
//! One sector: the magic, version 2, the move's identity, the two places and the number of bytes,
//! the step that is being done and the seal of its note, a CRC-32C of all that; then, for a reader
//! of a hexdump, the meaning in words. Version 1 has no step and no seal. All numbers are
//! little-endian.

use crate::base::ondisk::on_disk;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, IntoBytes};

/// Words in the mark of a conversion, whose places are both 0.
const CONVERTED: &[u8] = b"\nThis disk is being converted to other sectors by trueline, and was \
    interrupted. Do not write to it and do not repair it: \
run 'trueline convert --resume JOURNAL', where JOURNAL is the file that was named when it began.\n";

/// CRC-32C of marks and of journals.
pub(crate) const CRC: crc::Crc<u32, crc::Table<16>> =
    crc::Crc::<u32, crc::Table<16>>::new(&crc::CRC_32_ISCSI);
/// First bytes of a mark.
pub const MAGIC: &[u8; 16] = b"TRUELINE-MOVING\0";
const WORDS: &[u8] = b"\nThis partition is being moved by trueline, and was interrupted. Do not \
    write to it and do not repair it: \
run 'trueline move --resume JOURNAL', where JOURNAL is the file that was named when the move \
began.\n";

on_disk! {
    /// On-disk numbers with which both versions begin.
    #[derive(IntoBytes)]
    struct Head of 60 bytes {
         0 => magic: [u8; 16],
        16 => version: U32,
        20 => id: [u8; 16],
        36 => from: U64,
        44 => to: U64,
        52 => length: U64,
    }
}

on_disk! {
    /// On-disk numbers of version 2.
    #[derive(IntoBytes)]
    struct Sector of 76 bytes {
         0 => head: Head,
        60 => step: U64,
        68 => seal: U32,
        72 => crc: U32,
    }
}

/// Mark of a move, with its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Identity of the move.
    pub id: [u8; 16],
    /// First byte of the old place, on the provider with the table.
    pub from: u64,
    /// First byte of the new place, on the provider with the table.
    pub to: u64,
    /// Number of bytes that are moved.
    pub length: u64,
    /// The step that is being done; `None` in a mark of version 1.
    pub sealed: Option<Sealed>,
}

/// Step of a move, as the mark on a disk records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Number of the step: all before it are on the medium.
    pub step: u64,
    /// Seal of the note of the step.
    pub seal: u32,
}

impl Mark {
    /// Number of bytes that [`Mark::read`] needs.
    pub const LENGTH: usize = size_of::<Sector>();

    /// True for a disk that is converted to other sectors, with nothing that moves.
    pub fn is_of_disk(&self) -> bool {
        self.from == self.to
    }

    /// The mark as a sector of `size` bytes.
    pub fn sector(&self, size: u64) -> Vec<u8> {
        let Mark { id, from, to, length, sealed } = *self;
        let head = Head {
            magic: *MAGIC,
            version: 2.into(),
            id,
            from: from.into(),
            to: to.into(),
            length: length.into(),
        };
        let (step, seal) = sealed.map_or((0, 0), |sealed| (sealed.step, sealed.seal));
        let mut sector = Sector { head, step: step.into(), seal: seal.into(), crc: 0.into() };
        sector.crc = CRC.checksum(&sector.as_bytes()[..Mark::LENGTH - 4]).into();
        let words = if self.is_of_disk() { CONVERTED } else { WORDS };
        let mut bytes = [sector.as_bytes(), words].concat();
        bytes.resize(usize::try_from(size).unwrap_or_default(), 0);
        bytes
    }

    /// The mark at the beginning of `bytes`, of either version; `None` if the magic or the CRC is
    /// wrong.
    pub fn read(bytes: &[u8]) -> Option<Mark> {
        let (head, rest) =
            Head::read_from_prefix(bytes).ok().filter(|(head, _)| head.magic == *MAGIC)?;
        let (covered, sealed) = match head.version.get() {
            1 => (size_of::<Head>(), None),
            2 => {
                let (sector, _) = Sector::read_from_prefix(bytes).ok()?;
                (
                    Mark::LENGTH - 4,
                    Some(Sealed { step: sector.step.get(), seal: sector.seal.get() }),
                )
            }
            _ => return None,
        };
        let crc = rest.get(covered - size_of::<Head>()..)?.first_chunk()?;
        let mark = Mark {
            id: head.id,
            from: head.from.get(),
            to: head.to.get(),
            length: head.length.get(),
            sealed,
        };
        (*crc == CRC.checksum(&bytes[..covered]).to_le_bytes()).then_some(mark)
    }

    /// True if `sector` has the remains of a mark: its magic or its words, of which one flipped bit
    /// cannot destroy both.
    pub(crate) fn is_trace(sector: &[u8]) -> bool {
        sector.starts_with(MAGIC)
            || sector.get(Mark::LENGTH..).is_some_and(|rest| rest.starts_with(WORDS))
    }
}
