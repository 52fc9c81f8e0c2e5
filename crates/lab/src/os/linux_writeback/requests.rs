//! Merging of pages into requests, and the congestion of the queue: `block/blk-core.c` and
//! `block/blk-merge.c` of Linux 2.6.31.

use super::flusher::{Limits, PAGE};
use crate::error::Error;
use crate::os::queue::Queue;
use crate::rig::Op;

/// The tail of the request queue.
pub(super) struct Requests {
    /// The most bytes of a request.
    largest: u64,
    /// Requests at which the queue becomes congested, and below which it no longer is
    /// (`blk_queue_congestion_threshold`).
    on: usize,
    off: usize,
    congested: bool,
    /// The newest request, which may still grow: (first byte, end).
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

    /// True if the queue is congested, so a flusher ends its pass. Counted are the requests in
    /// flight and the one that may still grow.
    pub(super) fn congested(&mut self, queue: &Queue<'_>) -> bool {
        let made = queue.in_flight() + usize::from(self.last.is_some());
        self.congested = made >= self.on || (self.congested && made >= self.off);
        self.congested
    }

    /// Pages that fit in a bio or request of `bytes` before it is full.
    pub(super) fn room(&self, bytes: u64) -> u64 {
        self.largest.saturating_sub(bytes) / PAGE
    }

    /// Pages that fit in the newest request if they begin at `byte`, its end; else 0.
    pub(super) fn room_at(&self, byte: u64) -> u64 {
        self.last.filter(|(_, end)| *end == byte).map_or(0, |(start, end)| self.room(end - start))
    }

    /// Submits a bio. It is merged with the newest request if that ends where it begins and does
    /// not become too long, and is never split (`ll_back_merge_fn`).
    pub(super) fn submit(
        &mut self,
        queue: &mut Queue<'_>,
        (from, to): (u64, u64),
    ) -> Result<(), Error> {
        match &mut self.last {
            Some((start, end)) if *end == from && to - *start <= self.largest => *end = to,
            _ => {
                self.unplug(queue)?;
                self.last = Some((from, to));
            }
        }
        Ok(())
    }

    /// Sends the request that could still grow. The flusher waits for room in the queue; no program
    /// waits with it.
    pub(super) fn unplug(&mut self, queue: &mut Queue<'_>) -> Result<(), Error> {
        if let Some((from, to)) = self.last.take() {
            queue.begin(Op::Write, from, to - from)?;
        }
        Ok(())
    }
}
