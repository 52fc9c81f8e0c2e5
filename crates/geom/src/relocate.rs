//! Moving a range of a provider, a partition with all its contents, so that nothing is lost
//! whatever interrupts it.
//!
//! A move is a list of [`Step`]s that is decided before the first byte is written. Until a step
//! begins, the disk and the journal hold everything that the step before it needs to be repeated.
//! To resume, it is enough to know which step was begun last, and that is in the journal before the
//! step begins.
//!
//! # A move onto itself
//! Where the old place and the new overlap, bytes are copied in an order in which none is
//! overwritten before it is copied: from the front if the new place is before the old one, else
//! from the end. A piece no longer than the distance lies apart from its copy, so the original
//! survives until the next piece begins. Where the distance is too short for that to be fast, the
//! journal has to help.
//!
//! - *Interlaced*: chunks as long as the distance are copied in [`PASSES`] passes, each of which
//!   takes every fourth chunk of a window. What a pass overwrites, the pass before has copied; the
//!   chunks that the first one overwrites, a fourth of all, are saved in the journal, and the last
//!   pass copies them from there.
//! - *Saved*: where even chunks would be too short, or gaps lie between them, every piece is saved.
//!
//! Half-way a file system would still be recognised at the old place, or at the new one, and be
//! mounted, checked and destroyed. So both ends, where every format keeps its signature, are kept
//! in the journal and written last. Meanwhile the partition that the table shows begins with a
//! [`Mark`]: at the old place with the old table if the new one is behind it, at the new place with
//! the new table if it is before.
//!
//! # A move apart
//! Where they do not overlap the table is written when everything is copied. Before that nothing
//! changes that a reader sees.
//!
//! # Journal and disk belong together
//! Either may come back from an older copy. So every step has a [`Note`] in the journal, sealed
//! over the seal of the note before it, and the mark carries the number and the seal of the step
//! that is being done: it is written with the step and reaches the medium under the same flush.
//! [`Move::standing`] resumes only where the two fit, and proves by checksums the one step in which
//! they may differ.

use crate::base::error::Errno;
use crate::base::patch::{self, Patch};
use crate::base::store::Store;
use crate::base::topology::is_whole;
use crate::mapping::slices::place;
use crate::table::Refusal;
use bad::BadSectors;
use gaps::Gaps;
use std::ops::Range;

mod ahead;
pub mod arrange;
pub mod bad;
mod carry;
pub mod draft;
pub mod gaps;
mod journal;
pub mod named;
mod note;
mod pieces;
pub mod schedule;
pub mod sequence;
mod standing;
pub mod unused;
pub mod whole;

pub use crate::format::moving::mark::{MAGIC, Mark, Sealed};
pub use carry::{Interrupted, Progress, carry};
pub(crate) use journal::MAGIC as JOURNAL;
pub(crate) use journal::Rest;
pub use journal::{Journal, LONGEST, Unreadable, VERSION};
pub use note::Note;
pub use pieces::{PASSES, Piece};
pub use standing::{Held, Mismatch, Standing, Start};

/// Sizes in bytes by which a move is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes at either end of the range in which every format keeps its signature.
    pub end: u64,
    /// Largest number of bytes copied at once.
    pub piece: u64,
    /// Distance from which on chunks as long as the distance are fast enough to be interlaced.
    pub near: u64,
    /// Distance from which on pieces as long as the distance are fast enough.
    pub far: u64,
}

impl Sizes {
    /// The numbers that a journal has before the identity of its move. The distance for interlaced
    /// pieces, which older ones lack, is behind it, so that the identity stays where it was.
    fn numbers(self) -> [u64; 3] {
        [self.end, self.piece, self.far]
    }
}

/// Sizes for media without caches that a loss of power empties: images in memory. A flush costs
/// nothing there, so short pieces take the place of the journal's copies, and stay in a processor's
/// cache.
pub const MEMORY: Sizes = Sizes { piece: 1 << 20, near: 256 << 10, far: 256 << 10, ..SIZES };

/// Sizes for real media. A medium writes 10 MiB in a small part of a second, beside which two
/// flushes are short; with pieces under 4 MiB they take most of the time. Four pieces are in memory
/// at once.
pub const SIZES: Sizes = Sizes { end: 1 << 20, piece: 10 << 20, near: 128 << 10, far: 4 << 20 };

