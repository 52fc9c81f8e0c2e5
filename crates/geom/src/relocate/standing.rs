//! How a disk and a journal stand to each other when a move is resumed.
//!
//! # What a crash leaves
//! Step `n` is noted in the journal, and that is flushed; then the mark of `n` and the writes of `n` go to the disk, and that is flushed. So a
//! disk whose mark says `m` has all steps before `m` on it, and of the journals of this move only two are of its moment: the one whose
//! last note is `m`, and the one whose last note is `m + 1`, if the mark of `m + 1` was lost with some of the writes of `m + 1`. Any
//! other pair is refused.
//!
//! # What is left to prove
//! A pair with the right numbers may still be of two moments that are one step apart. The sums in the note find that: the piece before must
//! be whole at the new place, the piece after must be whole at the old one, and the piece itself in the journal, at the old place or at
//! the new one.

use super::carry::Interrupted;
use super::journal::Journal;
use super::note::{Note, is_copied, is_source};
use super::{Mark, Move, Phase, Sealed};
use crate::base::error::Errno;
use crate::base::patch::Patch;
use crate::base::store::Store;

/// What a medium writes whole or not at all, in bytes.
const ATOM: usize = 512;

/// The stand of a disk in a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing is known of it but that the move must not go on.
    Other(Mismatch),
    /// Nothing of the move has been done, as far as any reader sees.
    Untouched,
    /// The move is half done, and goes on from there.
    Half(Start),
    /// It is done.
    Done,
}

/// Why a journal and a disk do not belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The disk does not begin with the mark of this move: it is another one, or one from before or after the move.
    Unmarked,
    /// The mark is damaged.
    Trace,
    /// The table is neither the old one nor the new one, or not the one of this step.
    Table,
    /// The disk is at one step, the journal at another: one of them is an older copy.
    Apart {
        /// Number of the step in the mark.
        disk: u64,
        /// Number of the step in the last note; `None` if there is no note.
        journal: Option<u64>,
    },
    /// The steps fit, and what was written in them differs.
    Seal(u64),
    /// The notes of the journal are not of one move.
    Notes,
    /// The bytes from there on the disk are not those of the journal's moment.
    Bytes(u64),
}

/// Where a move goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// The last note of the journal; `None` from the first step on.
    pub note: Option<Note>,
    /// Where the bytes of its piece are.
    pub held: Held,
    /// Whether zeros have to be written once more before.
    pub blank: bool,
}

/// A place where the bytes of a piece are whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Held {
    /// The old place.
    #[default]
    Source,
    /// The journal.
    Saved,
    /// The new place: the step is done.
    Copied,
}

/// What the table on the disk says.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Says {
    /// All of it is the old table.
    old: bool,
    /// All of it is the new table.
    new: bool,
    /// Every sector is of one of the two.
    either: bool,
}

impl Move {
    /// The stand of `disk`, the provider with the table, in the move of `journal`. Both are flushed before a byte is believed: a run that
    /// was killed may have left writes in their caches.
    pub fn standing(&self, journal: &Journal<'_>, disk: &dyn Store) -> Result<Standing, Interrupted> {
        journal.flush().map_err(Interrupted::Journal)?;
        disk.flush().map_err(|e| Interrupted::Disk(self.shown(), e))?;
        let note = match journal.last(self) {
            Ok(note) => note,
            Err(None) => return Ok(Standing::Other(Mismatch::Notes)),
            Err(Some(errno)) => return Err(Interrupted::Journal(errno)),
        };
        let failed = |at: u64| move |errno: Errno| Interrupted::Disk(at, errno);
        let says = self.says(disk).map_err(failed(0))?;
        if !self.overlaps() || !says.either {
            return Ok(Standing::Other(Mismatch::Table));
        }
        let mut first = [0; ATOM];
        disk.read_at(&mut first, self.shown()).map_err(failed(self.shown()))?;
        let mark = Mark::read(&first).filter(|mark| self.is_mine(mark));
        let Some(sealed) = mark.and_then(|mark| mark.sealed) else {
            return Ok(if Mark::is_trace(&first) { Standing::Other(Mismatch::Trace) } else { self.unmarked(note, says) });
        };
        let apart = Standing::Other(Mismatch::Apart { disk: sealed.step, journal: note.map(|note| note.step) });
        match note.filter(|note| note.step < self.steps()) {
            Some(note) if note.step == sealed.step || note.step == sealed.step + 1 => self.half(journal, disk, (note, sealed, says)),
            _ => Ok(apart),
        }
    }

