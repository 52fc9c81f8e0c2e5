//! Execution of a move, from its first step or from the point of an interruption.

use super::journal::Journal;
use super::note::Note;
use super::standing::{Held, Start};
use super::{Move, PART, Piece, Step};
use crate::base::error::Errno;
use crate::base::patch::Patch;
use crate::base::store::Store;
use crate::base::topology::round_up;
use std::mem::take;

/// Reason for which a move ended before its last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// Failure of the disk, at that byte of the provider with the table.
    Disk(u64, Errno),
    /// Failure to read what is moved: the first sector that fails begins at that byte.
    Unread(u64, Errno),
    /// Failure of the journal.
    Journal(Errno),
    /// Request of the caller, through [`Progress`].
    Asked,
}

/// A callback that is told the bytes copied so far, before each step; `false` ends the move there.
pub type Progress<'a> = dyn FnMut(u64) -> bool + 'a;

/// Length in bytes, and alignment, of zeros that are not sent but requested with [`Store::zero`].
const RUN: u64 = 64 << 10;

/// Carries out the steps of `plan` on `disk`, from `start` on. A move that overlaps must have a
/// journal.
pub fn carry(
    plan: &Move,
    disk: &dyn Store,
    journal: Option<&Journal<'_>>,
    start: Start,
    progress: &mut Progress<'_>,
) -> Result<(), Interrupted> {
    if plan.overlaps() && journal.is_none() {
        return Err(Interrupted::Journal(Errno::Unsupported));
    }
    if start.blank {
        write(disk, plan.blank())?;
        flush(disk, plan.shown())?;
    }
    let first = start.note.map_or(0, |note| note.step);
    let (mut run, mut copied) = (
        Run { plan, disk, journal, last: None, loaded: None, spare: Vec::new() },
        plan.copied(first),
    );
    for number in first..plan.steps() {
        if !progress(copied) {
            return Err(Interrupted::Asked);
        }
        let step = plan.step(number);
        let (bytes, note) = match start.note.filter(|note| note.step == number) {
            Some(note) => run.again(note, start.held)?,
            None => run.begin(number)?,
        };
        let mark = plan.marked(&note).filter(|_| journal.is_some());
        write(disk, mark)?;
        for hole in plan.holes(number) {
            let done = disk.zero(hole.start, hole.end - hole.start);
            done.map_err(|e| Interrupted::Disk(hole.start, e))?;
        }
        match step {
            Some(Step::Copy(piece)) if journal.is_none() => run.stream(piece)?,
            Some(Step::Copy(piece)) => {
                // A piece that is at the new place already needs only the mark.
                if let Some(Loaded { mut bytes, .. }) = bytes {
                    run.put(piece, &mut bytes)?;
                    disk.start_writeback(piece.to, piece.length);
                    run.spare = bytes;
                }
                flush(disk, piece.to)?;
            }
            Some(Step::Write(patches)) => {
                if journal.is_none() {
                    // The copies are not on the medium yet.
                    flush(disk, plan.shown())?;
                }
                write(disk, patches)?;
                flush(disk, plan.shown())?;
            }
            None => {}
        }
        copied = plan.copied(number + 1);
        run.last = Some(note);
    }
    progress(copied);
    if journal.is_some() {
        run.begin(plan.steps())?;
    }
    Ok(())
}

/// Move in progress: the note of its last step, and the bytes of the next one.
struct Run<'a> {
    plan: &'a Move,
    disk: &'a dyn Store,
    journal: Option<&'a Journal<'a>>,
    last: Option<Note>,
    /// Piece of the next step. It is read before the current step begins, for the sum in that
    /// step's note.
    loaded: Option<Loaded>,
    /// Memory of a finished piece: fresh memory for each costs as much as reading it.
    spare: Vec<u8>,
}

/// Piece that is in memory.
struct Loaded {
    bytes: Vec<u8>,
    /// Sum of its bytes, CRC-32.
    sum: u32,
}

