//! One queue of a disk: requests fetched, answered, and their answers sent with the next fetch.
//!
//! The thread that fetches answers what need not wait for a device; the rest is left to others, whose answers it sends, because the
//! driver takes them from the thread that fetched (`ubq_daemon` in `drivers/block/ublk_drv.c`).

#![allow(unsafe_code, reason = "commands to the driver carry addresses of memory that it reads and writes")]

use super::wire::{self, DESCRIPTOR, MOST_DEPTH, command};
use io_uring::{IoUring, opcode, squeue, types};
use rustix::event::{EventfdFlags, PollFlags};
use rustix::io;
use rustix::mm::{MapFlags, ProtFlags};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Requests at a time.
pub const DEPTH: u16 = 64;
/// The most bytes of one.
pub const LARGEST: u32 = 1 << 20;
/// What the kernel's answers to the watch of the event are known by; others are known by their tag.
const EVENT: u64 = u64::MAX;

/// A queue.
pub struct Queue {
    /// Its number among the device's.
    pub number: u16,
    channel: Arc<OwnedFd>,
    descriptors: Descriptors,
    /// One a tag: the kernel's until a request comes, then whose answers it.
    buffers: Vec<Mutex<Vec<u8>>>,
    /// Tags that others have answered, and how.
    done: Mutex<Vec<(u16, i32)>>,
    /// Says that there are some.
    event: OwnedFd,
}

impl Queue {
    /// A queue of the device whose channel this is.
    pub fn open(number: u16, channel: Arc<OwnedFd>) -> io::Result<Queue> {
        let descriptors = Descriptors::map(&channel, number)?;
        let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?;
        let bytes = usize::try_from(LARGEST).map_err(|_| io::Errno::NOMEM)?;
        // Memory that nothing was put into takes no room.
        let buffers = (0..DEPTH).map(|_| Mutex::new(vec![0; bytes])).collect();
        Ok(Queue { number, channel, descriptors, buffers, done: Mutex::default(), event })
    }

    /// What is asked under `tag`.
    pub fn asked(&self, tag: u16) -> [u8; DESCRIPTOR] {
        self.descriptors.read(tag)
    }

    /// The bytes of a request.
    pub fn buffer(&self, tag: u16) -> MutexGuard<'_, Vec<u8>> {
        self.buffers[usize::from(tag)].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn done(&self) -> MutexGuard<'_, Vec<(u16, i32)>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another thread has answered what was asked under `tag`.
    pub fn answered(&self, tag: u16, result: i32) {
        let mut done = self.done();
        done.push((tag, result));
        // Whoever is told takes all there is.
        if done.len() == 1 {
            let _ = io::retry_on_intr(|| io::write(&self.event, &1u64.to_ne_bytes()));
        }
    }

    /// Fetches requests until every fetch was refused: the device is no more. `answer` gives the result of what is asked under a tag, or
    /// [`None`] where another thread will, by [`Queue::answered`]. `begun` is called when the first fetches wait.
    pub fn serve(&self, answer: &mut dyn FnMut(u16) -> Option<i32>, begun: &mut dyn FnMut()) -> std::io::Result<()> {
        // The driver ends a fetch in this thread: better when it waits than whenever it comes from the kernel.
        let mut builder = IoUring::builder();
        let mut ring: IoUring = builder.dontfork().setup_single_issuer().setup_defer_taskrun().build(2 * u32::from(DEPTH))?;
        let mut next: Vec<squeue::Entry> = (0..DEPTH).map(|tag| self.fetch(tag, None)).collect();
        next.push(self.watch());
        let mut came: Vec<(u64, i32)> = Vec::new();
        let mut fetching = usize::from(DEPTH);
        push(&mut ring, &mut next)?;
        ring.submit()?;
        begun();
        while fetching > 0 {
            match ring.submit_and_wait(1) {
                Err(e) if e.kind() != std::io::ErrorKind::Interrupted => return Err(e),
                _ => {}
            }
            came.extend(ring.completion().map(|entry| (entry.user_data(), entry.result())));
            for (tag, result) in came.drain(..) {
                if tag == EVENT {
                    self.take_answered(&mut next);
                } else if result != 0 {
                    // `UBLK_IO_RES_ABORT`: nothing comes under this tag any more.
                    fetching -= 1;
                } else if let Ok(tag) = u16::try_from(tag) {
                    next.extend(answer(tag).map(|result| self.fetch(tag, Some(result))));
                }
            }
            push(&mut ring, &mut next)?;
        }
        Ok(())
    }

