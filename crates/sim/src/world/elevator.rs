//! The host's queue before a drive: the order in which commands wait for a tag.

use crate::drive::{Command, Op};
use std::collections::{BTreeMap, VecDeque};

/// The order of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// First in, first out.
    #[default]
    Fifo,
    /// By address from the last command's on, then from the lowest: FreeBSD's bioq_disksort, BSD's
    /// disksort.
    CLook,
    /// As C-LOOK, but reads before writes: a program waits for a read, but hardly ever for a write
    /// (cfq of Linux).
    ReadsFirst,
}

/// The waiting commands. Commands of C-LOOK do not pass a flush.
pub(super) struct Elevator {
    schedule: Schedule,
    /// Batches between flushes, by (true for a write that may wait, offset, arrival); a flush is a
    /// batch of its own.
    batches: VecDeque<BTreeMap<(bool, u64, u64), Command>>,
    arrivals: u64,
    /// The offset of the last command.
    at: u64,
}

impl Elevator {
    pub(super) fn new(schedule: Schedule) -> Elevator {
        Elevator { schedule, batches: VecDeque::new(), arrivals: 0, at: 0 }
    }

    /// True if no command waits.
    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Notes a command that did not have to wait: the order continues from it.
    pub(super) fn pass(&mut self, command: &Command) {
        self.at = self.place(command);
    }

    fn place(&self, command: &Command) -> u64 {
        if self.schedule == Schedule::Fifo { 0 } else { command.offset }
    }

    pub(super) fn push(&mut self, command: Command) {
        self.arrivals += 1;
        let offset = self.place(&command);
        let waits = self.schedule == Schedule::ReadsFirst && command.op == Op::Write;
        let closed = |batch: &BTreeMap<_, Command>| {
            batch.values().next().is_some_and(|first| first.op == Op::Flush)
        };
        if command.op == Op::Flush || self.batches.back().is_none_or(closed) {
            self.batches.push_back(BTreeMap::new());
        }
        if let Some(batch) = self.batches.back_mut() {
            batch.insert((waits, offset, self.arrivals), command);
        }
    }

    pub(super) fn pop(&mut self) -> Option<Command> {
        let batch = self.batches.front_mut()?;
        let (&(first, ..), _) = batch.first_key_value()?;
        let on = batch.range((first, self.at, 0)..).next().filter(|(key, _)| key.0 == first);
        let key = *on.or_else(|| batch.iter().next()).map(|(key, _)| key)?;
        let command = batch.remove(&key);
        self.at = key.1;
        if batch.is_empty() {
            self.batches.pop_front();
        }
        command
    }
}
