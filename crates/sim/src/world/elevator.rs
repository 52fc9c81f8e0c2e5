//! The host's queue before a drive: in what order commands wait for a tag.

use crate::drive::{Command, Op};
use std::collections::{BTreeMap, VecDeque};

/// The order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// As they came.
    #[default]
    Fifo,
    /// By address from where the last began, then from the start again: FreeBSD's bioq_disksort, BSD's disksort.
    CLook,
    /// The same, but reads before writes: a program waits for a read, and for most writes nobody does (cfq of Linux).
    ReadsFirst,
}

/// What waits. Commands of C-LOOK do not pass a flush.
pub(super) struct Elevator {
    schedule: Schedule,
    /// Batches between flushes, by (whether it may wait, offset, order of arrival); a flush is a batch of its own.
    batches: VecDeque<BTreeMap<(bool, u64, u64), Command>>,
    arrivals: u64,
    /// Where the last command began.
    at: u64,
}

impl Elevator {
    pub(super) fn new(schedule: Schedule) -> Elevator {
        Elevator { schedule, batches: VecDeque::new(), arrivals: 0, at: 0 }
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// A command does not have to wait: the order goes on from it.
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
        let closed = |batch: &BTreeMap<_, Command>| batch.values().next().is_some_and(|first| first.op == Op::Flush);
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
