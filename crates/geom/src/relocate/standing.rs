//! Comparison of a disk and a journal when a move is resumed.
//!
//! # State after a crash
//! Step `n` is noted in the journal, and that is flushed; then the mark of `n` and the writes of
//! `n` go to the disk, and that is flushed. So a disk with the mark of `m` has all steps before `m`
//! on it. Of the journals of this move only two are of its moment: the one with `m` as its last
//! note, and the one with `m + 1`, if the mark of `m + 1` was lost with some of the writes of `m +
//! 1`. Any other pair is refused.
//!
//! # Proof of the rest
//! A pair with the right numbers may still be of two moments that are one step apart. The sums in
//! the note find that: the piece before must be whole at the new place, the piece after must be
//! whole at the old one, and the piece itself in the journal, at the old place or at the new one.
//! Where pieces are interlaced, what the journal keeps for a later step must be whole too.

use super::carry::Interrupted;
use super::journal::Journal;
use super::note::{Note, is_copied, is_source};
use super::pieces::Kept;
use super::{ATOM, Mark, Move, Phase, Piece, Sealed};
use crate::base::error::Errno;
use crate::base::patch::Patch;
use crate::base::store::Store;

/// State of a disk in a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Mismatch of disk and journal: the move must not go on.
    Other(Mismatch),
    /// Nothing of the move is visible to a reader.
    Untouched,
    /// Half of the move is done; it goes on from there.
    Half(Start),
    /// All steps of the move are done.
    Done,
}

/// Contradiction between a journal and a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Disk without the mark of this move: another disk, or one from before or after the move.
    Unmarked,
    /// Damaged mark at the place of the mark.
    Trace,
    /// Table that is neither the old one nor the new one, or not the one of this step.
    Table,
    /// Disk at one step, journal at another: one of them is an older copy.
    Apart {
        /// Number of the step in the mark.
        disk: u64,
        /// Number of the step in the last note; `None` if there is no note.
        journal: Option<u64>,
    },
    /// Different writes in the same step, whose number is given.
    Seal(u64),
    /// Notes of the journal that are not of one move.
    Notes,
    /// Bytes on the disk, from there on, that are not of the journal's moment.
    Bytes(u64),
}

/// Point at which a move goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// Last note of the journal; `None` from the first step on.
    pub note: Option<Note>,
    /// Place where the bytes of its piece are whole.
    pub held: Held,
    /// Place where the bytes that the journal is to have are whole.
    pub kept: Held,
    /// True if the zeroes of the blank phase have to be written once more before.
    pub blank: bool,
}

/// Place where the bytes of a piece are whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Held {
    /// Old place, from which they are copied.
    #[default]
    Source,
    /// Journal, in which they are saved.
    Saved,
    /// New place: the step is done.
    Copied,
}

/// State of the table on the disk, compared with the old one and the new one.
#[derive(Clone, Copy, PartialEq, Eq)]
struct TableState {
    /// True if every sector is of the old table.
    old: bool,
    /// True if every sector is of the new table.
    new: bool,
    /// True if every sector is of one of the two.
    either: bool,
}

impl Move {
    /// The state of `disk`, the provider with the table, in the move of `journal`. Both are flushed
    /// before a byte is believed: a run that was killed may have left writes in their caches.
    pub fn standing(
        &self,
        journal: &Journal<'_>,
        disk: &dyn Store,
    ) -> Result<Standing, Interrupted> {
        journal.flush().map_err(Interrupted::Journal)?;
        disk.flush().map_err(|e| Interrupted::Disk(self.shown(), e))?;
        let note = match journal.last(self) {
            Ok(note) => note,
            Err(None) => return Ok(Standing::Other(Mismatch::Notes)),
            Err(Some(errno)) => return Err(Interrupted::Journal(errno)),
        };
        let failed = |at: u64| move |errno: Errno| Interrupted::Disk(at, errno);
        let state = self.state(disk).map_err(failed(0))?;
        if !self.overlaps() || !state.either {
            return Ok(Standing::Other(Mismatch::Table));
        }
        let mut first = [0; ATOM];
        disk.read_at(&mut first, self.shown()).map_err(failed(self.shown()))?;
        let mark = Mark::read(&first).filter(|mark| self.is_mine(mark));
        let Some(sealed) = mark.and_then(|mark| mark.sealed) else {
            return Ok(if Mark::is_trace(&first) {
                Standing::Other(Mismatch::Trace)
            } else {
                self.unmarked(note, state)
            });
        };
        let apart = Standing::Other(Mismatch::Apart {
            disk: sealed.step,
            journal: note.map(|note| note.step),
        });
        match note.filter(|note| note.step < self.steps()) {
            Some(note) if note.step == sealed.step || note.step == sealed.step + 1 => {
                self.half(journal, disk, (note, sealed, state))
            }
            _ => Ok(apart),
        }
    }

