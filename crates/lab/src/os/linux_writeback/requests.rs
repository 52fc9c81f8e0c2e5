//! How pages become requests, and when there are so many that nobody adds more: `block/blk-core.c` and `block/blk-merge.c` of
//! Linux 2.6.31.

use super::flusher::{Limits, PAGE};
use crate::error::Error;
use crate::os::queue::Queue;
use crate::rig::Op;

/// The end of the queue.
pub(super) struct Requests {
    /// Bytes of a request at most.
    largest: u64,
    /// With how many requests the queue becomes congested, and below how many it is no more (`blk_queue_congestion_threshold`).
    on: usize,
    off: usize,
    congested: bool,
    /// The request that was made last, and may still grow.
    last: Option<(u64, u64)>,
}

impl Requests {
    pub(super) fn new(limits: &Limits) -> Requests {
        let all = limits.requests.max(1);
        Requests {
            largest: limits.request.max(PAGE),
            on: (all - all / 8 + 1).min(all),
            off: (all - all / 8 - all / 16).saturating_sub(1).max(1),
            congested: false,
            last: None,
        }
    }

    /// Whether a flusher is to go away and come back when there are fewer. There are no more than were made, and the one that may grow is
    /// one.
    pub(super) fn congested(&mut self, queue: &Queue<'_>) -> bool {
        let made = queue.in_flight() + usize::from(self.last.is_some());
        self.congested = made >= self.on || (self.congested && made >= self.off);
        self.congested
    }

    /// How many pages find room in a bio, or a request, of `bytes`.
    pub(super) fn room(&self, bytes: u64) -> u64 {
        self.largest.saturating_sub(bytes) / PAGE
    }

    /// How many pages from `byte` on find room in the request that was made last.
    pub(super) fn room_at(&self, byte: u64) -> u64 {
        self.last.filter(|(_, end)| *end == byte).map_or(0, |(start, end)| self.room(end - start))
    }

    /// A bio. It becomes part of the request that ends where it begins, if that does not become too long, and is never divided
    /// (`ll_back_merge_fn`).
    pub(super) fn submit(&mut self, queue: &mut Queue<'_>, (from, to): (u64, u64)) -> Result<(), Error> {
        match &mut self.last {
            Some((start, end)) if *end == from && to - *start <= self.largest => *end = to,
            _ => {
                self.unplug(queue)?;
                self.last = Some((from, to));
            }
        }
        Ok(())
    }

    /// The request that could still grow is sent. Whoever sends it waits for room; no program waits with him.
    pub(super) fn unplug(&mut self, queue: &mut Queue<'_>) -> Result<(), Error> {
        if let Some((from, to)) = self.last.take() {
            queue.begin(Op::Write, from, to - from)?;
        }
        Ok(())
    }
}
