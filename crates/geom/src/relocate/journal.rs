//! The journal of a move: the move itself, the step that was begun last, and bytes that exist
//! nowhere else.
//!
//! # On disk
//! The head: the magic with the version, its length, a CRC-32 of all that follows it; the [`Move`]
//! and the words by which its user knows it. Then, from a boundary of 4096 bytes, two blocks for
//! notes and, where bytes are saved, two areas of a piece's length, used in turns. A step uses the
//! block of its number's parity. A block holds its [`Note`] twice, so that one bad sector loses
//! none. All numbers are little-endian.
//!
//! Of a piece that is saved its area has what is no gap, without room between. Behind all of that
//! is room for sectors that cannot be read, see [`bad`](super::bad).
//!
//! Version 1 had notes without seals, and no binding to the disk; the sums of version 2 were
//! CRC-32C; version 3 had no gaps; version 4 interlaced nothing. None of them is resumed. Version 5
//! had no room for sectors that cannot be read: it is resumed, and what a list names then counts as
//! zeros without being tried, as the sums in its notes have it.
//!
//! # Limits
//! A head has at most [`LONGEST`] bytes. Every number is checked before it is used: a journal may
//! be hostile.

use super::bad::{Area, BadSectors, ROOM};
use super::draft;
use super::gaps::{Gap, GapKind, Gaps, MOST};
use super::note::{self, Note, sum};
use super::pieces::Kept;
use super::{Move, STARTED, Sizes};
use crate::base::error::Errno;
use crate::base::patch::Patch;
use crate::base::store::Store;
use crate::base::topology::round_up;
use std::ops::Range;

pub(crate) const MAGIC: &[u8; 7] = b"TLMOVE\0";
/// Version that is written.
pub const VERSION: u8 = 6;
/// First version that is resumed.
const OLDEST: u8 = 5;
/// Bytes before the part under the first CRC: magic, version, length, CRC.
const BEFORE: usize = 20;
pub(super) const BLOCK: u64 = 4096;
/// Largest head in bytes: two ends, and tables.
pub const LONGEST: u64 = 64 << 20;

/// Largest size in bytes of the pieces of a move: each is held in memory.
pub(super) const LONGEST_PIECE: u64 = 32 << 20;

/// Bytes between the two copies of a note.
const APART: u64 = BLOCK / 2;

/// Reason for which a file is no journal that can be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// File without the magic of a journal.
    Other,
    /// Journal of that version, which is not resumed.
    Version(u8),
    /// Journal with a length, checksum or number that is wrong.
    Damaged,
    /// Failed read of the file.
    Failed(Errno),
}

impl From<Errno> for Unreadable {
    fn from(errno: Errno) -> Unreadable {
        Unreadable::Failed(errno)
    }
}

/// Journal that a move writes to.
pub struct Journal<'a> {
    store: &'a dyn Store,
    /// First byte of its notes.
    records: u64,
    /// Bytes of an area for a saved piece.
    area: u64,
    /// CRC-32C of the head.
    sum: u32,
    /// Room for sectors that cannot be read; `None` in a file that has none.
    bad: Option<Area>,
}

impl<'a> Journal<'a> {
    /// Bytes that the journal of `plan` takes, and the first byte of its notes.
    fn size(plan: &Move, head: usize) -> Option<(u64, u64)> {
        let records = round_up(head as u64, BLOCK)?;
        let areas = if plan.saves() { round_up(plan.piece(), BLOCK)?.checked_mul(2)? } else { 0 };
        Some((records.checked_add(2 * BLOCK)?.checked_add(areas)?, records))
    }

    /// The head of a journal for `plan`, which its user knows as `words`, and the bytes that the
    /// whole journal takes. `None` if the head is longer than [`LONGEST`].
    pub fn head(plan: &Move, words: &str) -> Option<(Vec<u8>, u64)> {
        let mut body = Vec::new();
        let numbers = [plan.medium, plan.sector, plan.from, plan.to, plan.length];
        numbers
            .iter()
            .chain(&plan.sizes.numbers())
            .for_each(|number| body.extend(number.to_le_bytes()));
        body.extend(plan.id);
        body.extend(plan.sizes.near.to_le_bytes());
        [words.as_bytes(), &plan.front, &plan.back].iter().for_each(|bytes| blob(&mut body, bytes));
        for patches in [&plan.rebased, &plan.table, &plan.was] {
            put_patches(&mut body, patches);
        }
        put_gaps(&mut body, &plan.gaps);
        let length = (BEFORE + body.len()) as u64;
        let head =
            [&MAGIC[..], &[VERSION], &length.to_le_bytes(), &sum(&body).to_le_bytes(), &body]
                .concat();
        let (size, _) = Journal::size(plan, head.len()).filter(|_| length <= LONGEST)?;
        Some((head, size.checked_add(ROOM)?))
    }

