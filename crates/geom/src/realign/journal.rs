//! The journal of a move: what it is, which step was begun last, and bytes that are nowhere else.
//!
//! # On disk
//! The head: the magic, its length, a CRC-32C of all that follows it; the [`Move`] and the words that its user knows it by. Then, from a
//! boundary of 4096 bytes, two records and, where pieces are saved, two areas of a piece's length; a step has those of its number's parity.
//! A record is what was begun, and the CRC-32C of what was saved for it, if anything was; one that is cut short is none. All numbers are
//! little-endian.
//!
//! # Limits
//! A head of [`LONGEST`] bytes. Every number is checked before it is used: a journal may come from anybody.

use super::{Move, Sizes};
use crate::error::Errno;
use crate::layout;
use crate::patch::Patch;
use crate::store::Store;
use crate::topology::round_up;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub(super) const CRC: crc::Crc<u32, crc::Table<16>> = crc::Crc::<u32, crc::Table<16>>::new(&crc::CRC_32_ISCSI);
const MAGIC: &[u8; 8] = b"TLMOVE\0\x01";
/// Bytes before what the first CRC is of.
const BEFORE: usize = 20;
const BLOCK: u64 = 4096;
/// The longest head: two ends, and tables.
pub const LONGEST: u64 = 64 << 20;

/// What a record is.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Record {
    magic: [u8; 4],
    saved: U32,
    step: U64,
    length: U64,
    bytes: U32,
    crc: U32,
}
layout!(Record, 32, saved @ 4, step @ 8, length @ 16, bytes @ 24, crc @ 28);
const RECORD: [u8; 4] = *b"TLMR";

/// Which step of a move was begun last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Begun {
    /// Whether any was.
    pub noted: bool,
    /// Its number: all before it are on the medium. Behind the last one, the move is done.
    pub step: u64,
    /// How many bytes were saved for it; `None` if it can be read where it was.
    pub saved: Option<u64>,
}

/// A journal that a move is written into.
pub struct Journal<'a> {
    store: &'a dyn Store,
    /// Where its records begin.
    records: u64,
    /// Bytes of an area.
    area: u64,
}

impl<'a> Journal<'a> {
    /// Bytes that the journal of `plan` takes, and where its records begin.
    fn size(plan: &Move, head: usize) -> Option<(u64, u64)> {
        let records = round_up(head as u64, BLOCK)?;
        let areas = if plan.saves() { round_up(plan.piece(), BLOCK)?.checked_mul(2)? } else { 0 };
        Some((records.checked_add(2 * BLOCK)?.checked_add(areas)?, records))
    }

    /// The head of a journal for `plan`, which its user knows as `words`, and the bytes that the whole journal takes.
    pub fn head(plan: &Move, words: &str) -> Option<(Vec<u8>, u64)> {
        let mut body = Vec::new();
        let numbers = [plan.medium, plan.sector, plan.from, plan.to, plan.length, plan.sizes.end, plan.sizes.piece, plan.sizes.far];
        numbers.iter().for_each(|number| body.extend(number.to_le_bytes()));
        body.extend(plan.id);
        let blob = |body: &mut Vec<u8>, bytes: &[u8]| {
            body.extend((bytes.len() as u64).to_le_bytes());
            body.extend(bytes);
        };
        [words.as_bytes(), &plan.front, &plan.back].iter().for_each(|bytes| blob(&mut body, bytes));
        for patches in [&plan.rebased, &plan.table, &plan.was] {
            body.extend((patches.len() as u64).to_le_bytes());
            for patch in patches {
                body.extend(patch.offset.to_le_bytes());
                body.push(u8::from(patch.after_flush));
                blob(&mut body, &patch.bytes);
            }
        }
        let length = (BEFORE + body.len()) as u64;
        let head = [MAGIC, &length.to_le_bytes()[..], &CRC.checksum(&body).to_le_bytes(), &body].concat();
        let (size, _) = Journal::size(plan, head.len()).filter(|_| length <= LONGEST)?;
        Some((head, size))
    }

