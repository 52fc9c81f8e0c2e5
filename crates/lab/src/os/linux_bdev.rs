//! Linux: a whole block device opened without `O_DIRECT`, with `O_SYNC`.
//!
//! Between the program and the device stands the page cache, in blocks of the largest power of two
//! that divides the device's size, a page at the most (`set_init_blocksize` in block/bdev.c;
//! `blockdev --getbsz`). A write of a part of a block first reads the block, one after another, and
//! then writes it whole: what the device sees is aligned, and slow. A block that is in the cache is
//! not read again.
//!
//! # Limits
//! Every write waits for the device, as with `O_SYNC`. Nothing is read ahead. The cache evicts
//! blocks in the order of arrival.
//!
//! Measured on Linux 6.18 with a loop device, 200 writes of 4096 bytes at 512 past a multiple of
//! 4096: 400 reads of 8 sectors, 3200 sectors written; a device of an odd number of sectors: no
//! reads, 1600 sectors written.

use crate::rig::{FinishedRequest, Op, Request, Rig};
use std::collections::{BTreeMap, HashSet, VecDeque};
use trueline_geom::base::error::Errno;
use trueline_geom::base::size::PAGE;
use trueline_geom::base::topology::{largest_grain, round_down, round_up};

/// The destination of a write with `O_SYNC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// The drive: a write is done when the drive has it, perhaps in a cache of its own (Linux
    /// before 2.6.33, and drives without a cache).
    Drive,
    /// The medium: a write is done when a FLUSH CACHE behind it is.
    Medium,
}

/// A rig behind the page cache.
pub struct Buffered<'a> {
    inner: &'a mut dyn Rig,
    block: u64,
    sync: Sync,
    /// Numbers of the cached blocks, and the same in the order of arrival.
    cached: HashSet<u64>,
    order: VecDeque<u64>,
    /// The capacity of the cache in blocks.
    room: usize,
    /// Unfinished requests by the tag of the step sent to the inner rig.
    open: BTreeMap<u64, Open>,
    next: u64,
    ready: VecDeque<FinishedRequest>,
    finished: Vec<FinishedRequest>,
    added: u64,
}

/// An unfinished request and the steps still to be sent.
struct Open {
    tag: u64,
    steps: VecDeque<Request>,
}

impl<'a> Buffered<'a> {
    /// A device behind an empty cache of `memory` bytes.
    pub fn new(inner: &'a mut dyn Rig, sync: Sync, memory: u64) -> Buffered<'a> {
        let block = block_of(inner.length(), inner.sector());
        Buffered {
            inner,
            block,
            sync,
            cached: HashSet::new(),
            order: VecDeque::new(),
            room: usize::try_from(memory / block).unwrap_or(usize::MAX).max(1),
            open: BTreeMap::new(),
            next: 0,
            ready: VecDeque::new(),
            finished: Vec::new(),
            added: 0,
        }
    }

    /// The number of reads caused by partial writes of blocks.
    pub fn added_reads(&self) -> u64 {
        self.added
    }

    /// The requests that the device receives for `request`, in order.
    fn steps(&mut self, request: Request) -> Result<VecDeque<Request>, Errno> {
        let Request { tag, op, offset, length, .. } = request;
        let ask = |op, offset, length| Request { tag, op, offset, length, fua: false };
        if op == Op::Flush {
            return Ok(VecDeque::from([ask(op, 0, 0)]));
        }
        let end = offset
            .checked_add(length)
            .filter(|&end| end <= self.inner.length())
            .ok_or(Errno::Range)?;
        let (first, last) =
            (round_down(offset, self.block), round_up(end, self.block).ok_or(Errno::Range)?);
        let mut steps = VecDeque::new();
        let blocks = (first..last).step_by(usize::try_from(self.block).map_err(|_| Errno::Range)?);
        for at in blocks {
            let in_part = at < offset || at + self.block > end;
            let missing = (op == Op::Read || in_part) && !self.cached.contains(&at);
            match steps.back_mut() {
                _ if !missing => {}
                // A read fetches missing blocks in one request; a write fetches one page at a time,
                // as it reaches it.
                Some(Request { offset, length, .. })
                    if op == Op::Read && *offset + *length == at =>
                {
                    *length += self.block
                }
                _ => steps.push_back(ask(Op::Read, at, self.block)),
            }
            if missing && op == Op::Write {
                self.added += 1;
            }
            self.keep(at);
        }
        if op == Op::Write {
            steps.push_back(ask(Op::Write, first, last - first));
            steps.extend((self.sync == Sync::Medium).then(|| ask(Op::Flush, 0, 0)));
        }
        Ok(steps)
    }

    /// Adds a block to the cache, and evicts the oldest if it is full.
    fn keep(&mut self, at: u64) {
        if !self.cached.insert(at) {
            return;
        }
        self.order.push_back(at);
        if self.order.len() > self.room
            && let Some(oldest) = self.order.pop_front()
        {
            self.cached.remove(&oldest);
        }
    }

    /// Sends the next step of a request. Without one the request is done.
    fn go_on(&mut self, mut open: Open, at: u64) {
        let Some(step) = open.steps.pop_front() else {
            self.ready.push_back(FinishedRequest { tag: open.tag, at, error: None });
            return;
        };
        let tag = self.next;
        self.next += 1;
        match self.inner.push(Request { tag, ..step }) {
            Ok(()) => {
                self.open.insert(tag, open);
            }
            Err(errno) => {
                self.ready.push_back(FinishedRequest { tag: open.tag, at, error: Some(errno) })
            }
        }
    }
}

/// The block size of a device's page cache, in bytes.
pub fn block_of(length: u64, sector: u64) -> u64 {
    largest_grain(length).unwrap_or(PAGE).min(PAGE).max(sector)
}

impl Rig for Buffered<'_> {
    fn length(&self) -> u64 {
        self.inner.length()
    }

    fn sector(&self) -> u64 {
        self.inner.sector()
    }

    fn depth(&self) -> usize {
        self.inner.depth()
    }

    fn now(&mut self) -> u64 {
        self.inner.now()
    }

    fn push(&mut self, request: Request) -> Result<(), Errno> {
        let steps = self.steps(request)?;
        let now = self.inner.now();
        self.go_on(Open { tag: request.tag, steps }, now);
        Ok(())
    }

    fn wait(&mut self, least: usize, done: &mut Vec<FinishedRequest>) -> Result<(), Errno> {
        while self.ready.len() < least && !self.open.is_empty() {
            let mut finished = std::mem::take(&mut self.finished);
            self.inner.wait(1, &mut finished)?;
            if finished.is_empty() {
                break;
            }
            for FinishedRequest { tag, at, error } in finished.drain(..) {
                let Some(open) = self.open.remove(&tag) else { continue };
                match error {
                    None => self.go_on(open, at),
                    error => self.ready.push_back(FinishedRequest { tag: open.tag, at, error }),
                }
            }
            self.finished = finished;
        }
        done.extend(self.ready.drain(..));
        Ok(())
    }

    fn think(&mut self, ns: u64) {
        self.inner.think(ns);
    }

    fn rest(&mut self, ns: u64) {
        self.inner.rest(ns);
    }

    fn is_virtual(&self) -> bool {
        self.inner.is_virtual()
    }
}

#[cfg(test)]
mod tests;