/// Decided move. Addresses are those of the provider with the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Random identity, in the journal and in the mark.
    pub id: [u8; 16],
    /// Length of the provider in bytes.
    pub medium: u64,
    /// Logical sector of the provider, in bytes.
    pub sector: u64,
    /// First byte of the old place.
    pub from: u64,
    /// First byte of the new place.
    pub to: u64,
    /// Number of bytes that are moved.
    pub length: u64,
    /// Sizes by which the move is divided.
    pub sizes: Sizes,
    /// First bytes of the range, before the move.
    pub front: Vec<u8>,
    /// Last bytes of the range, before the move.
    pub back: Vec<u8>,
    /// Patches that adapt the contents to the new place (boot fields), in addresses of the range.
    pub rebased: Vec<Patch>,
    /// Patches that make the table show the new place.
    pub table: Vec<Patch>,
    /// Contents that `table` overwrites, patch by patch.
    pub was: Vec<Patch>,
    /// Ranges that are not copied, in addresses of the range.
    pub gaps: Gaps,
    /// Sectors that may be unreadable, as far as they are known: a journal has them behind its
    /// notes, since they may be found by the move itself.
    pub bad: BadSectors,
}

/// Unit of work that can be repeated until the next one begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Writes, in their order.
    Write(Vec<Patch>),
    /// Copy of one piece.
    Copy(Piece),
}

/// Phase of a move; their order depends on the direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Writing the mark, and nothing else.
    Mark,
    /// Zeroing every other signature.
    Blank,
    /// Writing the patched table.
    Table,
    /// Copying all but the ends, piece by piece.
    Copy,
    /// Writing both ends of the range.
    Ends,
    /// Zeroing the mark, if it was at the old place.
    Clean,
}

impl Move {
    /// Checks every number, since a journal may be hostile; a refusal says which one is wrong.
    pub fn check(&self) -> Result<(), Refusal> {
        let sector = self.sector;
        let refuse = |found: String| Err(Refusal::new(found, ""));
        if !sector.is_power_of_two() || !(512..=1 << 16).contains(&sector) {
            return refuse(format!("sectors of {sector} bytes"));
        }
        let whole = [self.from, self.to, self.length, self.sizes.end, self.sizes.piece]
            .iter()
            .all(|&bytes| is_whole(bytes, sector));
        if !whole
            || self.length == 0
            || self.from == self.to
            || self.sizes.end < sector
            || self.sizes.piece < sector
        {
            let (from, to) = (place(self.from, sector), place(self.to, sector));
            return refuse(format!(
                "{} bytes from {from} to {to}: not in whole sectors of {sector} bytes, or nowhere",
                self.length
            ));
        }
        for start in [self.from, self.to] {
            if start.checked_add(self.length).is_none_or(|end| end > self.medium) {
                let found = format!(
                    "{} bytes at {} end behind the last of {}",
                    self.length,
                    place(start, sector),
                    self.medium
                );
                return refuse(found);
            }
        }
        if (self.front.len() as u64, self.back.len() as u64) != ends(self.length, self.sizes.end) {
            return refuse("its ends are not as long as they should be".into());
        }
        let inside =
            |patches: &[Patch], length: u64| patches.iter().all(|patch| patch.end() <= length);
        let table: usize = self.table.iter().map(|patch| patch.bytes.len()).sum();
        if self.table.is_empty() || self.table.len() > PATCHES || table > TABLE {
            return refuse(format!("{} writes of {table} bytes to the table", self.table.len()));
        }
        let pairs =
            self.table.len() == self.was.len()
                && self.table.iter().zip(&self.was).all(|(new, old)| {
                    (new.offset, new.bytes.len()) == (old.offset, old.bytes.len())
                });
        if !inside(&self.rebased, self.length) || !inside(&self.table, self.medium) || !pairs {
            return refuse(
                "it writes outside of what is moved, or what it writes over is not known".into(),
            );
        }
        if self.table.iter().zip(&self.was).all(|(new, old)| new.bytes == old.bytes) {
            return refuse("the table would say the same as before".into());
        }
        if !self.gaps.is_sound(self.length, sector, &self.rebased) {
            return refuse("the ranges that are not copied".into());
        }
        if self.table.iter().any(|patch| self.covers(patch)) {
            return refuse("the table itself is in what is moved, or where it would be".into());
        }
        Ok(())
    }

