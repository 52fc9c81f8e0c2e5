//! Dirty pages and who writes them: `mm/page-writeback.c` and `fs/fs-writeback.c` of Linux 2.6.31.

use crate::error::Error;
use crate::host::numbered::Numbered;
use crate::host::queue::Queue;
use crate::rig::{Op, Rig};
use std::collections::{BTreeMap, VecDeque};

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;
/// Pages of an inode that are written before the next has its turn (`MAX_WRITEBACK_PAGES`): 4 MiB.
const PASS: u64 = 1024;
/// How often old pages are looked for, and how old they are then (`dirty_writeback_centisecs`, `dirty_expire_centisecs`).
const EVERY: u64 = 5_000_000_000;
const OLD: u64 = 30_000_000_000;

/// Whose pages they are: the device's, or an inode's number and one.
pub(crate) type Owner = u64;

/// The block device.
pub(crate) const DEVICE: Owner = 0;

/// What a host allows to be dirty and to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that may be dirty before somebody begins to write (`dirty_background_ratio`, a tenth).
    pub background: u64,
    /// Bytes that may be dirty before a program that writes must wait: `dirty_ratio`, a fifth, less the eighth of it that is kept from
    /// a program which dirties all there is (`task_dirty_limit`).
    pub dirty: u64,
    /// Bytes of a request at most (`max_sectors_kb`).
    pub request: u64,
    /// Requests that are sent and not done (`nr_requests`).
    pub requests: usize,
}

impl Limits {
    /// Of a host with as much memory.
    pub fn of_memory(bytes: u64) -> Limits {
        Limits { background: bytes / 10, dirty: bytes / 5 / 8 * 7, request: 512 << 10, requests: 128 }
    }
}

/// Dirty pages of an owner.
#[derive(Default)]
struct Pages {
    /// First page of the owner → pages, and the byte of the provider where they lie.
    ranges: BTreeMap<u64, (u64, u64)>,
    /// When the first of them became dirty.
    since: u64,
    /// Where the next pass goes on (`writeback_index`).
    cursor: u64,
    /// Whether all of them are to be written, because they are old.
    old: bool,
}

/// The page cache's dirty side, and the queue of requests.
pub(crate) struct Flusher<'a> {
    pub(crate) queue: Queue<'a>,
    limits: Limits,
    owners: Numbered<Owner, Pages>,
    /// Whose turn it is: those that became dirty first, first.
    turns: VecDeque<Owner>,
    dirty: u64,
    /// A request that may still grow.
    plugged: Option<(u64, u64)>,
    /// When old pages are looked for next.
    look: u64,
    old: usize,
    /// Pages of the device that became dirty last and still are: maps, inodes and indirect blocks change again and again.
    again: [u64; 4],
    /// When it was last seen to that nothing has to be sent.
    seen: u64,
}

/// No page of the device.
const NONE: u64 = u64::MAX;