    fn is_mine(&self, mark: &Mark) -> bool {
        (mark.id, mark.from, mark.to, mark.length) == (self.id, self.from, self.to, self.length)
    }

    /// A disk without the mark, which is the first to be written and the last to go.
    fn unmarked(&self, note: Option<Note>, says: Says) -> Standing {
        let phase = note.map(|note| self.phase(note.step).map(|(phase, _)| phase));
        match phase {
            None | Some(Some(Phase::Mark)) if says.old => Standing::Untouched,
            Some(None | Some(Phase::Clean)) if says.new => Standing::Done,
            Some(Some(Phase::Ends)) if says.new && self.to < self.from => Standing::Done,
            _ => Standing::Other(Mismatch::Unmarked),
        }
    }

    /// A disk with the mark of the step of `note` or of the one before it.
    fn half(&self, journal: &Journal<'_>, disk: &dyn Store, (note, sealed, says): (Note, Sealed, Says)) -> Result<Standing, Interrupted> {
        let other = |why: Mismatch| Ok(Standing::Other(why));
        let lags = sealed.step < note.step;
        if sealed.seal != if lags { note.before } else { note.seal() } {
            return other(Mismatch::Seal(sealed.step));
        }
        // The table is flushed before the note of the step behind it.
        let table = self.number(Phase::Table);
        if note.step < table && !says.old || note.step > table && !says.new {
            return other(Mismatch::Table);
        }
        let mut blank = false;
        if lags {
            match self.phase(sealed.step) {
                Some((Phase::Copy, nth)) => {
                    let piece = self.nth(nth);
                    if !is_copied(disk, piece, note.behind).map_err(|e| Interrupted::Disk(piece.to, e))? {
                        return other(Mismatch::Bytes(piece.to));
                    }
                }
                // A new table may have been used since: then the ends were on the medium before it, and are other ones by now.
                Some((Phase::Ends, _)) if says.old => {
                    if let Some(at) = self.unlike_ends(disk)? {
                        return other(Mismatch::Bytes(at));
                    }
                }
                Some((Phase::Blank, _)) => blank = true,
                _ => {}
            }
        }
        if let Some(next) = self.copies(note.step + 1)
            && !is_source(self, disk, next, note.ahead).map_err(|e| Interrupted::Disk(next.from, e))?
        {
            return other(Mismatch::Bytes(next.from));
        }
        let Some(piece) = self.copies(note.step) else {
            return Ok(Standing::Half(Start { note: Some(note), held: Held::Source, blank }));
        };
        let held = if journal.saved(&note, piece).map_err(Interrupted::Journal)?.is_some() {
            Held::Saved
        } else if is_source(self, disk, piece, note.copied).map_err(|e| Interrupted::Disk(piece.from, e))? {
            Held::Source
        } else if is_copied(disk, piece, note.copied).map_err(|e| Interrupted::Disk(piece.to, e))? {
            Held::Copied
        } else {
            return other(Mismatch::Bytes(piece.from));
        };
        Ok(Standing::Half(Start { note: Some(note), held, blank }))
    }

    /// The first byte of the new place at which an end is not as the move writes it.
    fn unlike_ends(&self, disk: &dyn Store) -> Result<Option<u64>, Interrupted> {
        for patch in self.ends() {
            let mut there = vec![0; patch.bytes.len()];
            disk.read_at(&mut there, patch.offset).map_err(|e| Interrupted::Disk(patch.offset, e))?;
            if there != patch.bytes {
                return Ok(Some(patch.offset));
            }
        }
        Ok(None)
    }

    /// A write may have been cut short at any sector, and what is written twice has been either.
    fn says(&self, disk: &dyn Store) -> Result<Says, Errno> {
        let mut says = Says { old: true, new: true, either: true };
        for patch in &self.table {
            let mut there = vec![0; patch.bytes.len()];
            disk.read_at(&mut there, patch.offset)?;
            for (at, bytes) in (patch.offset..).step_by(ATOM).zip(there.chunks(ATOM)) {
                let is = |patch: &Patch| patch.part(at, bytes.len()) == Some(bytes);
                let covers = |patch: &&Patch| patch.part(at, bytes.len()).is_some();
                let (was, becomes) = (self.was.iter().any(is), self.table.iter().any(is));
                says.old &= was;
                says.new &= self.table.iter().rev().find(covers).is_some_and(is);
                says.either &= was || becomes;
            }
        }
        Ok(says)
    }
}