impl Run<'_> {
    /// Begins step `number`: writes its note, and returns the bytes that it copies, if any.
    fn begin(&mut self, number: u64) -> Result<(Option<Loaded>, Note), Interrupted> {
        let Some(journal) = self.journal else { return Ok((None, Note::default())) };
        let piece = match self.loaded.take() {
            Some(piece) => Some(piece),
            None => self.load(number)?,
        };
        let mut note = self.last.map_or(Note::first(journal.sum()), |last| last.next());
        if piece.as_ref().map_or(0, |piece| piece.sum) != note.copied {
            // The disk returned different bytes for the same read.
            return Err(self.unlike(number));
        }
        self.loaded = self.load(number + 1)?;
        note.ahead = self.loaded.as_ref().map_or(0, |piece| piece.sum);
        note.saved = self.plan.copies(number).is_some_and(|piece| piece.saved);
        self.save(&note, piece.as_ref())?;
        Ok((piece, note))
    }

    /// Continues the step that `note` began in an earlier run; returns the bytes that remain to be
    /// copied, if any.
    fn again(&mut self, note: Note, held: Held) -> Result<(Option<Loaded>, Note), Interrupted> {
        let journal = self.journal.ok_or(Interrupted::Journal(Errno::Unsupported))?;
        let piece = match (self.plan.copies(note.step), held) {
            (None, _) | (_, Held::Copied) => None,
            (Some(piece), Held::Saved) => {
                let saved = journal.saved(self.plan, &note, piece).map_err(Interrupted::Journal)?;
                Some(Loaded {
                    bytes: saved.ok_or(Interrupted::Journal(Errno::Io))?,
                    sum: note.copied,
                })
            }
            (Some(_), Held::Source) => {
                let piece = self.load(note.step)?;
                if piece.as_ref().map(|piece| piece.sum) != Some(note.copied) {
                    return Err(self.unlike(note.step));
                }
                if note.saved {
                    self.save(&note, piece.as_ref())?;
                }
                piece
            }
        };
        Ok((piece, note))
    }

    /// The bytes that step `number` copies, from the old place; `None` if it copies none.
    fn load(&mut self, number: u64) -> Result<Option<Loaded>, Interrupted> {
        let Some(piece) = self.plan.copies(number) else { return Ok(None) };
        let (mut bytes, mut sum) = (take(&mut self.spare), crc32fast::Hasher::new());
        self.plan
            .load(self.disk, piece, &mut bytes, &mut |part| sum.update(part))
            .map_err(|e| self.plan.unread(self.disk, piece, e))?;
        Ok(Some(Loaded { bytes, sum: sum.finalize() }))
    }

    /// Copies `piece`, which does not overlap its copy, part by part.
    fn stream(&mut self, piece: Piece) -> Result<(), Interrupted> {
        let (plan, disk) = (self.plan, self.disk);
        let first = piece.from - plan.from;
        let mut spare = take(&mut self.spare);
        spare.resize(PART, 0);
        for (used, gap) in plan.gaps.split(first..first + piece.length) {
            let mut at = if gap.is_none() { used.start } else { used.end };
            while at < used.end {
                let length = (used.end - at).min(PART as u64);
                let part = &mut spare[..usize::try_from(length).unwrap_or(PART)];
                plan.fill(disk, at, part).map_err(|e| {
                    let (from, to) = (plan.from + at, plan.to + at);
                    plan.unread(disk, Piece { from, to, length, saved: false }, e)
                })?;
                put(disk, part, plan.to + at).map_err(|e| Interrupted::Disk(plan.to + at, e))?;
                at += length;
            }
        }
        self.spare = spare;
        disk.start_writeback(piece.to, piece.length);
        Ok(())
    }

    /// Writes `bytes`, which are those of `piece` without its gaps, to the new place.
    fn put(&self, piece: Piece, bytes: &mut [u8]) -> Result<(), Interrupted> {
        let (plan, mut failed) = (self.plan, piece.to);
        let done = plan.each(piece, bytes, &mut |at, bytes| {
            failed = plan.to + at;
            put(self.disk, bytes, failed)
        });
        done.map_err(|e| Interrupted::Disk(failed, e))
    }

    fn save(&self, note: &Note, piece: Option<&Loaded>) -> Result<(), Interrupted> {
        let saved = piece.filter(|_| note.saved).map(|piece| piece.bytes.as_slice());
        self.journal
            .map_or(Ok(()), |journal| journal.note(note, saved))
            .map_err(Interrupted::Journal)
    }

    fn unlike(&self, number: u64) -> Interrupted {
        Interrupted::Disk(self.plan.copies(number).map_or(0, |piece| piece.from), Errno::Io)
    }
}

impl Move {
    /// The failure `errno` to read `piece`, with the sector at which it fails.
    pub(super) fn unread(&self, disk: &dyn Store, piece: Piece, errno: Errno) -> Interrupted {
        let mut sector = vec![0; usize::try_from(self.sector).unwrap_or_default()];
        let first = piece.from - self.from;
        for (part, gap) in self.gaps.split(first..first + piece.length) {
            let count = if gap.is_none() { (part.end - part.start) / self.sector } else { 0 };
            let mut all = (0..count).map(|nth| part.start + nth * self.sector);
            if let Some(at) = all.find(|&at| self.fill(disk, at, &mut sector).is_err()) {
                return Interrupted::Unread(self.from + at, errno);
            }
        }
        Interrupted::Unread(piece.from, errno)
    }
}

/// Writes `patches` in order.
pub(super) fn write(
    disk: &dyn Store,
    patches: impl IntoIterator<Item = Patch>,
) -> Result<(), Interrupted> {
    for patch in patches {
        if patch.after_flush {
            flush(disk, patch.offset)?;
        }
        put(disk, &patch.bytes, patch.offset).map_err(|e| Interrupted::Disk(patch.offset, e))?;
    }
    Ok(())
}

fn flush(disk: &dyn Store, at: u64) -> Result<(), Interrupted> {
    disk.flush().map_err(|e| Interrupted::Disk(at, e))
}

/// Writes `bytes` at `at`; long zeros are requested in the way that frees their space in a sparse
/// file.
fn put(disk: &dyn Store, bytes: &[u8], at: u64) -> Result<(), Errno> {
    let end = bytes.len() as u64;
    let index = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let next =
        |from: u64| round_up(at + from + 1, RUN).map_or(end, |boundary| (boundary - at).min(end));
    let is_zero = |from: u64, to: u64| {
        to - from == RUN && bytes[index(from)..index(to)].iter().all(|&byte| byte == 0)
    };
    let mut from = 0;
    while from < end {
        let mut to = next(from);
        let zero = is_zero(from, to);
        while to < end && is_zero(to, next(to)) == zero {
            to = next(to);
        }
        if zero {
            disk.zero(at + from, to - from)?;
        } else {
            disk.write_at(&bytes[index(from)..index(to)], at + from)?;
        }
        from = to;
    }
    Ok(())
}
