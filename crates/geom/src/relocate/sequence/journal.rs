//! The journal of a sequence: its head, and the rooms behind it.

use super::{MAGIC, Movement, STAGES, Sequence, Stage};
use crate::base::error::Errno;
use crate::base::store::Store;
use crate::base::topology::round_up;
use crate::relocate::bad::{Area, BadSectors, ROOM};
use crate::relocate::journal::{BLOCK, Rest, blob, put_patches};
use crate::relocate::note::sum;
use crate::relocate::{LONGEST, Unreadable};
use crate::table::turn::Turn;

/// Version that is written, and the first that is gone on with.
pub(super) const VERSION: u8 = 4;
const OLDEST: u8 = 3;
/// Bytes before the part under the CRC: magic, version, length, CRC.
const BEFORE: usize = 20;
/// Bytes of boot fields that a stage may rewrite.
const REBASED: u64 = 1 << 20;
/// Bytes for the gaps of a stage.
const GAPS: u64 = 2 << 20;

impl Sequence {
    /// The head of a journal for this sequence, which its user knows as `words`, and the bytes that
    /// the whole journal takes. `None` if the head is longer than [`LONGEST`].
    pub fn head(&self, words: &str) -> Option<(Vec<u8>, u64)> {
        let mut body = Vec::new();
        let sizes = self.sizes.numbers();
        let numbers = [&[self.medium, self.sector], &sizes[..], &[self.stages.len() as u64]];
        numbers.concat().iter().for_each(|number| body.extend(number.to_le_bytes()));
        body.extend(self.id);
        body.extend(self.sizes.near.to_le_bytes());
        blob(&mut body, words.as_bytes());
        for Stage { moved, turn } in &self.stages {
            let Movement { from, to, length } =
                moved.unwrap_or(Movement { from: 0, to: 0, length: 0 });
            [from, to, length].iter().for_each(|number| body.extend(number.to_le_bytes()));
            for patches in [&turn.fresh, &turn.change, &turn.was, &turn.gone] {
                put_patches(&mut body, patches);
            }
        }
        let length = (BEFORE + body.len()) as u64;
        let head =
            [&MAGIC[..], &[VERSION], &length.to_le_bytes(), &sum(&body).to_le_bytes(), &body]
                .concat();
        let size = self.list_at(self.room(length)?)?.checked_add(ROOM)?;
        (length <= LONGEST).then_some((head, size))
    }

    /// The sequence of a journal, its words, and the first byte of the room for moves.
    pub fn open(store: &dyn Store) -> Result<(Sequence, String, u64), Unreadable> {
        let mut before = [0; BEFORE];
        if store.length() < BEFORE as u64 {
            return Err(Unreadable::Other);
        }
        store.read_at(&mut before, 0)?;
        let (magic, rest) = before.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(Unreadable::Other);
        }
        if !(OLDEST..=VERSION).contains(&rest[0]) {
            return Err(Unreadable::Version(rest[0]));
        }
        let length = rest[1..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        if length > LONGEST.min(store.length()) || length < BEFORE as u64 {
            return Err(Unreadable::Damaged);
        }
        let mut body = vec![0; usize::try_from(length).unwrap_or_default().saturating_sub(BEFORE)];
        store.read_at(&mut body, BEFORE as u64)?;
        if !rest.ends_with(&sum(&body).to_le_bytes()) {
            return Err(Unreadable::Damaged);
        }
        let (mut sequence, words) = decode(&body)
            .filter(|(sequence, _)| sequence.check().is_ok())
            .ok_or(Unreadable::Damaged)?;
        let room = sequence.room(length).ok_or(Unreadable::Damaged)?;
        let size = sequence.largest().and_then(|largest| room.checked_add(largest));
        if size.is_none_or(|size| size > store.length()) {
            return Err(Unreadable::Damaged);
        }
        if let Some((_, bad)) = sequence.area(store, room)? {
            sequence.listed = bad.listed;
        }
        Ok((sequence, words, room))
    }

    /// Keeps the list of sectors in a journal whose room for moves begins at byte `room`, and
    /// flushes it; false in an older journal, which has no room for it.
    pub fn keep_list(&self, store: &dyn Store, room: u64) -> Result<bool, Errno> {
        let Some((area, was)) = self.area(store, room)? else { return Ok(false) };
        let bad = BadSectors::new(self.listed.clone());
        if bad != was {
            area.keep(store, &bad)?;
        }
        Ok(true)
    }

    /// The room for the list in a journal, and what is there; `None` in an older one.
    fn area(&self, store: &dyn Store, room: u64) -> Result<Option<(Area, BadSectors)>, Errno> {
        match self.list_at(room) {
            Some(at) => Area::open(store, at, self.id),
            None => Ok(None),
        }
    }

    /// First byte of the room for the list, behind that of the largest move with its own list.
    pub(super) fn list_at(&self, room: u64) -> Option<u64> {
        let end = room.checked_add(self.largest()?)?;
        round_up(end, BLOCK)?.checked_add(ROOM)
    }

    /// First byte of the room behind a head of `length` bytes.
    pub fn room(&self, length: u64) -> Option<u64> {
        round_up(length, BLOCK)
    }

    /// Bytes that the journal of its largest move may take; 0 if no move needs one.
    fn largest(&self) -> Option<u64> {
        if !self.moves().any(Movement::overlaps) {
            return Some(0);
        }
        let table = self.stages.iter().map(|stage| stage.turn.change.len()).max()? as u64;
        let table = table.checked_mul(self.sector)?.checked_mul(2)?;
        let head =
            self.sizes.end.checked_mul(2)?.checked_add(table)?.checked_add(REBASED + GAPS)?;
        let notes = head.checked_add(4 * BLOCK)?;
        notes.checked_add(round_up(self.sizes.piece, BLOCK)?.checked_mul(2)?)
    }
}

/// The sequence and its words in the part of a head under the CRC; `None` if it cannot be true.
fn decode(body: &[u8]) -> Option<(Sequence, String)> {
    let mut rest = Rest(body);
    let [medium, sector] = [rest.number()?, rest.number()?];
    let mut sizes = rest.sizes()?;
    let count = usize::try_from(rest.number()?).ok().filter(|&count| count <= STAGES)?;
    let id = *rest.bytes(16)?.first_chunk()?;
    sizes.near = rest.number()?;
    let words = String::from_utf8(rest.blob()?.to_vec()).ok()?;
    let mut stages = Vec::new();
    for _ in 0..count {
        let moved = Movement { from: rest.number()?, to: rest.number()?, length: rest.number()? };
        let turn = Turn {
            fresh: rest.patches()?,
            change: rest.patches()?,
            was: rest.patches()?,
            gone: rest.patches()?,
        };
        stages.push(Stage { moved: Some(moved).filter(|moved| moved.length > 0), turn });
    }
    let sequence = Sequence { id, medium, sector, sizes, stages, listed: Vec::new() };
    rest.0.is_empty().then_some((sequence, words))
}
