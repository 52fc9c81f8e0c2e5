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
use io_uring::types::{Fixed, FsyncFlags};
use io_uring::{IoUring, opcode, squeue};
use rustix::io::{self, ReadWriteFlags};
use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd};
use trueline_geom::error::Errno;

/// A ring, its files and its memory.
pub struct Ring {
    ring: IoUring,
    lanes: Vec<Lane>,
    buffers: Buffers,
    /// Whether the memory is registered: mapped and pinned once, not at every request.
    registered: bool,
    depth: usize,
    /// What is in flight, each in its slot; what is not is in `free`.
    slots: Vec<Transfer>,
    free: Vec<u32>,
    /// Pushed, and not yet sent.
    unsent: bool,
    /// Done while something else was asked for.
    early: Vec<Finished>,
}

/// Why there is no ring, and what it would have been made of.
pub type Refused = (io::Errno, Vec<Lane>, Buffers);

/// The most that one ring has in flight.
const DEEPEST: u32 = 4096;

/// The longest memory that can be registered at once (`io_buffer_validate`).
const REGISTERED: usize = 1 << 30;

impl Ring {
    /// A ring for `depth` transfers at a time over `lanes`.
    pub fn new(lanes: Vec<Lane>, mut buffers: Buffers, depth: u32) -> Result<Ring, Refused> {
        let depth = depth.clamp(1, DEEPEST).next_power_of_two();
        let files: Vec<i32> = lanes.iter().map(|lane| lane.as_fd().as_raw_fd()).collect();
        let made = set_up(depth).and_then(|ring| {
            ring.submitter().register_files(&files)?;
            Ok(ring)
        });
        let ring = match made {
            Ok(ring) => ring,
            Err(e) => return Err((io::Errno::from_io_error(&e).unwrap_or(io::Errno::IO), lanes, buffers)),
        };
        let registered = register(&ring, &mut buffers);
        let idle = Transfer { tag: 0, op: Op::Flush, lane: 0, offset: 0, place: 0, length: 0, fua: false };
        let slots = vec![idle; ring.params().cq_entries() as usize];
        let free = (0..ring.params().cq_entries()).rev().collect();
        let depth = depth as usize;
        Ok(Ring { ring, lanes, buffers, registered, depth, slots, free, unsent: false, early: Vec::new() })
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
    #[inline]
    pub(crate) fn push(&mut self, transfer: Transfer) -> Result<(), Errno> {
        check(&transfer, &self.lanes, &self.buffers)?;
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => self.make_room()?,
        };
        self.slots[slot as usize] = transfer;
        self.queue(slot)
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

    /// Queues what is in `slot`.
    #[inline]
    fn queue(&mut self, slot: u32) -> Result<(), Errno> {
        let entry = self.entry(slot);
        self.unsent = true;
        loop {
            // SAFETY: file and memory are registered or owned by `self` until the request is answered, and `check` found the memory inside.
            if unsafe { self.ring.submission().push(&entry) }.is_ok() {
                return Ok(());
            }
            if let Err(errno) = self.send(0) {
                self.free.push(slot);
                return Err(errno);
            }
        }
    }

    /// The request of what is in `slot`.
    #[inline]
    fn entry(&self, slot: u32) -> squeue::Entry {
        let Transfer { op, lane, offset, place, length, fua, .. } = self.slots[slot as usize];
        #[allow(clippy::cast_possible_truncation, reason = "`check` found the lane, and a ring has far fewer than that many")]
        let file = Fixed(lane as u32);
        let address = self.buffers.address(place);
        #[allow(clippy::cast_possible_wrap, reason = "flags, which the kernel calls signed")]
        let flags = if fua { ReadWriteFlags::DSYNC.bits() as i32 } else { 0 };
        let entry = match (op, self.registered) {
            (Op::Read, true) => opcode::ReadFixed::new(file, address, length, 0).offset(offset).build(),
            (Op::Read, false) => opcode::Read::new(file, address, length).offset(offset).build(),
            (Op::Write, true) => opcode::WriteFixed::new(file, address, length, 0).offset(offset).rw_flags(flags).build(),
            (Op::Write, false) => opcode::Write::new(file, address, length).offset(offset).rw_flags(flags).build(),
            (Op::Flush, _) => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
        };
        entry.user_data(u64::from(slot))
    }

    /// Sends what is queued, and waits for `want` completions.
    fn send(&mut self, want: usize) -> Result<(), Errno> {
        match self.ring.submit_and_wait(want) {
            Ok(_) => {
                self.unsent = !self.ring.submission().is_empty();
                Ok(())
            }
            // A signal; or the kernel wants completions taken first, which the caller does.
            Err(e) => match io::Errno::from_io_error(&e) {
                Some(io::Errno::INTR | io::Errno::AGAIN | io::Errno::BUSY) if self.in_flight() > 0 => Ok(()),
                from => Err(from.map_or(Errno::Io, errno)),
            },
        }
    }

    /// See [`crate::engine::Engine::wait`].
    #[inline]
    pub(crate) fn wait(&mut self, least: usize, done: &mut Vec<Finished>) -> Result<(), Errno> {
        let least = least.saturating_sub(self.early.len());
        done.append(&mut self.early);
        self.collect(least, done)
    }

    /// Sends what is queued and takes what is done, until that is at least `least`, or all.
    fn collect(&mut self, least: usize, done: &mut Vec<Finished>) -> Result<(), Errno> {
        let enough = done.len() + least.min(self.in_flight());
        loop {
            let ready = done.len() + self.ring.completion().len();
            if self.unsent || ready < enough {
                self.send(enough.saturating_sub(ready))?;
            }
            self.take(done)?;
            if done.len() >= enough && !self.unsent {
                return Ok(());
            }
        }
    }

    /// Takes what is done.
    #[inline]
    fn take(&mut self, done: &mut Vec<Finished>) -> Result<(), Errno> {
        // What is left of a short transfer goes into the queue, so the completions are not borrowed meanwhile.
        while let Some(entry) = { self.ring.completion().next() } {
            let slot = u32::try_from(entry.user_data()).map_err(|_| Errno::Io)?;
            let transfer = *self.slots.get(slot as usize).ok_or(Errno::Io)?;
            let answer = match u32::try_from(entry.result()) {
                Ok(bytes) if bytes == transfer.length => Ok(None),
                Ok(bytes) => rest(&transfer, &self.lanes[transfer.lane], bytes),
                Err(_) => match io::Errno::from_raw_os_error(-entry.result()) {
                    io::Errno::INTR | io::Errno::AGAIN => Ok(Some(transfer)),
                    from => Err(errno(from)),
                },
            };
            let error = match answer {
                Ok(Some(rest)) => {
                    self.slots[slot as usize] = rest;
                    match self.queue(slot) {
                        Ok(()) => continue,
                        Err(errno) => {
                            done.push(Finished { tag: transfer.tag, error: Some(errno) });
                            continue;
                        }
                    }
                }
                Ok(None) => None,
                Err(errno) => Some(errno),
            };
            self.free.push(slot);
            done.push(Finished { tag: transfer.tag, error });
        }
        Ok(())
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
    }
}

/// A ring of `entries` with as many of the flags as this kernel has.
fn set_up(entries: u32) -> std::io::Result<IoUring> {
    let mut refused = None;
    for level in 0..4 {
        let mut builder = IoUring::builder();
        builder.dontfork();
        if level < 3 {
            // One bad request does not hold the others back (5.18); nobody is interrupted to be told of a completion (5.19).
            builder.setup_submit_all();
            match level {
                2 => builder.setup_coop_taskrun(),
                // Completions are worked off when they are asked for, by the one thread that asks (6.1).
                _ => builder.setup_single_issuer().setup_defer_taskrun(),
            };
            if level == 0 {
                // No indirection between queue and entries (6.6).
                builder.setup_no_sqarray();
            }
        }
        match builder.build(entries) {
            Err(e) if io::Errno::from_io_error(&e) == Some(io::Errno::INVAL) => refused = Some(e),
            made => return made,
        }
    }
    Err(refused.unwrap_or_else(|| io::Errno::INVAL.into()))
}

/// Registers all of the memory; `false` where that cannot be had: more than may be locked, or than can be registered at once.
fn register(ring: &IoUring, buffers: &mut Buffers) -> bool {
    if buffers.len() > REGISTERED {
        return false;
    }
    let all = [IoSliceMut::new(buffers.bytes_mut(0, buffers.len()))];
    // SAFETY: std promises that an IoSliceMut is an iovec. The mapping outlives the ring's use of it: `Ring::drop` waits for what is in
    // flight, and if it cannot wait, it leaves the mapping where it is.
    unsafe { ring.submitter().register_buffers(&*std::ptr::from_ref(&all).cast::<[_; 1]>()) }.is_ok()
}
