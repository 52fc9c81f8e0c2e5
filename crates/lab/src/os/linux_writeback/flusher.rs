//! The flusher, which writes dirty pages: `mm/page-writeback.c`, `fs/fs-writeback.c`, `fs/mpage.c`
//! and `fs/buffer.c` of Linux 2.6.31.

use super::dirty::Pages;
use super::requests::Requests;
use super::{DIRECT, POINTERS};
use crate::error::Error;
use crate::os::numbered::Numbered;
use crate::os::queue::Queue;
use crate::rig::Rig;
use std::collections::VecDeque;
pub(crate) use trueline_geom::base::size::PAGE;

/// Pages of one inode that a pass writes at most (`MAX_WRITEBACK_PAGES`): 4 MiB.
const PASS: u64 = 1024;
/// The interval between searches for old pages, and the age of an old page, in ns
/// (`dirty_writeback_centisecs`, `dirty_expire_centisecs`).
const EVERY: u64 = 5_000_000_000;
const OLD: u64 = 30_000_000_000;

/// The owner of pages: 0 for the device, or an inode's number plus one.
pub(crate) type Owner = u64;

/// The block device itself, which owns all metadata.
pub(crate) const DEVICE: Owner = 0;

/// Limits of dirty memory and of requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Dirty bytes above which the flusher writes (`dirty_background_ratio`, a tenth).
    pub background: u64,
    /// Dirty bytes above which a writing program waits: `dirty_ratio`, a fifth, less the eighth of
    /// it that is denied to a program that dirties everything (`task_dirty_limit`).
    pub dirty: u64,
    /// The most bytes of a request (`max_sectors_kb`).
    pub request: u64,
    /// The most requests in flight (`nr_requests`).
    pub requests: usize,
}

impl Limits {
    /// The limits of a host with `bytes` of memory.
    pub fn of_memory(bytes: u64) -> Limits {
        Limits {
            background: bytes / 10,
            dirty: bytes / 5 / 8 * 7,
            request: 512 << 10,
            requests: 128,
        }
    }
}

/// The page cache's dirty side, and the queue of requests.
pub(crate) struct Flusher<'a> {
    pub(crate) queue: Queue<'a>,
    limits: Limits,
    owners: Numbered<Owner, Pages>,
    /// Owners in the order of their turns: those that became dirty first, first.
    turns: VecDeque<Owner>,
    dirty: u64,
    requests: Requests,
    /// The time in ns of the next search for old pages.
    look: u64,
    old: usize,
    /// The pages of the device that became dirty last and still are: maps, inodes and indirect
    /// blocks change again and again.
    again: [u64; 4],
    /// The time in ns of the last pass that left nothing to send.
    seen: u64,
}

/// The value of an unused entry of `again`.
const NONE: u64 = u64::MAX;