    /// A new journal in `store`, with a head and without notes; old contents are overwritten.
    pub fn create(store: &'a dyn Store, plan: &Move, words: &str) -> Result<Journal<'a>, Errno> {
        let (head, _) = Journal::head(plan, words).ok_or(Errno::Range)?;
        let (size, records) = Journal::size(plan, head.len())
            .filter(|(size, _)| *size <= store.length())
            .ok_or(Errno::Range)?;
        // Areas for pieces may hold anything: their sums are in the notes.
        // The first part, of a draft or of a head that no longer fits the rest, is written last.
        let rest = records.checked_add(2 * BLOCK).ok_or(Errno::Range)?;
        store.zero(draft::LENGTH, rest.saturating_sub(draft::LENGTH))?;
        let bad = match Area::open(store, size, plan.id)? {
            // An earlier journal of the same move may be there.
            Some((area, was)) if was != plan.bad => {
                area.keep(store, &plan.bad)?;
                Some(area)
            }
            found => found.map(|(area, _)| area),
        };
        draft::write_head(store, &head)?;
        Ok(Journal {
            store,
            records,
            area: round_up(plan.piece(), BLOCK).ok_or(Errno::Range)?,
            sum: sum(&head[BEFORE..]),
            bad,
        })
    }

    /// The journal in `store`, its move, and the words by which its user knows it.
    pub fn open(store: &'a dyn Store) -> Result<(Journal<'a>, Move, String), Unreadable> {
        let mut before = [0; BEFORE];
        if store.length() < BEFORE as u64 {
            return Err(Unreadable::Other);
        }
        store.read_at(&mut before, 0)?;
        let (magic, rest) = before.split_at(MAGIC.len());
        let (version, length) =
            (rest[0], rest[1..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)));
        if magic != MAGIC || version == 0 {
            return Err(Unreadable::Other);
        }
        if !(OLDEST..=VERSION).contains(&version) {
            return Err(Unreadable::Version(version));
        }
        if length > LONGEST.min(store.length()) || length < BEFORE as u64 {
            return Err(Unreadable::Damaged);
        }
        let mut body = vec![0; usize::try_from(length).unwrap_or_default().saturating_sub(BEFORE)];
        store.read_at(&mut body, BEFORE as u64)?;
        let sum = sum(&body);
        if !rest.ends_with(&sum.to_le_bytes()) {
            return Err(Unreadable::Damaged);
        }
        let (mut plan, words) =
            decode(&body).filter(|(plan, _)| plan.check().is_ok()).ok_or(Unreadable::Damaged)?;
        let (size, records) =
            Journal::size(&plan, BEFORE + body.len()).ok_or(Unreadable::Damaged)?;
        if size > store.length() {
            return Err(Unreadable::Damaged);
        }
        let area = round_up(plan.piece(), BLOCK).ok_or(Unreadable::Damaged)?;
        // The room behind an older one may be there by chance.
        let found = if version > OLDEST { Area::open(store, size, plan.id)? } else { None };
        let bad = found.map(|(area, bad)| {
            plan.bad = bad;
            area
        });
        Ok((Journal { store, records, area, sum, bad }, plan, words))
    }

    /// Adds `listed` to the sectors that `plan`, the move of this journal, tries to read, and keeps
    /// them. A journal without room for what comes of that has them as zeros, and not tried.
    pub fn list(&self, plan: &mut Move, listed: &[Range<u64>]) -> Result<(), Errno> {
        let is_new = plan.bad.list(listed);
        if self.bad.is_none() {
            plan.bad.fail(plan.bad.listed.clone());
        } else if is_new {
            self.keep(&plan.bad)?;
        }
        Ok(())
    }

    /// Keeps the sectors that may be unreadable, and flushes them.
    pub(super) fn keep(&self, bad: &BadSectors) -> Result<(), Errno> {
        self.bad.as_ref().ok_or(Errno::NoSpace)?.keep(self.store, bad)
    }

    /// Sum of the head, which the first note contains.
    pub(super) fn sum(&self) -> u32 {
        self.sum
    }

    /// Returns when all that was written to it, by a run that was killed too, would survive a loss
    /// of power.
    pub(super) fn flush(&self) -> Result<(), Errno> {
        self.store.flush()
    }

    fn slot(&self, step: u64) -> u64 {
        self.records + step % 2 * BLOCK
    }

    fn area(&self, kept: &Kept) -> u64 {
        self.records + 2 * BLOCK + kept.area * self.area
    }

    /// The last note; `None` if there is none yet. `Err(None)` if the notes do not belong to one
    /// journal.
    pub(super) fn last(&self, plan: &Move) -> Result<Option<Note>, Option<Errno>> {
        let mut notes = Vec::new();
        for parity in 0..2 {
            let mut newest: Option<Note> = None;
            for copy in [0, APART] {
                let mut bytes = [0; note::LENGTH];
                self.store.read_at(&mut bytes, self.slot(parity) + copy).map_err(Some)?;
                let note = Note::read(&bytes)
                    .filter(|note| note.step % 2 == parity && note.step <= plan.steps());
                newest = [newest, note].into_iter().flatten().max_by_key(|note| note.step);
            }
            notes.extend(newest);
        }
        notes.sort_by_key(|note| note.step);
        match notes.as_slice() {
            // The block of the older note may be damaged: then the newer one is enough.
            [older, newer] if older.step + 1 == newer.step && newer.before != older.seal() => {
                Err(None)
            }
            [first, ..] if first.step == 0 && first.before != self.sum => Err(None),
            notes => Ok(notes.last().copied()),
        }
    }

