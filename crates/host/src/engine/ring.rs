//! The engine over io_uring: registered files and memory, requests sent together, completions taken together.
//!
//! # Limits
//! A ring is used by the thread that made it (`IORING_SETUP_SINGLE_ISSUER`); it cannot be sent to another.
//!
//! # Sources
//! io_uring_setup(2), io_uring_enter(2), io_uring_register(2). What of the flags an older kernel does not have (EINVAL) is left out.

#![allow(unsafe_code, reason = "the kernel is told addresses: of registered memory, and in every request")]

use crate::disk::buffers::Buffers;
use crate::engine::open_file::{Cache, OpenFile};
use crate::engine::{Finished, Transfer, check, goes_on};
use crate::errno;
use io_uring::IoUring;
use rustix::io;
use setup::Entrance;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd};
use trueline_geom::base::error::Errno;

mod entry;
mod setup;

/// A ring, its files and its memory.
pub struct Ring<Tag> {
    ring: IoUring,
    entrance: Entrance,
    lanes: Vec<OpenFile>,
    buffers: Buffers,
    /// Whether the memory is registered: mapped and pinned once, not at every request.
    registered: bool,
    /// What is in flight, each in its slot, which is its place in memory too; what is not is in `free`.
    slots: Vec<Flight<Tag>>,
    free: Vec<u32>,
    /// Requests that are sent as soon as so many are queued, while the rest of a round is still made.
    batch: u32,
    /// In the queue, and not yet sent. There are no more slots than entries of the queue, so that it is never full.
    unsent: u32,
    /// Not to be sent to another thread.
    here: PhantomData<*const ()>,
}

/// A transfer, and how much of it is done.
#[derive(Clone, Copy, Default)]
struct Flight<Tag> {
    transfer: Transfer<Tag>,
    moved: u32,
}

/// Why there is no ring, and what it would have been made of.
pub type Refused = (io::Errno, Vec<OpenFile>, Buffers);

/// Requests that are sent together where a device is asked: it starts on the first while the others of a round are made. With all of
/// a round in one call a disk stands idle meanwhile (0.88 of fio's rate at 32 in flight on a virtual disk; 1.01 so). The page cache answers within
/// the call, so there a call less is worth more.
const DIRECT_BATCH: u32 = 4;

/// The most that one ring has in flight.
pub const DEEPEST: u32 = 4096;

impl<Tag: Copy + Default> Ring<Tag> {
    /// A ring over `lanes`, for as many transfers at a time as `buffers` has places, at most [`DEEPEST`].
    pub fn new(lanes: Vec<OpenFile>, mut buffers: Buffers) -> Result<Ring<Tag>, Refused> {
        let depth = u32::try_from(buffers.count()).unwrap_or(DEEPEST).min(DEEPEST);
        let files: Vec<i32> = lanes.iter().map(|lane| lane.as_fd().as_raw_fd()).collect();
        // The kernel rounds up to a power of two, and has room for twice as many completions: so none can be lost.
        let made = setup::set_up(depth).and_then(|ring| match ring.submitter().register_files(&files) {
            Ok(()) => Ok(ring),
            Err(e) => Err(io::Errno::from_io_error(&e).unwrap_or(io::Errno::IO)),
        });
        let ring = match made {
            Ok(ring) => ring,
            Err(errno) => return Err((errno, lanes, buffers)),
        };
        Ok(Ring {
            entrance: Entrance::new(&ring),
            batch: if lanes.iter().any(|lane| lane.cache() == Cache::Around) { DIRECT_BATCH } else { DEEPEST },
            registered: setup::register(&ring, &mut buffers),
            ring,
            lanes,
            buffers,
            slots: vec![Flight::default(); depth as usize],
            free: (0..depth).rev().collect(),
            unsent: 0,
            here: PhantomData,
        })
    }