impl<'a> Flusher<'a> {
    pub(crate) fn new(rig: &'a mut dyn Rig, limits: Limits) -> Flusher<'a> {
        let mut queue = Queue::new(rig);
        let look = queue.now() + EVERY;
        Flusher {
            queue,
            limits,
            owners: Numbered::default(),
            turns: VecDeque::new(),
            dirty: 0,
            requests: Requests::new(&limits),
            look,
            old: 0,
            again: [NONE; 4],
            seen: 0,
        }
    }

    /// Dirty bytes of all owners.
    pub(crate) fn dirty(&self) -> u64 {
        self.dirty
    }

    /// Marks dirty the pages of `owner` from `first` on, which lie at `byte`. Waits while too much
    /// is dirty.
    pub(crate) fn soil(
        &mut self,
        owner: Owner,
        first: u64,
        pages: u64,
        byte: u64,
    ) -> Result<(), Error> {
        let now = self.queue.now();
        if owner == DEVICE && pages == 1 {
            if self.again.contains(&first) {
                return if now == self.seen { Ok(()) } else { self.pump(false) };
            }
            self.again.rotate_right(1);
            self.again[0] = first;
        }
        let own = self.owners.entry(owner).or_default();
        if own.is_empty() {
            own.since = now;
            self.turns.push_back(owner);
        }
        self.dirty += own.soil(first, pages, byte) * PAGE;
        self.pump(false)?;
        while self.dirty + self.queue.bytes() > self.limits.dirty {
            self.pump(true)?;
            self.queue.wait_some()?;
        }
        Ok(())
    }

    /// Drops the dirty pages of a removed file.
    pub(crate) fn drop_owner(&mut self, owner: Owner) {
        if let Some(own) = self.owners.remove(&owner) {
            self.dirty -= own.bytes();
            self.old -= usize::from(own.old);
            self.turns.retain(|&other| other != owner);
        }
    }

    /// Lets time pass, in steps between which the flusher runs.
    pub(crate) fn think(&mut self, ns: u64) -> Result<(), Error> {
        // A queue of 128 requests does not run empty in one step.
        const STEP: u64 = 20_000_000;
        let mut left = ns;
        while left > 0 {
            let step = left.min(STEP);
            self.queue.think(step);
            self.pump(false)?;
            left -= step;
        }
        Ok(())
    }

    /// Sends old pages, and pages above the background limit, until the queue is congested. With
    /// `forced`, a waiting program sends something itself if more than its limit is dirty, not
    /// counting what is being written (`balance_dirty_pages`).
    pub(crate) fn pump(&mut self, forced: bool) -> Result<(), Error> {
        self.queue.poll()?;
        let now = self.queue.now();
        if now >= self.look {
            self.look = now + EVERY;
            for own in self.owners.values_mut().filter(|own| !own.old && own.since + OLD <= now) {
                own.old = true;
                self.old += 1;
            }
        }
        let mut first = forced && self.dirty > self.limits.dirty;
        while (first || self.old > 0 || self.dirty > self.limits.background)
            && !self.requests.congested(&self.queue)
        {
            first = false;
            if !self.pass(self.old > 0 && self.dirty <= self.limits.background, false)? {
                break;
            }
        }
        if self.queue.in_flight() == 0 {
            self.requests.unplug(&mut self.queue)?;
        }
        self.seen = now;
        Ok(())
    }

    /// Writes everything that is dirty, and waits for it.
    pub(crate) fn sync(&mut self) -> Result<(), Error> {
        while self.pass(false, true)? {
            self.queue.settle(self.limits.requests)?;
        }
        self.requests.unplug(&mut self.queue)?;
        self.queue.settle(0)
    }

    /// Writes all dirty pages of an owner, and waits for them.
    pub(crate) fn sync_owner(&mut self, owner: Owner) -> Result<(), Error> {
        while self.owners.contains_key(&owner) {
            self.pass_over(owner, true)?;
            self.queue.settle(self.limits.requests)?;
        }
        self.requests.unplug(&mut self.queue)?;
        self.queue.settle(0)
    }

    /// Makes a pass over the owner whose turn it is; with `old_only`, over the first with old
    /// pages. True if there is one.
    fn pass(&mut self, old_only: bool, patient: bool) -> Result<bool, Error> {
        let owners = &self.owners;
        let is_old = |owner: &Owner| owners.get(owner).is_some_and(|own| own.old);
        let at = if old_only {
            self.turns.iter().position(is_old)
        } else {
            // Files come before the device's own inode: as long as any file is dirty, the device
            // gets no turn.
            self.turns.iter().position(|&owner| owner != DEVICE).or(Some(0))
        };
        match at.and_then(|at| self.turns.get(at)) {
            Some(&owner) => self.pass_over(owner, patient).map(|()| true),
            None => Ok(false),
        }
    }

    /// Makes a pass over one owner and ends its turn (`write_cache_pages`). Unless it is `patient`,
    /// the pass ends after the page at which the queue becomes congested.
    fn pass_over(&mut self, owner: Owner, patient: bool) -> Result<(), Error> {
        if self.turns.front() == Some(&owner) {
            self.turns.pop_front();
        } else {
            self.turns.retain(|&other| other != owner);
        }
        if owner == DEVICE {
            self.again = [NONE; 4];
        }
        let (mut left, mut bio) = (PASS, None);
        while left > 0 {
            let Some((first, pages, byte)) = self.owners.get(&owner).and_then(Pages::next) else {
                break;
            };
            // Pages added to the current bio cannot change congestion; the page that starts a new
            // one can.
            let room = match bio {
                _ if owner == DEVICE => self.requests.room_at(byte),
                Some((from, to)) if to == byte => self.requests.room(to - from),
                _ => 0,
            };
            let until = if owner == DEVICE { u64::MAX } else { boundary(first) - first };
            let count = room.max(1).min(pages).min(left).min(until);
            self.owners.entry(owner).or_default().take(first, count);
            self.dirty -= count * PAGE;
            left -= count;
            let taken = (byte, byte + count * PAGE);
            if owner == DEVICE {
                // A bio a page (`block_write_full_page`): the queue merges them into requests of
                // any length.
                self.requests.submit(&mut self.queue, taken)?;
            } else {
                self.add(&mut bio, taken, count == until)?;
            }
            if !patient && self.requests.congested(&self.queue) {
                break;
            }
        }
        if let Some(bio) = bio {
            self.requests.submit(&mut self.queue, bio)?;
        }
        match self.owners.get(&owner) {
            Some(own) if own.is_empty() => {
                self.old -= usize::from(own.old);
                self.owners.remove(&owner);
            }
            Some(_) => self.turns.push_back(owner),
            None => {}
        }
        Ok(())
    }

    /// Adds pages of a file to a bio, which is submitted when it is full, not contiguous, or at a
    /// boundary (`__mpage_writepage`). The block after the last data block of an indirect block (or
    /// of the inode) is the next indirect block: if it is dirty, it is written too, "so that
    /// indirects merge nicely with their data" (`write_boundary_block`).
    fn add(
        &mut self,
        bio: &mut Option<(u64, u64)>,
        (from, to): (u64, u64),
        boundary: bool,
    ) -> Result<(), Error> {
        match bio {
            Some((start, end))
                if *end == from && self.requests.room(*end - *start) * PAGE >= to - from =>
            {
                *end = to
            }
            _ => {
                if let Some(full) = bio.replace((from, to)) {
                    self.requests.submit(&mut self.queue, full)?;
                }
            }
        }
        if boundary {
            if let Some(own) = bio.take() {
                self.requests.submit(&mut self.queue, own)?;
            }
            if self.take_of_device(to / PAGE) {
                self.requests.submit(&mut self.queue, (to, to + PAGE))?;
            }
        }
        Ok(())
    }

    /// Marks a page of the device clean. True if it was dirty.
    fn take_of_device(&mut self, page: u64) -> bool {
        let Some(own) = self.owners.get_mut(&DEVICE).filter(|own| own.has(page)) else {
            return false;
        };
        own.clean(page, 1);
        self.dirty -= PAGE;
        self.again.iter_mut().filter(|again| **again == page).for_each(|again| *again = NONE);
        if own.is_empty() {
            self.old -= usize::from(own.old);
            self.owners.remove(&DEVICE);
            self.turns.retain(|&owner| owner != DEVICE);
        }
        true
    }
}

/// The page after the last that the inode, or the indirect block of page `first`, points to.
fn boundary(first: u64) -> u64 {
    match first.checked_sub(DIRECT) {
        None => DIRECT,
        Some(over) => DIRECT + (over / POINTERS + 1) * POINTERS,
    }
}
