//! The engine over io_uring: registered files and memory, requests sent together, completions taken
//! together.
//!
//! # Limits
//! A ring is used by the thread that made it (`IORING_SETUP_SINGLE_ISSUER`); it cannot be sent to
//! another.
//!
//! # Sources
//! io_uring_setup(2), io_uring_enter(2), io_uring_register(2). Flags that an older kernel does not
//! have (EINVAL) are left out.

#![allow(
    unsafe_code,
    reason = "the kernel is told addresses: of registered memory, and in every request"
)]

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
    files: Vec<OpenFile>,
    buffers: Buffers,
    /// True if the memory is registered: mapped and pinned once, not for every request.
    registered: bool,
    /// Transfers in flight, each in a slot, which is also its place in memory; `free` lists the
    /// unused slots.
    slots: Vec<Flight<Tag>>,
    free: Vec<u32>,
    /// The number of queued requests that are sent at once, while the rest of a round is still
    /// made.
    batch: u32,
    /// Requests queued and not yet sent. There are no more slots than entries of the queue, so it
    /// is never full.
    unsent: u32,
    /// Makes the ring impossible to send to another thread.
    here: PhantomData<*const ()>,
}

/// A transfer, and the number of bytes done.
#[derive(Clone, Copy, Default)]
struct Flight<Tag> {
    transfer: Transfer<Tag>,
    moved: u32,
}

/// The error that prevents a ring, with the files and memory given back.
pub type Refused = (io::Errno, Vec<OpenFile>, Buffers);

/// The batch of requests for a device: it starts on the first while the others of a round are made.
/// With all of a round in one call a disk is idle meanwhile (0.88 of fio's rate at 32 in flight on
/// a virtual disk, rather than 1.01). The page cache answers within the call, so there a call less
/// is worth more.
const DIRECT_BATCH: u32 = 4;

/// The most transfers in flight on one ring.
pub const DEEPEST: u32 = 4096;