    pub(crate) fn depth(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn lanes(&self) -> &[OpenFile] {
        &self.lanes
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    pub(crate) fn memory(&mut self, place: usize) -> Option<&mut [u8]> {
        (self.in_flight() == 0).then(|| self.buffers.of_place(place)).flatten()
    }

    /// Puts a transfer into the queue; it is sent with others, at the next [`Ring::wait`] at the latest.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "a transfer is built by who pushes it, and goes from registers into the queue")]
    pub(crate) fn push(&mut self, transfer: Transfer<Tag>) -> Result<(), Errno> {
        check(&transfer, &self.lanes, &self.buffers)?;
        let slot = *self.free.last().ok_or(Errno::Io)?;
        let flight = Flight { transfer, moved: 0 };
        self.queue(slot, &flight)?;
        self.slots[slot as usize] = flight;
        self.free.pop();
        // An error of the ring itself is met again, and told, by the next `wait`.
        if self.unsent >= self.batch {
            let _ = self.send(0);
        }
        Ok(())
    }

    /// See [`crate::engine::Engine::take`].
    #[inline]
    pub(crate) fn take(&mut self, mut answer: impl FnMut(Finished<Tag>)) {
        let mut again = Vec::new();
        for entry in self.ring.completion() {
            let Some((slot, flight)) =
                u32::try_from(entry.user_data()).ok().and_then(|slot| Some((slot, self.slots.get_mut(slot as usize)?)))
            else {
                debug_assert!(false, "the kernel answers what it was not asked");
                continue;
            };
            let error = match outcome(entry.result(), flight, &self.lanes) {
                Ok(false) => None,
                Ok(true) => {
                    again.push(slot);
                    continue;
                }
                Err(errno) => Some(errno),
            };
            self.free.push(slot);
            answer(Finished { tag: flight.transfer.tag, place: slot as usize, error });
        }
        if !again.is_empty() {
            self.ask_again(&again, answer);
        }
    }

    /// Asks for what is left of the transfers in these slots.
    #[cold]
    fn ask_again(&mut self, slots: &[u32], mut answer: impl FnMut(Finished<Tag>)) {
        for &slot in slots {
            let flight = self.slots[slot as usize];
            if let Err(errno) = self.queue(slot, &flight) {
                self.free.push(slot);
                answer(Finished { tag: flight.transfer.tag, place: slot as usize, error: Some(errno) });
            }
        }
    }
}

impl<Tag> Ring<Tag> {
    /// Transfers that are not answered.
    fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Puts what is left of a transfer into the queue.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "as `push`")]
    fn queue(&mut self, slot: u32, flight: &Flight<Tag>) -> Result<(), Errno> {
        let entry = entry::of(flight, slot, self.registered, &self.buffers);
        // SAFETY: file and memory are registered or owned by `self` until the request is answered; `check` found the transfer no longer
        // than a place, and nobody else has the place of this slot.
        unsafe { self.ring.submission().push(&entry) }.map_err(|_| Errno::Io)?;
        self.unsent += 1;
        Ok(())
    }

    /// See [`crate::engine::Engine::wait`]. What is queued is sent even if enough is done: the device is to be kept busy.
    #[inline]
    pub(crate) fn wait(&mut self, least: usize) -> Result<(), Errno> {
        let least = least.min(self.in_flight());
        // The kernel counts what is done and not yet taken as completions that it need not wait for.
        while self.unsent > 0 || self.ring.completion().len() < least {
            self.send(least)?;
        }
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
            Err(from) => Err(errno::from_kernel(from)),
        }
    }
}

/// What the kernel's answer makes of a transfer: whether there is more to ask for, or an error.
#[inline]
fn outcome<Tag>(result: i32, flight: &mut Flight<Tag>, lanes: &[OpenFile]) -> Result<bool, Errno> {
    match u32::try_from(result) {
        Ok(bytes) if bytes == flight.transfer.length - flight.moved => Ok(false),
        Ok(bytes) => {
            flight.moved = flight.moved.saturating_add(bytes);
            goes_on(&flight.transfer, lanes.get(flight.transfer.lane).ok_or(Errno::NoDevice)?, flight.moved, bytes)
        }
        Err(_) => match io::Errno::from_raw_os_error(result.wrapping_neg()) {
            io::Errno::INTR | io::Errno::AGAIN => Ok(true),
            from => Err(errno::from_kernel(from)),
        },
    }
}

impl<Tag> Drop for Ring<Tag> {
    fn drop(&mut self) {
        if self.wait(self.in_flight()).is_err() {
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
            let ring = Ring::<u64>::new(Vec::new(), Buffers::new(1, 4096).unwrap()).map_err(|(errno, ..)| errno);
            ring.map(|ring| ring.entrance.is_registered())
        };
        match registered() {
            Ok(true) => assert!((0..40).all(|_| registered() == Ok(true))),
            other => println!("skipped: this kernel has no registered rings: {other:?}"),
        }
    }
}