    /// Asks for a request under `tag`, with the answer to the one before.
    fn fetch(&self, tag: u16, result: Option<i32>) -> squeue::Entry {
        let address = self.buffer(tag).as_mut_ptr().expose_provenance();
        let command = if result.is_some() { command::COMMIT_AND_FETCH_REQ } else { command::FETCH_REQ };
        let arguments = wire::io(self.number, tag, result.unwrap_or(0), address);
        opcode::UringCmd16::new(types::Fd(self.channel.as_raw_fd()), command).cmd(arguments).build().user_data(tag.into())
    }

    /// Asks to be told when others have answered something. It is read when it is there: a read that the ring does could come after the
    /// memory it goes to has gone.
    fn watch(&self) -> squeue::Entry {
        opcode::PollAdd::new(types::Fd(self.event.as_raw_fd()), u32::from(PollFlags::IN.bits())).build().user_data(EVENT)
    }

    /// What others have answered, to be sent; and the watch for what they will.
    fn take_answered(&self, next: &mut Vec<squeue::Entry>) {
        // There is something to read: it does not wait. Read before what it tells of is taken, so that nothing is missed.
        let _ = io::read(&self.event, &mut [0; 8]);
        let done = std::mem::take(&mut *self.done());
        next.extend(done.into_iter().map(|(tag, result)| self.fetch(tag, Some(result))));
        next.push(self.watch());
    }
}

/// Puts commands where the kernel takes them from.
fn push(ring: &mut IoUring, next: &mut Vec<squeue::Entry>) -> std::io::Result<()> {
    for entry in next.drain(..) {
        // SAFETY: the channel and the event are open as long as the queue, which has the ring's thread, and its buffers are never moved
        // or given back before. There is room: no more are in flight than the ring is long.
        unsafe { ring.submission().push(&entry) }.map_err(|_| std::io::ErrorKind::OutOfMemory)?;
    }
    Ok(())
}

/// The memory in which the kernel says what is asked under each tag.
struct Descriptors {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: memory that this program only reads; a descriptor stays as it is from the fetch's completion until its answer.
unsafe impl Send for Descriptors {}
// SAFETY: as above.
unsafe impl Sync for Descriptors {}

impl Descriptors {
    /// Of a queue: one after another, each with room for the deepest (`UBLKSRV_CMD_BUF_OFFSET`, `ublk_max_cmd_buf_size`).
    fn map(channel: &OwnedFd, queue: u16) -> io::Result<Descriptors> {
        // mmap(2) makes whole pages of it, which is what the driver asks for.
        let bytes = usize::from(DEPTH) * DESCRIPTOR;
        let offset = u64::from(queue) * MOST_DEPTH * DESCRIPTOR as u64;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing that Rust knows of.
        let base = unsafe { rustix::mm::mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, channel, offset) }?;
        Ok(Descriptors { base: NonNull::new(base.cast()).ok_or(io::Errno::NOMEM)?, bytes })
    }

    /// What is asked under `tag`, of which there are [`DEPTH`].
    fn read(&self, tag: u16) -> [u8; DESCRIPTOR] {
        let at = usize::from(tag) * DESCRIPTOR;
        assert!(at + DESCRIPTOR <= self.bytes, "a tag is one of the queue's");
        // SAFETY: inside the mapping, as was just asked; the kernel writes it between requests, hence volatile.
        unsafe { self.base.add(at).cast::<[u8; DESCRIPTOR]>().read_volatile() }
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, with this length, and nothing borrows from it.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
