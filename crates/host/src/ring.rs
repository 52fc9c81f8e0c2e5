//! The engine over io_uring: registered files and memory, requests sent together, completions taken together.
//!
//! # Limits
//! A ring is used by the thread that made it (`IORING_SETUP_SINGLE_ISSUER`); it cannot be sent to another.
//!
//! # Sources
//! io_uring_setup(2), io_uring_enter(2), io_uring_register(2). What of the flags an older kernel does not have (EINVAL) is left out.

#![allow(unsafe_code, reason = "the kernel is told addresses: of registered memory, and in every request")]

use crate::buffers::Buffers;
use crate::engine::{Finished, Op, Transfer, check, errno, rest};
use crate::lane::Lane;
use io_uring::{IoUring, cqueue};
use rustix::io;
use setup::Entrance;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd};
use trueline_geom::error::Errno;

mod entry;
mod setup;

/// A ring, its files and its memory.
pub struct Ring {
    ring: IoUring,
    entrance: Entrance,
    lanes: Vec<Lane>,
    buffers: Buffers,
    /// Whether the memory is registered: mapped and pinned once, not at every request.
    registered: bool,
    depth: usize,
    /// What is in flight, each in its slot; what is not is in `free`.
    slots: Vec<Transfer>,
    free: Vec<u32>,
    /// In the queue, and not yet sent.
    unsent: u32,
    /// Slots of short transfers, of which the rest is asked for.
    short: Vec<u32>,
    /// Done while something else was asked for.
    early: Vec<Finished>,
    /// Not to be sent to another thread.
    here: PhantomData<*const ()>,
}

/// Why there is no ring, and what it would have been made of.
pub type Refused = (io::Errno, Vec<Lane>, Buffers);

/// The most that one ring has in flight.
pub const DEEPEST: u32 = 4096;