    fn is_mine(&self, mark: &Mark) -> bool {
        (mark.id, mark.from, mark.to, mark.length) == (self.id, self.from, self.to, self.length)
    }

    /// The state of a disk without the mark, which is the first to be written and the last to go.
    fn unmarked(&self, note: Option<Note>, state: TableState) -> Standing {
        let phase = note.map(|note| self.phase(note.step).map(|(phase, _)| phase));
        match phase {
            None | Some(Some(Phase::Mark)) if state.old => Standing::Untouched,
            Some(None | Some(Phase::Clean)) if state.new => Standing::Done,
            Some(Some(Phase::Ends)) if state.new && self.to < self.from => Standing::Done,
            _ => Standing::Other(Mismatch::Unmarked),
        }
    }

    /// The state of a disk with the mark of the step of `note` or of the one before it.
    fn half(
        &self,
        journal: &Journal<'_>,
        disk: &dyn Store,
        (note, sealed, state): (Note, Sealed, TableState),
    ) -> Result<Standing, Interrupted> {
        let other = |why: Mismatch| Ok(Standing::Other(why));
        let lags = sealed.step < note.step;
        if sealed.seal != if lags { note.before } else { note.seal() } {
            return other(Mismatch::Seal(sealed.step));
        }
        // The table is flushed before the note of the step behind it.
        let table = self.number(Phase::Table);
        if note.step < table && !state.old || note.step > table && !state.new {
            return other(Mismatch::Table);
        }
        // Until the old ends are zero, a file system can be used whose superblock is behind the
        // mark.
        if note.step <= self.number(Phase::Blank)
            && let Some(at) = self.used_since(disk).map_err(|e| Interrupted::Disk(self.from, e))?
        {
            return other(Mismatch::Bytes(at));
        }
        let mut blank = false;
        if lags {
            match self.phase(sealed.step) {
                Some((Phase::Copy, nth)) => {
                    let piece = self.nth(nth);
                    if !is_copied(self, disk, piece, note.behind)
                        .map_err(|e| Interrupted::Disk(piece.to, e))?
                    {
                        return other(Mismatch::Bytes(piece.to));
                    }
                }
                // A new table may have been in use since. Then the ends were on the medium before
                // it, and have changed by now.
                Some((Phase::Ends, _)) if state.old => {
                    if let Some(at) = self.unlike_ends(disk)? {
                        return other(Mismatch::Bytes(at));
                    }
                }
                Some((Phase::Blank, _)) => blank = true,
                _ => {}
            }
        }
        let at_old = |piece: Piece, sum| {
            is_source(self, disk, piece, sum).map_err(|e| self.unread(disk, (piece, false), e))
        };
        let at_new = |piece: Piece, sum| {
            is_copied(self, disk, piece, sum).map_err(|e| Interrupted::Disk(piece.to, e))
        };
        if let Some(next) = self.copies(note.step + 1) {
            let kept = self.kept(note.step + 1).filter(Kept::is_of_another);
            let is_kept = kept.is_some_and(|kept| kept.last == note.step + 1);
            if !is_kept && !at_old(next, note.ahead)? {
                return other(Mismatch::Bytes(next.from));
            }
            if let Some(kept) = kept.filter(|kept| kept.first == note.step + 1)
                && !at_old(kept.piece, note.keeps)?
            {
                return other(Mismatch::Bytes(kept.piece.from));
            }
        }
        let half = |held, kept| {
            // The zeros, written once more, would be over a copy that is the only one.
            if blank && held == Held::Copied {
                return other(Mismatch::Bytes(self.shown()));
            }
            Ok(Standing::Half(Start { note: Some(note), held, kept, blank }))
        };
        let Some(piece) = self.copies(note.step) else { return half(Held::Source, Held::Saved) };
        let kept = match self.kept(note.step) {
            None => None,
            Some(kept) => {
                let mut bytes = Vec::new();
                let sum = journal.kept(self, &kept, &mut bytes).map_err(Interrupted::Journal)?;
                let held = if note.saved && sum == note.kept {
                    Held::Saved
                } else if kept.first == note.step && at_old(kept.piece, note.kept)? {
                    Held::Source
                } else if kept.last == note.step && at_new(piece, note.copied)? {
                    Held::Copied
                } else {
                    return other(Mismatch::Bytes(kept.piece.from));
                };
                Some((kept, held))
            }
        };
        match kept {
            Some((kept, held)) if kept.last == note.step => half(held, held),
            _ => {
                let kept = kept.map_or(Held::Saved, |(_, held)| held);
                if at_old(piece, note.copied)? {
                    half(Held::Source, kept)
                } else if at_new(piece, note.copied)? {
                    half(Held::Copied, kept)
                } else {
                    other(Mismatch::Bytes(piece.from))
                }
            }
        }
    }