    /// True if `patch` overlaps the old place or the new.
    pub fn covers(&self, patch: &Patch) -> bool {
        [self.from, self.to]
            .iter()
            .any(|&start| patch.offset < start.saturating_add(self.length) && patch.end() > start)
    }

    /// Bytes between the starts of the old place and the new.
    pub fn distance(&self) -> u64 {
        self.from.abs_diff(self.to)
    }

    /// True if the old place and the new overlap: then a resumption needs the journal.
    pub fn overlaps(&self) -> bool {
        self.distance() < self.length
    }

    /// First byte of the partition that the table shows during the move.
    fn shown(&self) -> u64 {
        self.from.min(self.to)
    }

    /// Bytes that are copied in pieces: all but the ends.
    fn middle(&self) -> u64 {
        self.length - self.front.len() as u64 - self.back.len() as u64
    }

    fn phases(&self) -> &'static [Phase] {
        match (self.overlaps(), self.to > self.from) {
            (false, _) => &[Phase::Copy, Phase::Ends, Phase::Table],
            (true, true) => {
                &[Phase::Mark, Phase::Blank, Phase::Copy, Phase::Ends, Phase::Table, Phase::Clean]
            }
            (true, false) => &[Phase::Mark, Phase::Table, Phase::Blank, Phase::Copy, Phase::Ends],
        }
    }

    fn count(&self, phase: Phase) -> u64 {
        if phase == Phase::Copy { self.copies_in_all() } else { 1 }
    }

    /// Number of its steps.
    pub fn steps(&self) -> u64 {
        self.phases().iter().map(|&phase| self.count(phase)).sum()
    }

    /// The phase of step `number`, and the index of the step in that phase; `None` behind the last
    /// step.
    fn phase(&self, number: u64) -> Option<(Phase, u64)> {
        let mut left = number;
        for &phase in self.phases() {
            let count = self.count(phase);
            if left < count {
                return Some((phase, left));
            }
            left -= count;
        }
        None
    }

    /// The step of that number, from 0; `None` behind the last.
    pub fn step(&self, number: u64) -> Option<Step> {
        let (phase, nth) = self.phase(number)?;
        Some(match phase {
            // The mark itself, which every other step rewrites.
            Phase::Mark => Step::Write(Vec::new()),
            Phase::Blank => Step::Write(self.blank()),
            Phase::Table => Step::Write(self.table.clone()),
            Phase::Ends => Step::Write(self.ends()),
            Phase::Copy => Step::Copy(self.nth(nth)),
            Phase::Clean => Step::Write(vec![zeros(self.from, self.sector)]),
        })
    }

    /// Number of the first step of `phase`; behind the last step if the move has none.
    fn number(&self, phase: Phase) -> u64 {
        self.phases()
            .iter()
            .take_while(|&&other| other != phase)
            .map(|&other| self.count(other))
            .sum()
    }

    /// The piece that step `number` copies; `None` if it copies none.
    fn copies(&self, number: u64) -> Option<Piece> {
        match self.step(number)? {
            Step::Copy(piece) => Some(piece),
            Step::Write(_) => None,
        }
    }

    /// The mark of this move, with the step and the seal of `note`.
    pub fn mark(&self, note: &Note) -> Mark {
        let sealed = Some(Sealed { step: note.step, seal: note.seal() });
        Mark { id: self.id, from: self.from, to: self.to, length: self.length, sealed }
    }

    /// The write of the mark that goes with the step of `note`; `None` for the step that removes
    /// the mark, or without an overlap.
    fn marked(&self, note: &Note) -> Option<Patch> {
        let (phase, _) = self.phase(note.step).filter(|_| self.overlaps())?;
        let mut bytes = self.mark(note).sector(self.sector);
        // Of a sector that is longer than a medium's atom, the write that brings the mark, and the
        // one that takes it away, may leave a part behind: so neither changes more than the mark.
        let (first, rest) = bytes.split_at_mut_checked(ATOM)?;
        match phase {
            Phase::Clean => return None,
            Phase::Mark if self.shown() == self.from => {
                rest.copy_from_slice(self.front.get(first.len()..first.len() + rest.len())?);
            }
            Phase::Ends if self.shown() == self.to => {
                rest.copy_from_slice(self.front.get(first.len()..first.len() + rest.len())?);
                patch::lay_over(&self.rebased, first.len() as u64, rest);
            }
            _ => {}
        }
        Some(Patch::new(self.shown(), bytes, "mark of a move"))
    }

    /// Fills `bytes` with those of `piece` without its gaps, read at the old place and adapted to
    /// the new one, and gives every part to `seen` while it is in the processor's cache. What fails
    /// of the list is added to `failed`.
    fn load(
        &self,
        disk: &dyn Store,
        piece: Piece,
        bytes: &mut Vec<u8>,
        mut failed: Option<&mut Vec<Range<u64>>>,
        seen: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Errno> {
        bytes.resize(self.weight(piece)?, 0);
        self.each(piece, bytes, &mut |first, bytes| {
            let mut at = first;
            for part in bytes.chunks_mut(PART) {
                self.fill(disk, at, part, failed.as_deref_mut())?;
                seen(part);
                at += part.len() as u64;
            }
            Ok(())
        })
    }

    /// Fills `part` with the bytes at `at` of the range, at the old place, adapted to the new one.
    /// What fails of the list is added to `failed`, see [`Move::read`].
    fn fill(
        &self,
        disk: &dyn Store,
        at: u64,
        part: &mut [u8],
        failed: Option<&mut Vec<Range<u64>>>,
    ) -> Result<(), Errno> {
        self.read(disk, at, part, failed)?;
        patch::lay_over(&self.rebased, at, part);
        Ok(())
    }

    /// Zeroes between the mark and the copied pieces, and over the ends of the old place: a kernel
    /// may go on probing there.
    fn blank(&self) -> Vec<Patch> {
        let (front, back) = (self.front.len() as u64, self.back.len() as u64);
        let mut patches =
            vec![zeros(self.shown() + self.sector, front.saturating_sub(self.sector))];
        patches.push(zeros(self.from + self.length - back, back));
        if self.to < self.from {
            patches.push(zeros(self.from, front));
        }
        patches.retain(|patch| !patch.bytes.is_empty());
        patches
    }

    /// The ends, adapted to the new place. The first sector, which has most signatures, is written
    /// after a flush of the rest.
    fn ends(&self) -> Vec<Patch> {
        let laid = |at: u64, bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            patch::lay_over(&self.rebased, at, &mut bytes);
            Patch::new(self.to + at, bytes, "end of what is moved")
        };
        let mut front = laid(0, &self.front);
        let rest = front
            .bytes
            .split_off(usize::try_from(self.sector).unwrap_or_default().min(front.bytes.len()));
        let rest = Patch::new(front.end(), rest, front.what);
        let back = laid(self.length - self.back.len() as u64, &self.back);
        let mut patches = vec![rest, back];
        patches.retain(|patch| !patch.bytes.is_empty());
        patches.push(front.after_flush());
        patches
    }
}

fn zeros(at: u64, bytes: u64) -> Patch {
    Patch::new(
        at,
        vec![0; usize::try_from(bytes).unwrap_or_default()],
        "nothing, over what was there",
    )
}

/// Bytes that a medium writes whole or not at all.
const ATOM: usize = 512;

/// Bytes that are written before a medium is told to begin with them, so that it works meanwhile.
const STARTED: usize = 4 << 20;

/// Bytes that are read at once: they stay in a processor's cache until they are summed or written.
const PART: usize = 256 << 10;

/// Largest number of patches to a table; below, the largest sum of their bytes.
const PATCHES: usize = 256;
const TABLE: usize = 4 << 20;

/// Bytes that are kept at the front and at the back of `length` bytes, at most `most` each.
pub fn ends(length: u64, most: u64) -> (u64, u64) {
    let front = most.min(length);
    (front, most.min(length - front))
}