impl Ring {
    /// A ring for `depth` transfers at a time over `lanes`.
    pub fn new(lanes: Vec<Lane>, mut buffers: Buffers, depth: u32) -> Result<Ring, Refused> {
        let depth = depth.clamp(1, DEEPEST).next_power_of_two();
        let files: Vec<i32> = lanes.iter().map(|lane| lane.as_fd().as_raw_fd()).collect();
        let made = setup::set_up(depth).and_then(|ring| match ring.submitter().register_files(&files) {
            Ok(()) => Ok(ring),
            Err(e) => Err(io::Errno::from_io_error(&e).unwrap_or(io::Errno::IO)),
        });
        let ring = match made {
            Ok(ring) => ring,
            Err(errno) => return Err((errno, lanes, buffers)),
        };
        let registered = setup::register(&ring, &mut buffers);
        // As many as there is room for completions: so none can be lost.
        let room = ring.params().cq_entries();
        let idle = Transfer { tag: 0, op: Op::Flush, lane: 0, offset: 0, place: 0, length: 0, fua: false };
        Ok(Ring {
            entrance: Entrance::new(&ring),
            ring,
            lanes,
            buffers,
            registered,
            depth: depth as usize,
            slots: vec![idle; room as usize],
            free: (0..room).rev().collect(),
            unsent: 0,
            short: Vec::new(),
            early: Vec::new(),
            here: PhantomData,
        })
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    pub(crate) fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// Transfers that are not answered.
    fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn memory(&mut self, at: usize, length: usize) -> Option<&mut [u8]> {
        (self.in_flight() == 0 && self.buffers.holds(at, length)).then(|| self.buffers.bytes_mut(at, length))
    }

    /// Puts a transfer into the queue; it is sent with the others at the next [`Ring::wait`].
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "a transfer is built by who pushes it, and copied from registers")]
    pub(crate) fn push(&mut self, transfer: Transfer) -> Result<(), Errno> {
        check(&transfer, &self.lanes, &self.buffers)?;
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => self.make_room()?,
        };
        self.slots[slot as usize] = transfer;
        let queued = self.queue(slot, &transfer);
        if queued.is_err() {
            self.free.push(slot);
        }
        queued
    }

    /// Waits until one transfer is done, and takes its slot.
    #[cold]
    fn make_room(&mut self) -> Result<u32, Errno> {
        let mut early = std::mem::take(&mut self.early);
        let waited = self.collect(1, &mut early);
        self.early = early;
        waited?;
        self.free.pop().ok_or(Errno::Io)
    }

    /// Queues `transfer`, which is in `slot`.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "a transfer is built by who pushes it, and goes from registers into the queue")]
    fn queue(&mut self, slot: u32, transfer: &Transfer) -> Result<(), Errno> {
        let entry = entry::of(transfer, slot, self.registered, &self.buffers);
        let mut queue = self.ring.submission();
        while queue.is_full() {
            drop(queue);
            self.send(0)?;
            queue = self.ring.submission();
        }
        // SAFETY: file and memory are registered or owned by `self` until the request is answered, and `check` found the memory inside.
        unsafe { queue.push(&entry) }.map_err(|_| Errno::Io)?;
        drop(queue);
        self.unsent += 1;
        Ok(())
    }

    /// Sends what is queued, and waits for `want` completions.
    #[inline]
    fn send(&mut self, want: usize) -> Result<(), Errno> {
        match self.entrance.enter(self.unsent, u32::try_from(want).unwrap_or(u32::MAX)) {
            Ok(sent) => {
                self.unsent = self.unsent.saturating_sub(sent);
                Ok(())
            }
            // A signal, or no memory for a moment: the caller asks again.
            Err(io::Errno::INTR | io::Errno::AGAIN | io::Errno::BUSY) => Ok(()),
            Err(from) => Err(errno(from)),
        }
    }

    /// See [`crate::engine::Engine::wait`].
    #[inline]
    pub(crate) fn wait(&mut self, least: usize, done: &mut Vec<Finished>) -> Result<(), Errno> {
        let early = self.early.len();
        if early > 0 {
            done.append(&mut self.early);
        }
        self.collect(least.saturating_sub(early), done)
    }

    /// Sends what is queued and takes what is done, until that is at least `least`, or all.
    fn collect(&mut self, least: usize, done: &mut Vec<Finished>) -> Result<(), Errno> {
        let enough = done.len() + least.min(self.in_flight());
        loop {
            // What is queued is sent even if enough is done: the device is to be kept busy. The kernel counts what is ready and not yet
            // taken as completions that it need not wait for.
            if self.unsent > 0 || done.len() + self.ring.completion().len() < enough {
                self.send(enough.saturating_sub(done.len()))?;
            }
            self.take(done);
            self.go_on(done);
            if done.len() >= enough && self.unsent == 0 {
                return Ok(());
            }
        }
    }

    /// Takes what is done.
    #[inline]
    fn take(&mut self, done: &mut Vec<Finished>) {
        let Ring { ring, slots, free, short, lanes, .. } = self;
        for entry in ring.completion() {
            let Some((slot, place)) = u32::try_from(entry.user_data()).ok().and_then(|slot| Some((slot, slots.get_mut(slot as usize)?)))
            else {
                debug_assert!(false, "the kernel answers what it was not asked");
                continue;
            };
            let error = match outcome(&entry, place, lanes) {
                Ok(None) => None,
                Ok(Some(rest)) => {
                    *place = rest;
                    short.push(slot);
                    continue;
                }
                Err(errno) => Some(errno),
            };
            free.push(slot);
            done.push(Finished { tag: place.tag, error });
        }
    }

    /// Asks for what is left of transfers that came back short.
    #[inline]
    fn go_on(&mut self, done: &mut Vec<Finished>) {
        while let Some(slot) = self.short.pop() {
            let transfer = self.slots[slot as usize];
            if let Err(errno) = self.queue(slot, &transfer) {
                self.free.push(slot);
                done.push(Finished { tag: transfer.tag, error: Some(errno) });
            }
        }
    }
}

/// What came of `transfer`: all of it, a rest to ask for, or an error.
#[inline]
fn outcome(entry: &cqueue::Entry, transfer: &Transfer, lanes: &[Lane]) -> Result<Option<Transfer>, Errno> {
    match u32::try_from(entry.result()) {
        Ok(bytes) if bytes == transfer.length => Ok(None),
        Ok(bytes) => rest(transfer, lanes.get(transfer.lane).ok_or(Errno::NoDevice)?, bytes),
        Err(_) => match io::Errno::from_raw_os_error(entry.result().wrapping_neg()) {
            io::Errno::INTR | io::Errno::AGAIN => Ok(Some(*transfer)),
            from => Err(errno(from)),
        },
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let mut done = Vec::new();
        let in_flight = self.in_flight();
        if in_flight > 0 && self.collect(in_flight, &mut done).is_err() {
            // The kernel may still write into it: a mapping lost is better than one that somebody else gets.
            self.buffers.forget();
        }
        self.entrance.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread has places for 16: rings that kept theirs would keep their files open and their memory pinned as well.
    #[test]
    fn a_ring_that_is_gone_leaves_its_place_to_the_next() {
        let registered = || {
            let ring = Ring::new(Vec::new(), Buffers::new(1, 4096).unwrap(), 1).map_err(|(errno, ..)| errno);
            ring.map(|ring| ring.entrance.is_registered())
        };
        match registered() {
            Ok(true) => assert!((0..40).all(|_| registered() == Ok(true))),
            other => println!("skipped: this kernel has no registered rings: {other:?}"),
        }
    }
}
