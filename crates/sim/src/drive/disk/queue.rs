//! The queue of commands that need the mechanism, and the choice of the next.

use super::geometry::SectorPosition;
use super::mechanism::Mechanism;
use crate::drive::{Command, Op};
use crate::model::disk::Order;
use crate::time::Ps;

/// A command that waits for the mechanism.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) command: Command,
    /// The time of its arrival.
    pub(super) at: Ps,
    /// The first physical sector that it has to read or write.
    pub(super) sector: u64,
    pub(super) place: SectorPosition,
}

/// The waiting commands in order of arrival.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: Vec<Waiting>,
    order: Order,
    age_limit: Ps,
}

impl Queue {
    pub(super) fn new(order: Order, age_limit: Ps) -> Queue {
        Queue { waiting: Vec::new(), order, age_limit }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// True if a waiting command begins at `sector`.
    pub(super) fn begins_at(&self, sector: u64) -> bool {
        self.waiting.iter().any(|waiting| waiting.sector == sector)
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        self.waiting.push(waiting);
    }

    /// Removes the next command: the oldest if it has waited past the age limit.
    pub(super) fn pop(&mut self, now: Ps, mechanism: &Mechanism) -> Option<Waiting> {
        let oldest = self.waiting.first()?;
        let aged = now - oldest.at > self.age_limit;
        let at = match self.order {
            _ if aged => 0,
            Order::Fifo => 0,
            Order::CLook => self.up_from(mechanism.next_sector()),
            Order::Sptf => self.nearest(now, mechanism),
        };
        Some(self.waiting.remove(at))
    }

    /// The index of the first command at or after `sector`, else of the lowest.
    fn up_from(&self, sector: u64) -> usize {
        let key = |&(_, w): &(usize, &Waiting)| (w.sector < sector, w.sector);
        self.waiting.iter().enumerate().min_by_key(key).map_or(0, |(at, _)| at)
    }

    /// The index of the command that the head can begin soonest (SPTF: shortest positioning time
    /// first).
    fn nearest(&self, now: Ps, mechanism: &Mechanism) -> usize {
        let angle = mechanism.angle(now);
        let (mut best, mut chosen) = (Ps::MAX, 0);
        for (at, w) in self.waiting.iter().enumerate() {
            // If rotation alone takes longer than the best so far, the arm does not matter.
            let round = mechanism.round(angle, &w.place);
            if round >= best {
                continue;
            }
            let write = w.command.op == Op::Write;
            let cost = mechanism.first(
                round,
                mechanism.ready(&w.place, mechanism.continues(w.sector, write), write),
            );
            if cost < best {
                (best, chosen) = (cost, at);
            }
        }
        chosen
    }
}