impl<'a> Flusher<'a> {
    pub(crate) fn new(rig: &'a mut dyn Rig, limits: Limits) -> Flusher<'a> {
        let mut queue = Queue::new(rig);
        let look = queue.now() + EVERY;
        let limits = Limits { requests: limits.requests.max(1), request: limits.request.max(PAGE), ..limits };
        Flusher {
            queue,
            limits,
            owners: Numbered::default(),
            turns: VecDeque::new(),
            dirty: 0,
            plugged: None,
            look,
            old: 0,
            again: [NONE; 4],
            seen: 0,
        }
    }

    /// Bytes that are dirty.
    pub(crate) fn dirty(&self) -> u64 {
        self.dirty
    }

    /// Pages of `owner` from `first` on, which lie at `byte`, are dirty. Waits while too much is.
    pub(crate) fn soil(&mut self, owner: Owner, first: u64, pages: u64, byte: u64) -> Result<(), Error> {
        let now = self.queue.now();
        if owner == DEVICE && pages == 1 {
            if self.again.contains(&first) {
                return if now == self.seen { Ok(()) } else { self.pump(false) };
            }
            self.again.rotate_right(1);
            self.again[0] = first;
        }
        let own = self.owners.entry(owner).or_default();
        if own.ranges.is_empty() {
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

    /// What an owner has dirty is of no use any more: the file is gone.
    pub(crate) fn drop_owner(&mut self, owner: Owner) {
        if let Some(own) = self.owners.remove(&owner) {
            self.dirty -= own.ranges.values().map(|(pages, _)| pages * PAGE).sum::<u64>();
            self.old -= usize::from(own.old);
            self.turns.retain(|&other| other != owner);
        }
    }

    /// Time passes, and the flusher goes on in it.
    pub(crate) fn think(&mut self, ns: u64) -> Result<(), Error> {
        // A queue of 128 requests is not empty after as long.
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

    /// Sends what is to be sent and has room in the queue: old pages, what is above the background limit, or, `forced`, anything.
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
        let mut first = forced;
        while self.queue.in_flight() < self.limits.requests && (first || self.old > 0 || self.dirty > self.limits.background) {
            first = false;
            if !self.pass(self.old > 0 && self.dirty <= self.limits.background)? {
                break;
            }
        }
        if self.queue.in_flight() == 0 {
            self.unplug()?;
        }
        self.seen = now;
        Ok(())
    }

    /// Everything that is dirty is on its way and done.
    pub(crate) fn sync(&mut self) -> Result<(), Error> {
        while self.pass(false)? {
            self.queue.settle(self.limits.requests)?;
        }
        self.unplug()?;
        self.queue.settle(0)
    }

    /// Everything an owner has dirty is on its way and done.
    pub(crate) fn sync_owner(&mut self, owner: Owner) -> Result<(), Error> {
        while self.owners.contains_key(&owner) {
            self.pass_over(owner)?;
            self.queue.settle(self.limits.requests)?;
        }
        self.unplug()?;
        self.queue.settle(0)
    }

    /// A pass over the owner whose turn it is; `old_only`: who has old pages. Whether there was one.
    fn pass(&mut self, old_only: bool) -> Result<bool, Error> {
        let owners = &self.owners;
        let is_old = |owner: &Owner| owners.get(owner).is_some_and(|own| own.old);
        let at = if old_only {
            self.turns.iter().position(is_old)
        } else {
            // File systems before the device's own inode: a pass over files leaves it nothing as long as there are files.
            self.turns.iter().position(|&owner| owner != DEVICE).or(Some(0))
        };
        match at.and_then(|at| self.turns.get(at)) {
            Some(&owner) => self.pass_over(owner).map(|()| true),
            None => Ok(false),
        }
    }

    /// A pass over one owner, whose turn it is then no more.
    fn pass_over(&mut self, owner: Owner) -> Result<(), Error> {
        if self.turns.front() == Some(&owner) {
            self.turns.pop_front();
        } else {
            self.turns.retain(|&other| other != owner);
        }
        let Some(own) = self.owners.get_mut(&owner) else { return Ok(()) };
        let taken = own.take(PASS);
        if owner == DEVICE {
            self.again = [NONE; 4];
        }
        if own.ranges.is_empty() {
            self.old -= usize::from(own.old);
            self.owners.remove(&owner);
        } else {
            self.turns.push_back(owner);
        }
        for (pages, byte) in taken {
            self.dirty -= pages * PAGE;
            self.send(byte, pages * PAGE)?;
        }
        Ok(())
    }

    /// Pages go to the queue, merged with those before them as far as a request may be long.
    fn send(&mut self, byte: u64, length: u64) -> Result<(), Error> {
        let (mut at, end) = (byte, byte + length);
        while at < end {
            match &mut self.plugged {
                Some((from, to)) if *to == at && *to - *from < self.limits.request => {
                    let more = (self.limits.request - (*to - *from)).min(end - at);
                    *to += more;
                    at += more;
                }
                Some(_) => self.unplug()?,
                plugged @ None => *plugged = Some((at, at)),
            }
        }
        Ok(())
    }

    /// The request that could still grow is sent. That the queue is full stops the next pass, not this one: it is the flusher who waits for
    /// room, and no program with him.
    fn unplug(&mut self) -> Result<(), Error> {
        if let Some((from, to)) = self.plugged.take() {
            self.queue.begin(Op::Write, from, to - from)?;
        }
        Ok(())
    }
}

impl Pages {
    /// Notes pages that are dirty; how many were not before.
    fn soil(&mut self, first: u64, pages: u64, byte: u64) -> u64 {
        let end = first + pages;
        let before = self.ranges.range_mut(..=first).next_back().map(|(start, range)| (*start, range));
        let untouched = before.as_ref().is_none_or(|(start, range)| start + range.0 <= first);
        if untouched && self.ranges.range(first + 1..end).next().is_none() {
            match self.ranges.range_mut(..first).next_back() {
                Some((start, (count, at))) if start + *count == first && *at + *count * PAGE == byte => *count += pages,
                _ => drop(self.ranges.insert(first, (pages, byte))),
            }
            return pages;
        }
        if pages == 1 {
            return 0;
        }
        (0..pages).map(|n| self.soil(first + n, 1, byte + n * PAGE)).sum()
    }

    /// Takes at most `most` pages from where the last pass ended, then from the beginning: (pages, byte).
    fn take(&mut self, most: u64) -> Vec<(u64, u64)> {
        let mut taken = Vec::new();
        let mut left = most;
        while left > 0 {
            let within = self.ranges.range(..self.cursor).next_back().filter(|(start, (count, _))| *start + count > self.cursor);
            let next = within.or_else(|| self.ranges.range(self.cursor..).next()).or_else(|| self.ranges.iter().next());
            let Some((&start, &(count, byte))) = next else { break };
            self.ranges.remove(&start);
            let skip = self.cursor.saturating_sub(start).min(count);
            let skip = if skip == count { 0 } else { skip };
            let own = (count - skip).min(left);
            if skip > 0 {
                self.ranges.insert(start, (skip, byte));
            }
            if skip + own < count {
                self.ranges.insert(start + skip + own, (count - skip - own, byte + (skip + own) * PAGE));
            }
            taken.push((own, byte + skip * PAGE));
            self.cursor = start + skip + own;
            left -= own;
        }
        taken
    }
}
