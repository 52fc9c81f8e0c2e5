//! Moves of several partitions as one plan, with one journal.
//!
//! A [`Sequence`] is a list of [`Stage`]s. Each moves one partition or changes the table alone, and
//! between two of them the disk is whole: every partition is where the table says. So the disk
//! itself tells how far it is, by the sectors of its table, and any copy of it that was taken
//! between two stages can be gone on with, forward or back. A stage may be of a table within a
//! partition: its sectors tell as much, from the state on in which that partition is in its place.
//! What a stage in progress needs is in the journal, as with a single [`Move`](super::Move).
//!
//! # On disk
//! A file with a head: the magic with the version, its length, a CRC-32 of all that follows it;
//! the sequence and the words by which its user knows it. Then, from a boundary of 4096 bytes, room
//! for the [`Journal`](super::Journal) of the stage in progress, which is written over that of the
//! stage before. Then room for sectors that cannot be read, see [`bad`](super::bad), which version
//! 3 lacks. All numbers are little-endian.
//!
//! # Limits
//! [`LONGEST`] bytes of a head. Every number is checked before it is used: a
//! journal may be hostile.

use super::gaps::outside;
use super::journal::LONGEST_PIECE;
use super::{LONGEST, Sizes};
use crate::base::error::Errno;
use crate::base::patch::Patch;
use crate::base::store::Store;
use crate::base::topology::is_whole;
use crate::format::moving::mark::Mark;
use crate::table::Refusal;
use crate::table::turn::Turn;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

mod journal;
pub mod progress;
mod run;

pub use run::{Adapted, Contents, Goal, Reached, Stop, Tried, run};

pub(crate) const MAGIC: &[u8; 7] = b"TLDISK\0";
/// Largest number of stages; four for each partition that is arranged at once.
pub(crate) const STAGES: usize = 1024;

/// Moves of partitions of one table, and of tables in them, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// Random identity; those of its moves are made of it.
    pub id: [u8; 16],
    /// Length of the provider with the table in bytes.
    pub medium: u64,
    /// Logical sector of the provider in bytes.
    pub sector: u64,
    /// Sizes by which each move is divided.
    pub sizes: Sizes,
    /// Stages, in the order in which they are done.
    pub stages: Vec<Stage>,
    /// Ranges of the provider that may be unreadable, in order and apart: where a partition has
    /// them at its old place, each sector is tried, and is zero if it fails.
    pub listed: Vec<Range<u64>>,
}

/// Step of a sequence between two states in which the disk is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Partition that moves; `None` for a change of the table alone.
    pub moved: Option<Movement>,
    /// Change of the table.
    pub turn: Turn,
}

/// Range of bytes that goes to another place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Movement {
    /// First byte of the old place.
    pub from: u64,
    /// First byte of the new place.
    pub to: u64,
    /// Number of bytes that are moved.
    pub length: u64,
}

impl Movement {
    /// Way from the new place back to the old.
    #[must_use]
    pub fn back(self) -> Movement {
        Movement { from: self.to, to: self.from, length: self.length }
    }

    /// True if the old place and the new overlap.
    pub fn overlaps(self) -> bool {
        self.from.abs_diff(self.to) < self.length
    }

    /// True if `patch` is all within the old place.
    fn takes(&self, patch: &Patch) -> bool {
        self.from <= patch.offset && patch.end() <= self.from.saturating_add(self.length)
    }
}

impl Stage {
    /// The stage that undoes this one.
    #[must_use]
    pub fn back(&self) -> Stage {
        let Turn { fresh, change, was, gone } = self.turn.clone();
        Stage {
            moved: self.moved.map(Movement::back),
            turn: Turn { fresh: gone, change: was, was: change, gone: fresh },
        }
    }

    /// True if byte `at` is in the old place or the new of what it moves.
    fn covers(&self, at: u64) -> bool {
        self.moved.is_some_and(|Movement { from, to, length }| {
            [from, to].iter().any(|&start| at.checked_sub(start).is_some_and(|at| at < length))
        })
    }

    /// The writes to the table, in order.
    fn patches(&self) -> Vec<Patch> {
        let mut change = self.turn.change.clone();
        if let Some(first) = change.first_mut().filter(|_| !self.turn.fresh.is_empty()) {
            first.after_flush = true;
        }
        self.turn.fresh.iter().cloned().chain(change).collect()
    }
}

/// Sectors of the table in one state, as far as the sequence knows them.
type Sectors = BTreeMap<u64, Vec<u8>>;

impl Sequence {
    /// Bytes that all its moves copy.
    pub fn bytes(&self) -> u64 {
        self.moves().fold(0, |sum: u64, moved| sum.saturating_add(moved.length))
    }

