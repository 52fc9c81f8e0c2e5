//! Execution of a move, from its first step or from the point of an interruption.

use super::ahead::{Ahead, Loaded, Needed, loaded};
use super::bad::BadSectors;
use super::journal::Journal;
use super::note::Note;
use super::standing::{Held, Start};
use super::{Move, PART, Piece, STARTED, Step};
use crate::base::error::Errno;
use crate::base::patch::Patch;
use crate::base::store::Store;
use crate::base::topology::round_up;
use std::ops::Range;

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
/// journal. Returns the sectors of the list with all that failed.
pub fn carry(
    plan: &Move,
    disk: &dyn Store,
    journal: Option<&Journal<'_>>,
    start: Start,
    progress: &mut Progress<'_>,
) -> Result<BadSectors, Interrupted> {
    if start.blank {
        write(disk, plan.blank())?;
        flush(disk, plan.shown())?;
    }
    let Some(journal) = journal else {
        if plan.overlaps() {
            return Err(Interrupted::Journal(Errno::Unsupported));
        }
        return apart(plan, disk, progress);
    };
    std::thread::scope(|scope| {
        let behind = start.note.map_or(0, |note| note.step + 1);
        let ahead = Ahead::begin(scope, (plan, disk, journal), behind..plan.steps())?;
        let bad = plan.bad.clone();
        let mut run = Run { plan, disk, journal, last: None, next: None, ahead, bad };
        run.carry(start, progress)?;
        Ok(run.bad)
    })
}

/// Carries out a move whose places do not overlap, and that is done from the beginning.
fn apart(
    plan: &Move,
    disk: &dyn Store,
    progress: &mut Progress<'_>,
) -> Result<BadSectors, Interrupted> {
    let (mut spare, mut failed) = (vec![0; PART], Vec::new());
    for number in 0..plan.steps() {
        if !progress(plan.copied(number)) {
            return Err(Interrupted::Asked);
        }
        zero(plan, disk, number)?;
        match plan.step(number) {
            Some(Step::Copy(piece)) => stream(plan, disk, piece, (&mut spare, &mut failed))?,
            Some(Step::Write(patches)) => {
                // The copies are not on the medium yet.
                flush(disk, plan.shown())?;
                write(disk, patches)?;
                flush(disk, plan.shown())?;
            }
            None => {}
        }
    }
    progress(plan.copied(plan.steps()));
    let mut bad = plan.bad.clone();
    bad.fail(failed);
    Ok(bad)
}

/// Makes the holes zero that step `number` passes over.
fn zero(plan: &Move, disk: &dyn Store, number: u64) -> Result<(), Interrupted> {
    plan.holes(number).into_iter().try_for_each(|hole| {
        let done = disk.zero(hole.start, hole.end - hole.start);
        done.map_err(|e| Interrupted::Disk(hole.start, e))
    })
}

/// Move in progress: the note of its last step, and the bytes of the next one.
struct Run<'a> {
    plan: &'a Move,
    disk: &'a dyn Store,
    journal: &'a Journal<'a>,
    last: Option<Note>,
    /// Bytes of the next step. They are read before the current step begins, for the sums in that
    /// step's note.
    next: Option<Needed>,
    ahead: Ahead,
    /// Sectors that may be unreadable, with those that failed in this run.
    bad: BadSectors,
}