    /// First byte of an end at the old place that is neither what it was nor zero; `None` if there
    /// is none. The first sector may have the mark.
    fn used_since(&self, disk: &dyn Store) -> Result<Option<u64>, Errno> {
        let back = self.from + self.length - self.back.len() as u64;
        for (start, was) in [(self.from, &self.front), (back, &self.back)] {
            let mut there = vec![0; was.len()];
            self.read(disk, start - self.from, &mut there, None)?;
            for (at, (there, was)) in
                (start..).step_by(ATOM).zip(there.chunks(ATOM).zip(was.chunks(ATOM)))
            {
                let is_known = there == was || there.iter().all(|&byte| byte == 0);
                if !is_known && at != self.shown() {
                    return Ok(Some(at));
                }
            }
        }
        Ok(None)
    }

    /// First byte of an end at the new place that differs from the move's; `None` if none differs.
    fn unlike_ends(&self, disk: &dyn Store) -> Result<Option<u64>, Interrupted> {
        for patch in self.ends() {
            let mut there = vec![0; patch.bytes.len()];
            disk.read_at(&mut there, patch.offset)
                .map_err(|e| Interrupted::Disk(patch.offset, e))?;
            if there != patch.bytes {
                return Ok(Some(patch.offset));
            }
        }
        Ok(None)
    }

    /// Compares the table on the disk with the old one and the new one, sector by sector. A write
    /// may have been cut short at any sector; a sector that is written twice may have either
    /// contents.
    fn state(&self, disk: &dyn Store) -> Result<TableState, Errno> {
        let mut state = TableState { old: true, new: true, either: true };
        for patch in &self.table {
            let mut there = vec![0; patch.bytes.len()];
            disk.read_at(&mut there, patch.offset)?;
            for (at, bytes) in (patch.offset..).step_by(ATOM).zip(there.chunks(ATOM)) {
                let is = |patch: &Patch| patch.part(at, bytes.len()) == Some(bytes);
                let covers = |patch: &&Patch| patch.part(at, bytes.len()).is_some();
                let (was, becomes) = (self.was.iter().any(is), self.table.iter().any(is));
                state.old &= was;
                state.new &= self.table.iter().rev().find(covers).is_some_and(is);
                state.either &= was || becomes;
            }
        }
        Ok(state)
    }
}