    /// Writes `note`, and before it the bytes that are to be saved, if any. The caller has flushed
    /// everything before the step.
    pub(super) fn note(&self, note: &Note, saved: Option<(&Kept, &[u8])>) -> Result<(), Errno> {
        if let Some((kept, bytes)) = saved {
            let area = self.area(kept);
            for (at, part) in (area..).step_by(STARTED).zip(bytes.chunks(STARTED)) {
                self.store.write_at(part, at)?;
                self.store.start_writeback(at, part.len() as u64);
            }
        }
        let bytes = note.bytes();
        self.store.write_at(&bytes, self.slot(note.step))?;
        self.store.write_at(&bytes, self.slot(note.step) + APART)?;
        self.store.flush()
    }

    /// Fills `bytes` with those that the journal has as `kept`, and returns their sum.
    pub(super) fn kept(&self, plan: &Move, kept: &Kept, bytes: &mut Vec<u8>) -> Result<u32, Errno> {
        bytes.resize(plan.weight(kept.piece)?, 0);
        self.store.read_at(bytes, self.area(kept))?;
        Ok(sum(bytes))
    }
}

/// Appends `gaps` to `body`, with their number before them.
fn put_gaps(body: &mut Vec<u8>, gaps: &Gaps) {
    body.extend((gaps.list().len() as u64).to_le_bytes());
    for Gap { range, kind } in gaps.list() {
        body.extend(range.start.to_le_bytes());
        body.extend(range.end.to_le_bytes());
        body.push(u8::from(*kind == GapKind::Hole));
    }
}

/// Appends `bytes` to `body`, with their number before them.
pub(super) fn blob(body: &mut Vec<u8>, bytes: &[u8]) {
    body.extend((bytes.len() as u64).to_le_bytes());
    body.extend(bytes);
}

/// Appends `patches` to `body`, with their number before them.
pub(super) fn put_patches(body: &mut Vec<u8>, patches: &[Patch]) {
    body.extend((patches.len() as u64).to_le_bytes());
    for patch in patches {
        body.extend(patch.offset.to_le_bytes());
        body.push(u8::from(patch.after_flush));
        blob(body, &patch.bytes);
    }
}

/// Unparsed rest of the bytes of a head.
pub(crate) struct Rest<'a>(pub(crate) &'a [u8]);

impl<'a> Rest<'a> {
    pub(crate) fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(crate) fn blob(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.number()?).ok()?;
        self.bytes(count)
    }

    /// The sizes but for the distance that is behind the identity.
    pub(super) fn sizes(&mut self) -> Option<Sizes> {
        Some(Sizes { end: self.number()?, piece: self.number()?, far: self.number()?, near: 0 })
    }

    pub(super) fn patches(&mut self) -> Option<Vec<Patch>> {
        // Each patch takes bytes of its own, so the head's length bounds their number.
        (0..self.number()?)
            .map(|_| {
                let (offset, flush) = (self.number()?, self.bytes(1)?[0] == 1);
                let patch = Patch::new(offset, self.blob()?.to_vec(), "as the journal says");
                Some(if flush { patch.after_flush() } else { patch })
            })
            .collect()
    }

    fn gaps(&mut self) -> Option<Gaps> {
        let count = self.number().filter(|&count| count <= MOST as u64)?;
        let gaps = (0..count).map(|_| {
            let range = self.number()?..self.number()?;
            let kind = match self.bytes(1)?[0] {
                0 => GapKind::Free,
                1 => GapKind::Hole,
                _ => return None,
            };
            Some(Gap { range, kind })
        });
        gaps.collect::<Option<Vec<Gap>>>().map(Gaps::new)
    }
}

fn decode(body: &[u8]) -> Option<(Move, String)> {
    let mut rest = Rest(body);
    let [medium, sector, from, to, length] =
        [rest.number()?, rest.number()?, rest.number()?, rest.number()?, rest.number()?];
    let mut sizes = rest.sizes()?;
    let id = *rest.bytes(16)?.first_chunk()?;
    sizes.near = rest.number()?;
    let words = String::from_utf8(rest.blob()?.to_vec()).ok()?;
    let (front, back) = (rest.blob()?.to_vec(), rest.blob()?.to_vec());
    let [rebased, table, was] = [rest.patches()?, rest.patches()?, rest.patches()?];
    let gaps = rest.gaps()?;
    // A piece is held in memory, so its size is bounded.
    let bounded = sizes.piece <= LONGEST_PIECE && sizes.end <= LONGEST;
    let plan = Move {
        id,
        medium,
        sector,
        from,
        to,
        length,
        sizes,
        front,
        back,
        rebased,
        table,
        was,
        gaps,
        bad: BadSectors::default(),
    };
    (bounded && rest.0.is_empty()).then_some((plan, words))
}