impl Run<'_> {
    fn carry(&mut self, start: Start, progress: &mut Progress<'_>) -> Result<(), Interrupted> {
        let (plan, disk) = (self.plan, self.disk);
        for number in start.note.map_or(0, |note| note.step)..plan.steps() {
            if !progress(plan.copied(number)) {
                return Err(Interrupted::Asked);
            }
            let step = plan.step(number);
            let (piece, note) = match start.note.filter(|note| note.step == number) {
                Some(note) => (self.again(note, start)?, note),
                None => self.begin(number)?,
            };
            write(disk, plan.marked(&note))?;
            zero(plan, disk, number)?;
            match step {
                Some(Step::Copy(at)) => {
                    // A piece that is at the new place already needs only the mark.
                    if let Some(mut loaded) = piece {
                        self.put(at, &mut loaded.bytes)?;
                        self.ahead.free(loaded);
                    }
                    flush(disk, at.to)?;
                }
                Some(Step::Write(patches)) => {
                    write(disk, patches)?;
                    flush(disk, plan.shown())?;
                }
                None => {}
            }
            self.last = Some(note);
        }
        progress(plan.copied(plan.steps()));
        self.begin(plan.steps())?;
        Ok(())
    }

    /// Begins step `number`: writes its note, and returns the bytes that it copies, if any.
    fn begin(&mut self, number: u64) -> Result<(Option<Loaded>, Note), Interrupted> {
        let mut needed = match self.next.take() {
            None => self.needed(number)?,
            needed => needed,
        };
        let mut note = self.last.map_or(Note::first(self.journal.sum()), |last| last.next());
        let keeps = self.last.map_or(0, |last| last.keeps);
        let sums = needed.as_ref().map(Needed::sums).unwrap_or_default();
        if sums != (note.copied, keeps) {
            // The disk returned different bytes for the same read.
            return Err(self.unlike(number));
        }
        self.next = self.needed(number + 1)?;
        self.keep_failed(needed.as_mut())?;
        (note.ahead, note.keeps) = self.next.as_ref().map(Needed::sums).unwrap_or_default();
        let kept = self.plan.kept(number);
        note.saved = kept.is_some();
        note.kept = match kept {
            None => 0,
            Some(kept) if kept.first < number => self.last.map_or(0, |last| last.kept),
            Some(kept) if kept.is_of_another() => keeps,
            Some(_) => note.copied,
        };
        let saved = kept.filter(|kept| kept.first == number);
        let bytes = needed.as_ref().map(|Needed { piece, kept }| kept.as_ref().unwrap_or(piece));
        let saved = saved.as_ref().zip(bytes.map(|loaded| loaded.bytes.as_slice()));
        self.journal.note(&note, saved).map_err(Interrupted::Journal)?;
        let Some(Needed { piece, kept }) = needed else { return Ok((None, note)) };
        if let Some(kept) = kept {
            self.ahead.free(kept);
            self.ahead.saved();
        }
        Ok((Some(piece), note))
    }

    /// Keeps in the journal which sectors failed in the bytes of a step and of the next one. The
    /// note, which has the sums of these bytes, comes after that.
    fn keep_failed(&mut self, needed: Option<&mut Needed>) -> Result<(), Interrupted> {
        let steps = [needed, self.next.as_mut()].into_iter().flatten();
        let loaded = steps.flat_map(|Needed { piece, kept }| [Some(piece), kept.as_mut()]);
        let failed: Vec<_> = loaded.flatten().flat_map(|l| std::mem::take(&mut l.failed)).collect();
        if failed.is_empty() {
            return Ok(());
        }
        self.bad.fail(failed);
        self.journal.keep(&self.bad).map_err(Interrupted::Journal)
    }

    /// Continues the step that `note` began in an earlier run; returns the bytes that remain to be
    /// copied, if any.
    fn again(&mut self, note: Note, start: Start) -> Result<Option<Loaded>, Interrupted> {
        let Some(piece) = self.plan.copies(note.step) else { return Ok(None) };
        let kept = self.plan.kept(note.step);
        if let Some(kept) = kept.filter(|_| start.kept == Held::Source) {
            let loaded = self.source(kept.piece, note.kept)?;
            let saved = Some((&kept, loaded.bytes.as_slice()));
            self.journal.note(&note, saved).map_err(Interrupted::Journal)?;
        }
        if kept.is_some_and(|kept| kept.is_of_another() && kept.last > note.step) {
            self.ahead.saved();
        }
        match (start.held, kept) {
            (Held::Copied, _) => Ok(None),
            (Held::Source, _) => self.source(piece, note.copied).map(Some),
            (Held::Saved, kept) => {
                let kept = kept.ok_or(Interrupted::Journal(Errno::Io))?;
                let mut bytes = Vec::new();
                let sum = self.journal.kept(self.plan, &kept, &mut bytes);
                match sum.map_err(Interrupted::Journal)? {
                    sum if sum == note.copied => {
                        Ok(Some(Loaded { bytes, sum, failed: Vec::new() }))
                    }
                    _ => Err(Interrupted::Journal(Errno::Io)),
                }
            }
        }
    }

    /// The bytes of `piece` at the old place, whose sum is to be `wanted`.
    fn source(&self, piece: Piece, wanted: u32) -> Result<Loaded, Interrupted> {
        let loaded = loaded(self.plan, self.disk, (piece, false), Vec::new())?;
        if loaded.sum == wanted {
            return Ok(loaded);
        }
        Err(Interrupted::Disk(piece.from, Errno::Io))
    }

    /// The bytes that step `number` needs; `None` if it copies none.
    fn needed(&self, number: u64) -> Result<Option<Needed>, Interrupted> {
        self.plan.copies(number).map(|_| self.ahead.next(self.plan)).transpose()
    }

    /// Writes `bytes`, which are those of `piece` without its gaps, to the new place.
    fn put(&self, piece: Piece, bytes: &mut [u8]) -> Result<(), Interrupted> {
        let (plan, mut failed) = (self.plan, piece.to);
        let done = plan.each(piece, bytes, &mut |at, bytes| {
            for (at, part) in (plan.to + at..).step_by(STARTED).zip(bytes.chunks(STARTED)) {
                failed = at;
                put(self.disk, part, at)?;
                self.ahead.written(at, part.len() as u64);
            }
            Ok(())
        });
        done.map_err(|e| Interrupted::Disk(failed, e))
    }

    fn unlike(&self, number: u64) -> Interrupted {
        Interrupted::Disk(self.plan.copies(number).map_or(0, |piece| piece.from), Errno::Io)
    }
}

