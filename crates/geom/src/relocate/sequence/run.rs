//! Execution of a sequence, from wherever the disk is.

use super::{Movement, Sequence, Stage, State};
use crate::base::error::Errno;
use crate::base::patch::Patch;
use crate::base::store::Store;
use crate::relocate::bad::BadSectors;
use crate::relocate::carry::write;
use crate::relocate::gaps::{Gaps, holes};
use crate::relocate::{Interrupted, Journal, Mismatch, Move, Standing, Start, Unreadable, carry};
use crate::table::Refusal;
use std::ops::Range;

/// End of a sequence to which it is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// New places of all partitions.
    Forward,
    /// Old places, as before the first stage.
    Back,
}

/// Progress of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Number of stages between the disk and the old places.
    pub stages: usize,
    /// Bytes of the move in progress that are copied.
    pub bytes: u64,
}

/// Reason for which a sequence stopped before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Failure of the disk or of the journal, or a request of the caller.
    Interrupted(Interrupted),
    /// Mismatch of disk and journal: nothing was written.
    Other(Mismatch),
    /// Refusal of a move, before it was begun.
    Refused(Refusal),
}

impl From<Interrupted> for Stop {
    fn from(why: Interrupted) -> Stop {
        Stop::Interrupted(why)
    }
}

/// Contents of a partition, as far as a move depends on them. Addresses are those of the range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adapted {
    /// Patches that adapt what the partition notes of its own place.
    pub rebased: Vec<Patch>,
    /// Ranges that need not be copied, of a [`Collector`](crate::relocate::gaps::Collector).
    pub free: Vec<Range<u64>>,
}

/// Outcome of the list of sectors that may be unreadable, as far as stages of this run had them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// Ranges that failed: where they were, and where they are zeros when all stages are done.
    pub failed: Vec<Movement>,
    /// Bytes of the list that could be read.
    pub readable: u64,
}

/// Reader of a partition that is about to move.
pub type Contents<'a> = dyn FnMut(Movement) -> Result<Adapted, Errno> + 'a;

/// Carries `sequence` to `goal` on `disk`, the provider with the table. `journal` is the file with
/// its head, whose room for moves begins at byte `room`. `progress` is told before each step how
/// far it is; `false` ends it there.
pub fn run(
    sequence: &Sequence,
    disk: &dyn Store,
    (journal, room): (&dyn Store, u64),
    goal: Goal,
    contents: &mut Contents<'_>,
    progress: &mut dyn FnMut(Reached) -> bool,
) -> Result<Tried, Stop> {
    let end = sequence.list_at(room).unwrap_or(u64::MAX).min(journal.length());
    let window = Window { store: journal, from: room, end };
    let tried = Tried::default();
    let mut run = Run { sequence, disk, journal: &window, contents, progress, tried };
    let done = run.settle()?;
    match goal {
        Goal::Forward => (done..sequence.stages.len()).try_for_each(|n| run.stage(n, false)),
        Goal::Back => (0..done).rev().try_for_each(|n| run.stage(n, true)),
    }?;
    Ok(run.tried)
}

struct Run<'a> {
    sequence: &'a Sequence,
    disk: &'a dyn Store,
    journal: &'a Window<'a>,
    contents: &'a mut Contents<'a>,
    progress: &'a mut dyn FnMut(Reached) -> bool,
    tried: Tried,
}