    /// A journal in `store`, whose head is there and whose records are not: what was there before is written over.
    pub fn create(store: &'a dyn Store, plan: &Move, words: &str) -> Result<Journal<'a>, Errno> {
        let (head, size) = Journal::head(plan, words).filter(|(_, size)| *size <= store.length()).ok_or(Errno::Range)?;
        let (_, records) = Journal::size(plan, head.len()).ok_or(Errno::Range)?;
        store.zero(0, size)?;
        store.write_at(&head, 0)?;
        store.flush()?;
        Ok(Journal { store, records, area: round_up(plan.piece(), BLOCK).ok_or(Errno::Range)? })
    }

    /// The journal in `store`: of which move it is, how its user knows that, and what was begun. `None` if there is no whole one.
    pub fn open(store: &'a dyn Store) -> Result<Option<(Journal<'a>, Move, String, Begun)>, Errno> {
        let mut before = [0; BEFORE];
        if store.length() < BEFORE as u64 {
            return Ok(None);
        }
        store.read_at(&mut before, 0)?;
        let (magic, rest) = before.split_at(MAGIC.len());
        let length = rest.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        if magic != MAGIC || length > LONGEST.min(store.length()) || length < BEFORE as u64 {
            return Ok(None);
        }
        let mut body = vec![0; usize::try_from(length).unwrap_or_default().saturating_sub(BEFORE)];
        store.read_at(&mut body, BEFORE as u64)?;
        if !rest.ends_with(&CRC.checksum(&body).to_le_bytes()) {
            return Ok(None);
        }
        let Some((plan, words)) = decode(&body).filter(|(plan, _)| plan.check().is_ok()) else { return Ok(None) };
        let Some((size, records)) = Journal::size(&plan, BEFORE + body.len()) else { return Ok(None) };
        if size > store.length() {
            return Ok(None);
        }
        let journal = Journal { store, records, area: round_up(plan.piece(), BLOCK).ok_or(Errno::Range)? };
        let begun = journal.begun(&plan)?;
        Ok(Some((journal, plan, words, begun)))
    }

    fn slot(&self, step: u64) -> u64 {
        self.records + step % 2 * BLOCK
    }

    fn area(&self, step: u64) -> u64 {
        self.records + 2 * BLOCK + step % 2 * self.area
    }

    fn begun(&self, plan: &Move) -> Result<Begun, Errno> {
        let mut last = Begun::default();
        for parity in 0..2 {
            let mut bytes = [0; size_of::<Record>()];
            self.store.read_at(&mut bytes, self.slot(parity))?;
            let whole = bytes.ends_with(&CRC.checksum(&bytes[..28]).to_le_bytes());
            let Some(record) = Record::read_from_bytes(&bytes).ok().filter(|record| whole && record.magic == RECORD) else { continue };
            let step = record.step.get();
            if step % 2 != parity || step > plan.steps() || step < last.step {
                continue;
            }
            last = Begun { noted: true, step, saved: self.holds(plan, &record)?.then(|| record.length.get()) };
        }
        Ok(last)
    }

    /// Whether what was saved for a step is whole. If not, nothing has been written in its place either.
    fn holds(&self, plan: &Move, record: &Record) -> Result<bool, Errno> {
        let Some(super::Step::Copy(piece)) = plan.step(record.step.get()) else { return Ok(false) };
        if record.saved.get() != 1 || !piece.saved || piece.length != record.length.get() {
            return Ok(false);
        }
        let mut bytes = vec![0; usize::try_from(piece.length).unwrap_or_default()];
        self.store.read_at(&mut bytes, self.area(record.step.get()))?;
        Ok(CRC.checksum(&bytes) == record.bytes.get())
    }

    /// Notes that `step` begins: everything before it is on the medium.
    pub fn begin(&self, step: u64) -> Result<(), Errno> {
        self.note(Record { magic: RECORD, saved: 0.into(), step: step.into(), length: 0.into(), bytes: 0.into(), crc: 0.into() })
    }

    /// Saves what `step` copies, and notes that it begins.
    pub fn save(&self, step: u64, bytes: &[u8]) -> Result<(), Errno> {
        self.store.write_at(bytes, self.area(step))?;
        let (length, sum) = ((bytes.len() as u64).into(), CRC.checksum(bytes).into());
        self.note(Record { magic: RECORD, saved: 1.into(), step: step.into(), length, bytes: sum, crc: 0.into() })
    }

    /// What was saved for `step`.
    pub fn saved(&self, step: u64, bytes: &mut [u8]) -> Result<(), Errno> {
        self.store.read_at(bytes, self.area(step))
    }

    fn note(&self, mut record: Record) -> Result<(), Errno> {
        record.crc = CRC.checksum(&record.as_bytes()[..28]).into();
        self.store.write_at(record.as_bytes(), self.slot(record.step.get()))?;
        self.store.flush()
    }
}

/// What is left of bytes that are read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn blob(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.number()?).ok()?;
        self.bytes(count)
    }

    fn patches(&mut self) -> Option<Vec<Patch>> {
        // Each takes bytes of its own, so the head's length bounds their number.
        (0..self.number()?)
            .map(|_| {
                let (offset, flush) = (self.number()?, self.bytes(1)?[0] == 1);
                let patch = Patch::new(offset, self.blob()?.to_vec(), "as the journal says");
                Some(if flush { patch.after_flush() } else { patch })
            })
            .collect()
    }
}

fn decode(body: &[u8]) -> Option<(Move, String)> {
    let mut rest = Rest(body);
    let [medium, sector, from, to, length] = [rest.number()?, rest.number()?, rest.number()?, rest.number()?, rest.number()?];
    let sizes = Sizes { end: rest.number()?, piece: rest.number()?, far: rest.number()? };
    let id = *rest.bytes(16)?.first_chunk()?;
    let words = String::from_utf8(rest.blob()?.to_vec()).ok()?;
    let (front, back) = (rest.blob()?.to_vec(), rest.blob()?.to_vec());
    let [rebased, table, was] = [rest.patches()?, rest.patches()?, rest.patches()?];
    // A piece is memory.
    let bounded = sizes.piece <= LONGEST && sizes.end <= LONGEST;
    let plan = Move { id, medium, sector, from, to, length, sizes, front, back, rebased, table, was };
    (bounded && rest.0.is_empty()).then_some((plan, words))
}