impl<Tag: Copy + Default> Ring<Tag> {
    /// A ring over `files`, with as many transfers in flight as `buffers` has places, at most
    /// [`DEEPEST`].
    pub fn new(files: Vec<OpenFile>, mut buffers: Buffers) -> Result<Ring<Tag>, Refused> {
        let depth = u32::try_from(buffers.count()).unwrap_or(DEEPEST).min(DEEPEST);
        let descriptors: Vec<i32> = files.iter().map(|file| file.as_fd().as_raw_fd()).collect();
        // The kernel rounds up to a power of two, and has space for twice as many completions, so
        // none can be lost.
        let made = setup::set_up(depth).and_then(|ring| {
            match ring.submitter().register_files(&descriptors) {
                Ok(()) => Ok(ring),
                Err(e) => Err(io::Errno::from_io_error(&e).unwrap_or(io::Errno::IO)),
            }
        });
        let ring = match made {
            Ok(ring) => ring,
            Err(errno) => return Err((errno, files, buffers)),
        };
        Ok(Ring {
            entrance: Entrance::new(&ring),
            batch: if files.iter().any(|file| file.cache() == Cache::Around) {
                DIRECT_BATCH
            } else {
                DEEPEST
            },
            registered: setup::register(&ring, &mut buffers),
            ring,
            files,
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

    pub(crate) fn files(&self) -> &[OpenFile] {
        &self.files
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    pub(crate) fn memory(&mut self, place: usize) -> Option<&mut [u8]> {
        (self.in_flight() == 0).then(|| self.buffers.of_place(place)).flatten()
    }

    /// Queues a transfer; it is sent with others, at the next [`Ring::wait`] at the latest.
    #[inline(always)]
    #[allow(
        clippy::inline_always,
        reason = "a transfer is built by its caller, and goes from registers into the queue"
    )]
    pub(crate) fn push(&mut self, transfer: Transfer<Tag>) -> Result<(), Errno> {
        check(&transfer, &self.files, &self.buffers)?;
        let slot = *self.free.last().ok_or(Errno::Io)?;
        let flight = Flight { transfer, moved: 0 };
        self.queue(slot, &flight)?;
        self.slots[slot as usize] = flight;
        self.free.pop();
        // The next `wait` meets an error of the ring itself again, and reports it.
        if self.unsent >= self.batch {
            let _ = self.send(0);
        }
        Ok(())
    }

    /// The implementation of [`crate::engine::Engine::take`].
    #[inline]
    pub(crate) fn take(&mut self, mut answer: impl FnMut(Finished<Tag>)) {
        let mut again = Vec::new();
        for entry in self.ring.completion() {
            let Some((slot, flight)) = u32::try_from(entry.user_data())
                .ok()
                .and_then(|slot| Some((slot, self.slots.get_mut(slot as usize)?)))
            else {
                debug_assert!(false, "the kernel answers what it was not asked");
                continue;
            };
            let error = match outcome(entry.result(), flight, &self.files) {
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

    /// Queues the rest of the transfers in these slots.
    #[cold]
    fn ask_again(&mut self, slots: &[u32], mut answer: impl FnMut(Finished<Tag>)) {
        for &slot in slots {
            let flight = self.slots[slot as usize];
            if let Err(errno) = self.queue(slot, &flight) {
                self.free.push(slot);
                answer(Finished {
                    tag: flight.transfer.tag,
                    place: slot as usize,
                    error: Some(errno),
                });
            }
        }
    }
}

impl<Tag> Ring<Tag> {
    /// The number of transfers in flight.
    fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Queues the rest of a transfer.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "as `push`")]
    fn queue(&mut self, slot: u32, flight: &Flight<Tag>) -> Result<(), Errno> {
        let entry = entry::entry(flight, slot, self.registered, &self.buffers);
        // SAFETY: file and memory are registered or owned by `self` until the request is answered;
        // `check` found the transfer no longer than a place, and no other request uses the place of
        // this slot.
        unsafe { self.ring.submission().push(&entry) }.map_err(|_| Errno::Io)?;
        self.unsent += 1;
        Ok(())
    }

    /// Implements [`crate::engine::Engine::wait`]. Queued requests are sent even if enough are
    /// done, to keep the device busy.
    #[inline]
    pub(crate) fn wait(&mut self, least: usize) -> Result<(), Errno> {
        let least = least.min(self.in_flight());
        // The kernel counts completions not yet taken among those it waits for.
        while self.unsent > 0 || self.ring.completion().len() < least {
            self.send(least)?;
        }
        Ok(())
    }

    /// Sends the queued requests, and waits for `want` completions.
    #[inline]
    fn send(&mut self, want: usize) -> Result<(), Errno> {
        match self.entrance.enter(self.unsent, u32::try_from(want).unwrap_or(u32::MAX)) {
            Ok(sent) => {
                self.unsent = self.unsent.saturating_sub(sent);
                Ok(())
            }
            // A signal, or a momentary lack of memory: the caller tries again.
            Err(io::Errno::INTR | io::Errno::AGAIN | io::Errno::BUSY) => Ok(()),
            Err(from) => Err(errno::from_kernel(from)),
        }
    }
}

/// The effect of the kernel's result on a transfer: true if it must be continued, or an error.
#[inline]
fn outcome<Tag>(result: i32, flight: &mut Flight<Tag>, files: &[OpenFile]) -> Result<bool, Errno> {
    match u32::try_from(result) {
        Ok(bytes) if bytes == flight.transfer.length - flight.moved => Ok(false),
        Ok(bytes) => {
            flight.moved = flight.moved.saturating_add(bytes);
            goes_on(
                &flight.transfer,
                files.get(flight.transfer.file).ok_or(Errno::NoDevice)?,
                flight.moved,
                bytes,
            )
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
            // The kernel may still write into the memory: a leak is better than a reuse of the
            // mapping.
            self.buffers.forget();
        }
        self.entrance.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread has places for 16: rings that kept theirs would keep their files open and their
    /// memory pinned as well.
    #[test]
    fn a_ring_that_is_gone_leaves_its_place_to_the_next() {
        let registered = || {
            let ring = Ring::<u64>::new(Vec::new(), Buffers::new(1, 4096).unwrap())
                .map_err(|(errno, ..)| errno);
            ring.map(|ring| ring.entrance.is_registered())
        };
        match registered() {
            Ok(true) => assert!((0..40).all(|_| registered() == Ok(true))),
            other => println!("skipped: this kernel has no registered rings: {other:?}"),
        }
    }
}