impl Run<'_> {
    /// Ends what an interruption left half done; returns the number of stages that are behind the
    /// disk.
    fn settle(&mut self) -> Result<usize, Stop> {
        // What a killed run wrote counts only if it stays.
        self.journal.flush().map_err(Interrupted::Journal)?;
        self.disk.flush().map_err(|e| Interrupted::Disk(0, e))?;
        let mut other = None;
        match Journal::open(self.journal) {
            Err(Unreadable::Failed(errno)) => return Err(Interrupted::Journal(errno).into()),
            // Half written, before its move began; or none yet.
            Err(_) => {}
            Ok((journal, mut plan, _)) if self.is_ours(&plan) => {
                let listed = self.listed(&plan);
                journal.list(&mut plan, &listed).map_err(Interrupted::Journal)?;
                match plan.standing(&journal, self.disk)? {
                    Standing::Half(start) => {
                        let stages = self.number(&plan);
                        let mut told = |bytes| (self.progress)(Reached { stages, bytes });
                        let bad = carry(&plan, self.disk, Some(&journal), start, &mut told)?;
                        self.tell(stages, &plan, &bad);
                    }
                    Standing::Other(why) => other = Some(why),
                    Standing::Untouched | Standing::Done => {}
                }
            }
            Ok(_) => other = Some(Mismatch::Unmarked),
        }
        let failed = |errno| Stop::from(Interrupted::Disk(0, errno));
        let done = match self.sequence.state(self.disk).map_err(failed)? {
            State::Whole(done) => done,
            // Without a move on itself: what is copied is whole in both places.
            State::Half(n) if self.is_apart(n) => {
                write(self.disk, self.sequence.stages[n].patches())?;
                self.disk.flush().map_err(failed)?;
                // A table within the partition, which comes into sight now, may have been changed.
                match self.sequence.state(self.disk).map_err(failed)? {
                    State::Whole(_) => n + 1,
                    _ => return Err(Stop::Other(other.unwrap_or(Mismatch::Table))),
                }
            }
            State::Half(_) | State::Other => {
                return Err(Stop::Other(other.unwrap_or(Mismatch::Table)));
            }
        };
        match self.sequence.marked(self.disk, done).map_err(failed)? {
            Some(_) => Err(Stop::Other(other.unwrap_or(Mismatch::Unmarked))),
            None => Ok(done),
        }
    }

    /// True if stage `n` copies nothing onto itself.
    fn is_apart(&self, n: usize) -> bool {
        self.sequence.stages[n].moved.is_none_or(|moved| !moved.overlaps())
    }

    /// True if `plan` is a move of this sequence, forward or back.
    fn is_ours(&self, plan: &Move) -> bool {
        self.sequence.stages.iter().enumerate().any(|(n, stage)| {
            [(stage.clone(), false), (stage.back(), true)].iter().any(|(stage, back)| {
                let moved = Movement { from: plan.from, to: plan.to, length: plan.length };
                stage.moved == Some(moved)
                    && plan.id == self.sequence.mark(n, *back)
                    && (plan.medium, plan.sector) == (self.sequence.medium, self.sequence.sector)
                    && is_like(&plan.table, &stage.turn.change)
                    && is_like(&plan.was, &stage.turn.was)
            })
        })
    }

    /// Number of the stage that `plan` moves in.
    fn number(&self, plan: &Move) -> usize {
        let is =
            |n: &usize| [false, true].iter().any(|&back| self.sequence.mark(*n, back) == plan.id);
        (0..self.sequence.stages.len()).find(is).unwrap_or_default()
    }

    /// Notes what came of the list in stage `n`, whose move was `plan`.
    fn tell(&mut self, n: usize, plan: &Move, bad: &BadSectors) {
        self.tried.readable += plan.readable(bad);
        let later = self.sequence.stages.get(n + 1..).unwrap_or_default();
        for range in &bad.failed {
            // What is in a partition may go on within it.
            let goes = |at: u64, stage: &Stage| match stage.moved {
                Some(Movement { from, to, length }) if (from..from + length).contains(&at) => {
                    to + (at - from)
                }
                _ => at,
            };
            let (from, length) = (plan.from + range.start, range.end - range.start);
            let to = later.iter().fold(plan.to + range.start, goes);
            self.tried.failed.push(Movement { from, to, length });
        }
    }

    /// Ranges that may be unreadable in the partition that `plan` moves: on the way back none is,
    /// since it was written on the way there.
    fn listed(&self, plan: &Move) -> Vec<Range<u64>> {
        let n = self.number(plan);
        if self.sequence.mark(n, false) == plan.id { self.sequence.listed(n) } else { Vec::new() }
    }

    /// Carries out stage `n`, or the one that undoes it.
    fn stage(&mut self, n: usize, back: bool) -> Result<(), Stop> {
        let stage = &self.sequence.stages[n];
        let stage = if back { &stage.back() } else { stage };
        let stages = if back { n + 1 } else { n };
        let Some(moved) = stage.moved else {
            if !(self.progress)(Reached { stages, bytes: 0 }) {
                return Err(Interrupted::Asked.into());
            }
            write(self.disk, stage.patches())?;
            self.disk.flush().map_err(|e| Interrupted::Disk(0, e))?;
            return Ok(());
        };
        let listed = if back { Vec::new() } else { self.sequence.listed(n) };
        let mut plan = self.plan(stage, moved, (self.sequence.mark(n, back), listed))?;
        plan.check().map_err(Stop::Refused)?;
        let mut told = |bytes| (self.progress)(Reached { stages, bytes });
        let bad = if plan.overlaps() {
            let journal = Journal::create(self.journal, &plan, "").map_err(Interrupted::Journal)?;
            // Without room for what comes of the list, it is not tried.
            journal.list(&mut plan, &[]).map_err(Interrupted::Journal)?;
            carry(&plan, self.disk, Some(&journal), Start::default(), &mut told)?
        } else {
            carry(&plan, self.disk, None, Start::default(), &mut told)?
        };
        if !back {
            self.tell(n, &plan, &bad);
        }
        Ok(())
    }

    fn plan(
        &mut self,
        stage: &Stage,
        moved: Movement,
        (id, listed): ([u8; 16], Vec<Range<u64>>),
    ) -> Result<Move, Interrupted> {
        let Movement { from, to, length } = moved;
        let Sequence { medium, sector, sizes, .. } = *self.sequence;
        let failed = |errno| Interrupted::Disk(from, errno);
        let mut bad = BadSectors::new(listed);
        let disk = self.disk;
        let mut read = |inner: u64, out: &mut [u8]| disk.read_at(out, from + inner);
        let (front, back) = bad.ends(length, (sizes.end, sector), &mut read).map_err(failed)?;
        let Adapted { rebased, free } = (self.contents)(moved).map_err(failed)?;
        let holes = holes(self.disk, from, length, sector).map_err(failed)?;
        let gaps = Gaps::plan(&holes, &free, &rebased, sector);
        let (table, was) = (stage.turn.change.clone(), stage.turn.was.clone());
        Ok(Move {
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
            bad,
        })
    }
}

/// True if the two write the same bytes to the same places.
fn is_like(one: &[Patch], other: &[Patch]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|(a, b)| (a.offset, &a.bytes) == (b.offset, &b.bytes))
}

/// Room in a file, from a byte to another.
struct Window<'a> {
    store: &'a dyn Store,
    from: u64,
    end: u64,
}

impl Store for Window<'_> {
    fn length(&self) -> u64 {
        self.end.saturating_sub(self.from)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        let at = self.from.checked_add(offset).ok_or(Errno::Range)?;
        self.store.read_at(buffer, at)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        let at = self.from.checked_add(offset).ok_or(Errno::Range)?;
        self.store.write_at(bytes, at)
    }

    fn zero(&self, offset: u64, length: u64) -> Result<(), Errno> {
        let at = self.from.checked_add(offset).ok_or(Errno::Range)?;
        self.store.zero(at, length)
    }

    fn flush(&self) -> Result<(), Errno> {
        self.store.flush()
    }

    fn discard(&self, offset: u64, length: u64) -> Result<(), Errno> {
        let at = self.from.checked_add(offset).ok_or(Errno::Range)?;
        self.store.discard(at, length)
    }
}