impl Needed {
    /// The sums of the piece, and of what is saved before it.
    fn sums(&self) -> (u32, u32) {
        (self.piece.sum, self.kept.as_ref().map_or(0, |kept| kept.sum))
    }
}

/// Copies `piece`, which does not overlap its copy, part by part, through `spare`; adds to `failed`
/// what fails of the list.
fn stream(
    plan: &Move,
    disk: &dyn Store,
    piece: Piece,
    (spare, failed): (&mut [u8], &mut Vec<Range<u64>>),
) -> Result<(), Interrupted> {
    for used in plan.parts(piece) {
        let mut at = used.start;
        while at < used.end {
            let length = (used.end - at).min(spare.len() as u64);
            let part = &mut spare[..usize::try_from(length).unwrap_or(PART)];
            plan.fill(disk, at, part, Some(failed))
                .map_err(|e| plan.unread_in(disk, at..at + length, e))?;
            put(disk, part, plan.to + at).map_err(|e| Interrupted::Disk(plan.to + at, e))?;
            at += length;
        }
    }
    disk.start_writeback(piece.to, piece.length);
    Ok(())
}

impl Move {
    /// The failure `errno` to read `piece`, with the sector at which it fails; sectors of the list
    /// may fail if they are `tried`.
    pub(super) fn unread(
        &self,
        disk: &dyn Store,
        (piece, tried): (Piece, bool),
        errno: Errno,
    ) -> Interrupted {
        let fails = |part| self.unread_at(disk, part, tried);
        let at = self.parts(piece).find_map(fails).unwrap_or(piece.from - self.from);
        Interrupted::Unread(self.from + at, errno)
    }

    /// The failure `errno` to read `part` of the range, with the sector at which it fails.
    fn unread_in(&self, disk: &dyn Store, part: Range<u64>, errno: Errno) -> Interrupted {
        let first = part.start;
        Interrupted::Unread(self.from + self.unread_at(disk, part, true).unwrap_or(first), errno)
    }

    /// The first sector in `part` of the range that cannot be read.
    fn unread_at(&self, disk: &dyn Store, part: Range<u64>, tried: bool) -> Option<u64> {
        let size = usize::try_from(self.sector).ok()?;
        let (mut sector, mut failed) = (vec![0; size], Vec::new());
        part.step_by(size).find(|&at| {
            failed.clear();
            self.fill(disk, at, &mut sector, tried.then_some(&mut failed)).is_err()
        })
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