    /// Its moves, in order.
    pub fn moves(&self) -> impl Iterator<Item = Movement> + '_ {
        self.stages.iter().filter_map(|stage| stage.moved)
    }

    /// Ranges that may be unreadable in the partition that moves in stage `n`, in its own
    /// addresses. What a stage before has written can be read.
    pub fn listed(&self, n: usize) -> Vec<Range<u64>> {
        let Some(moved) = self.stages.get(n).and_then(|stage| stage.moved) else {
            return Vec::new();
        };
        let end = moved.from.saturating_add(moved.length);
        let mut written: Vec<Range<u64>> = self.stages[..n]
            .iter()
            .filter_map(|stage| stage.moved)
            .map(|before| before.to..before.to.saturating_add(before.length))
            .collect();
        written.sort_by_key(|range| range.start);
        let inside = self.listed.iter().map(|r| r.start.max(moved.from)..r.end.min(end));
        let inside: Vec<Range<u64>> = inside.filter(|r| r.start < r.end).collect();
        let left = outside(&inside, &written).into_iter();
        left.map(|r| r.start - moved.from..r.end - moved.from).collect()
    }

    /// All sectors of the table that a stage writes, in bytes and in order.
    pub fn tables(&self) -> Vec<Range<u64>> {
        let turns = self.stages.iter().map(|stage| &stage.turn);
        let patches = turns.flat_map(|turn| turn.fresh.iter().chain(&turn.change).chain(&turn.was));
        let mut all: Vec<Range<u64>> = patches.map(|patch| patch.offset..patch.end()).collect();
        all.sort_by_key(|range| range.start);
        all
    }

    /// Identity of the move in stage `n`, forward or back.
    fn mark(&self, n: usize, back: bool) -> [u8; 16] {
        let mut id = self.id;
        let number = u32::try_from(n * 2 + usize::from(back)).unwrap_or(u32::MAX).to_le_bytes();
        id.iter_mut().zip(number).for_each(|(byte, number)| *byte ^= number);
        id
    }

    /// True if a mark with that identity is of one of its moves.
    pub fn has(&self, mark: &[u8; 16]) -> bool {
        let both = |n| [self.mark(n, false), self.mark(n, true)];
        (0..self.stages.len()).any(|n| both(n).contains(mark))
    }

    /// Checks every number, since a journal may be hostile; a refusal says which one is wrong.
    pub fn check(&self) -> Result<(), Refusal> {
        let appear = self.appear();
        let refuse = |found: &str| Err(Refusal::new(found, ""));
        let sector = self.sector;
        if !sector.is_power_of_two() || !(512..=1 << 16).contains(&sector) {
            return refuse("the size of its sectors");
        }
        let sizes = [(self.sizes.end, LONGEST), (self.sizes.piece, LONGEST_PIECE)];
        let is_wrong =
            |&(size, most): &(u64, u64)| size < sector || size > most || !is_whole(size, sector);
        if sizes.iter().any(is_wrong) {
            return refuse("the sizes of its pieces");
        }
        if self.stages.is_empty() || self.stages.len() > STAGES {
            return refuse("the number of its stages");
        }
        let mut known = Sectors::new();
        for (n, stage) in self.stages.iter().enumerate() {
            known.extend(appear.get(&n).cloned().unwrap_or_default());
            let Turn { fresh, change, was, gone } = &stage.turn;
            let whole = |patch: &Patch| {
                patch.bytes.len() as u64 == sector
                    && is_whole(patch.offset, sector)
                    && patch.end() <= self.medium
            };
            let paired = change.len() == was.len()
                && change.iter().zip(was).all(|(new, old)| new.offset == old.offset);
            if change.is_empty()
                || !paired
                || ![fresh, change, was, gone].iter().all(|patches| patches.iter().all(whole))
            {
                return refuse("what it writes to the table");
            }
            let is_known = |patch: &Patch| known.get(&patch.offset) == Some(&patch.bytes);
            if !was.iter().chain(gone).all(is_known)
                || fresh.iter().any(|patch| known.contains_key(&patch.offset))
                || (stage.moved.is_some() && !fresh.is_empty())
                || !gone.iter().all(|patch| stage.moved.is_none_or(|moved| moved.takes(patch)))
            {
                return refuse("its table does not follow from the one before");
            }
            if let Some(Movement { from, to, length }) = stage.moved {
                let places = [from, to].map(|start| start.checked_add(length));
                let inside = places.iter().all(|end| end.is_some_and(|end| end <= self.medium));
                if !inside
                    || length == 0
                    || from == to
                    || ![from, to, length].iter().all(|&bytes| is_whole(bytes, sector))
                    || [from, to].iter().any(|&start| {
                        let over = known.range(start..start.saturating_add(length));
                        let stays = |at: &u64| gone.iter().all(|patch| patch.offset != *at);
                        over.map(|(at, _)| at).any(stays)
                    })
                {
                    return refuse("the places of a move");
                }
            }
            after(&mut known, stage);
        }
        Ok(())
    }

    /// The sectors of tables that are first known in a state, by its number. A table in a partition
    /// is where the sequence knows it only when that partition has moved for the last time: before,
    /// other bytes are there.
    fn appear(&self) -> BTreeMap<usize, Sectors> {
        let (mut appear, mut seen) = (BTreeMap::<usize, Sectors>::new(), BTreeSet::new());
        for (n, stage) in self.stages.iter().enumerate() {
            for patch in stage.turn.was.iter().chain(&stage.turn.gone) {
                if seen.insert(patch.offset) {
                    let over =
                        self.stages[..n].iter().rposition(|stage| stage.covers(patch.offset));
                    let first = appear.entry(over.map_or(0, |over| over + 1)).or_default();
                    first.insert(patch.offset, patch.bytes.clone());
                }
            }
            seen.extend(stage.turn.fresh.iter().map(|patch| patch.offset));
            if stage.moved.is_some() {
                // Another table may come to where one was that went.
                seen.retain(|at| stage.turn.gone.iter().all(|patch| patch.offset != *at));
            }
        }
        appear
    }

    /// State of `disk`, by its table.
    fn state(&self, disk: &dyn Store) -> Result<State, Errno> {
        let mut there = Sectors::new();
        let mut read = |at: u64| -> Result<Vec<u8>, Errno> {
            if let Some(bytes) = there.get(&at) {
                return Ok(bytes.clone());
            }
            let mut bytes = vec![0; usize::try_from(self.sector).map_err(|_| Errno::Range)?];
            disk.read_at(&mut bytes, at)?;
            there.insert(at, bytes.clone());
            Ok(bytes)
        };
        let (mut known, mut appear) = (Sectors::new(), self.appear());
        let mut half = None;
        for done in 0..=self.stages.len() {
            known.extend(appear.remove(&done).unwrap_or_default());
            let unlike = known
                .iter()
                .map(|(at, bytes)| Ok((*at, read(*at)? != *bytes)))
                .filter(|found| !matches!(found, Ok((_, false))))
                .map(|found| found.map(|(at, _)| at))
                .collect::<Result<Vec<u64>, Errno>>()?;
            if unlike.is_empty() {
                return Ok(State::Whole(done));
            }
            let Some(stage) = self.stages.get(done) else { break };
            // Cut short between two sectors that change: the rest is as it was.
            let becomes =
                |at: &u64| stage.turn.change.iter().find(|patch| patch.offset == *at).cloned();
            let new = unlike.iter().map(|at| {
                becomes(at).map_or(Ok(false), |patch| {
                    Ok::<_, Errno>(is_mixed(&read(*at)?, &patch.bytes, known.get(at)))
                })
            });
            let new = new.collect::<Result<Vec<bool>, Errno>>()?;
            if new.into_iter().all(|new| new) {
                half = Some(State::Half(done));
            }
            after(&mut known, stage);
        }
        Ok(half.unwrap_or(State::Other))
    }

    /// True if the table of `disk` is that of the end `goal`.
    pub fn is_at(&self, goal: Goal, disk: &dyn Store) -> Result<bool, Errno> {
        let done = if goal == Goal::Forward { self.stages.len() } else { 0 };
        Ok(self.state(disk)? == State::Whole(done))
    }

    /// The partition that begins with a mark in the state `done`, at its first byte.
    fn marked(&self, disk: &dyn Store, done: usize) -> Result<Option<u64>, Errno> {
        for (n, stage) in self.stages.iter().enumerate() {
            let Some(moved) = stage.moved else { continue };
            let start = if n < done { moved.to } else { moved.from };
            // What moves within a partition is not there before that one has moved itself.
            if self.stages.get(done..n).is_some_and(|before| before.iter().any(|s| s.covers(start)))
            {
                continue;
            }
            let mut first = [0; 512];
            disk.read_at(&mut first, start)?;
            if Mark::read(&first).is_some() || Mark::is_trace(&first) {
                return Ok(Some(start));
            }
        }
        Ok(None)
    }
}

/// State of a disk, by the sectors of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// So many stages are behind it.
    Whole(usize),
    /// That stage was writing the table.
    Half(usize),
    /// Table of no state of it.
    Other,
}

/// Turns the sectors before `stage` into those behind it.
fn after(known: &mut Sectors, stage: &Stage) {
    for patch in stage.turn.fresh.iter().chain(&stage.turn.change) {
        known.insert(patch.offset, patch.bytes.clone());
    }
    for patch in &stage.turn.gone {
        known.remove(&patch.offset);
    }
}

/// Bytes that a medium writes whole or not at all.
const ATOM: usize = 512;

/// True if every part that is written at once is of `new` or of `old`.
fn is_mixed(there: &[u8], new: &[u8], old: Option<&Vec<u8>>) -> bool {
    let is = |bytes: &[u8], at: usize, part: &[u8]| bytes.get(at..at + part.len()) == Some(part);
    there
        .chunks(ATOM)
        .zip((0..).step_by(ATOM))
        .all(|(part, at)| is(new, at, part) || old.is_some_and(|old| is(old, at, part)))
}
