//! One queue of a disk: it fetches requests, answers them, and sends each answer with the next
//! fetch.
//!
//! The thread that fetches also answers requests that need no wait for a device. Other threads
//! answer the rest, but this one sends their answers, because the driver accepts them only from the
//! thread that fetched (`ubq_daemon` in `drivers/block/ublk_drv.c`).

#![allow(
    unsafe_code,
    reason = "commands to the driver carry addresses of memory that it reads and writes"
)]

use super::wire::{self, DESCRIPTOR, MOST_DEPTH, command};
use crate::lock::lock;
use io_uring::{IoUring, opcode, squeue, types};
use rustix::event::{EventfdFlags, PollFlags};
use rustix::io;
use rustix::mm::{MapFlags, ProtFlags};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard};

/// The most requests in flight.
pub const DEPTH: u16 = 64;
/// The most bytes of one request.
pub const LARGEST: u32 = 1 << 20;
/// The completion number of the event's poll; other completions have their tag.
const EVENT: u64 = u64::MAX;

/// A queue of a device.
pub struct Queue {
    /// The number of the queue within its device.
    pub number: u16,
    channel: Arc<OwnedFd>,
    descriptors: Descriptors,
    /// A buffer for each tag: the kernel's until a request arrives, then the answering thread's.
    buffers: Vec<Mutex<Vec<u8>>>,
    /// Tags answered by other threads, with their results.
    done: Mutex<Vec<(u16, i32)>>,
    /// The event that signals entries in `done`.
    event: OwnedFd,
}

impl Queue {
    /// Opens queue `number` of the device behind `channel`.
    pub fn open(number: u16, channel: Arc<OwnedFd>) -> io::Result<Queue> {
        let descriptors = Descriptors::map(&channel, number)?;
        let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?;
        let bytes = usize::try_from(LARGEST).map_err(|_| io::Errno::NOMEM)?;
        // Memory that was never written takes no room.
        let buffers = (0..DEPTH).map(|_| Mutex::new(vec![0; bytes])).collect();
        Ok(Queue { number, channel, descriptors, buffers, done: Mutex::default(), event })
    }

    /// The descriptor of the request `tag`.
    pub fn asked(&self, tag: u16) -> [u8; DESCRIPTOR] {
        self.descriptors.read(tag)
    }

    /// The data of the request `tag`.
    pub fn buffer(&self, tag: u16) -> MutexGuard<'_, Vec<u8>> {
        lock(&self.buffers[usize::from(tag)])
    }

    fn done(&self) -> MutexGuard<'_, Vec<(u16, i32)>> {
        lock(&self.done)
    }

    /// Notes the answer of another thread to the request `tag`.
    pub fn answered(&self, tag: u16, result: i32) {
        let mut done = self.done();
        done.push((tag, result));
        // The first entry signals; the reader takes all entries.
        if done.len() == 1 {
            let _ = io::retry_on_intr(|| io::write(&self.event, &1u64.to_ne_bytes()));
        }
    }

    /// Fetches requests until every fetch is refused because the device is gone. `answer` returns
    /// the result of a request, or [`None`] if another thread will give it with
    /// [`Queue::answered`]. `begun` is called when the first fetches are waiting.
    pub fn serve(
        &self,
        answer: &mut dyn FnMut(u16) -> Option<i32>,
        begun: &mut dyn FnMut(),
    ) -> std::io::Result<()> {
        // The driver completes a fetch in this thread: better when the thread waits than at any
        // time.
        let mut builder = IoUring::builder();
        let mut ring: IoUring = builder
            .dontfork()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(2 * u32::from(DEPTH))?;
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
                    // `UBLK_IO_RES_ABORT`: no request comes under this tag any more.
                    fetching -= 1;
                } else if let Ok(tag) = u16::try_from(tag) {
                    next.extend(answer(tag).map(|result| self.fetch(tag, Some(result))));
                }
            }
            push(&mut ring, &mut next)?;
        }
        Ok(())
    }

    /// Fetches a request under `tag`, and sends the answer to the one before.
    fn fetch(&self, tag: u16, result: Option<i32>) -> squeue::Entry {
        let address = self.buffer(tag).as_mut_ptr().expose_provenance();
        let command =
            if result.is_some() { command::COMMIT_AND_FETCH_REQ } else { command::FETCH_REQ };
        let arguments = wire::io(self.number, tag, result.unwrap_or(0), address);
        opcode::UringCmd16::new(types::Fd(self.channel.as_raw_fd()), command)
            .cmd(arguments)
            .build()
            .user_data(tag.into())
    }

    /// Polls the event of other threads' answers. It is read only when ready: a read by the ring
    /// could complete after its buffer is gone.
    fn watch(&self) -> squeue::Entry {
        opcode::PollAdd::new(types::Fd(self.event.as_raw_fd()), u32::from(PollFlags::IN.bits()))
            .build()
            .user_data(EVENT)
    }

    /// Queues the answers of other threads, and polls for more.
    fn take_answered(&self, next: &mut Vec<squeue::Entry>) {
        // The event is readable, so this does not wait. It is read before the answers are taken, so
        // that none is missed.
        let _ = io::read(&self.event, &mut [0; 8]);
        let done = std::mem::take(&mut *self.done());
        next.extend(done.into_iter().map(|(tag, result)| self.fetch(tag, Some(result))));
        next.push(self.watch());
    }
}

/// Puts commands into the submission queue.
fn push(ring: &mut IoUring, next: &mut Vec<squeue::Entry>) -> std::io::Result<()> {
    for entry in next.drain(..) {
        // SAFETY: the channel and the event are open as long as the queue, which outlives the ring,
        // and its buffers are never moved or freed before. There is space: no more are in flight
        // than the ring is long.
        unsafe { ring.submission().push(&entry) }.map_err(|_| std::io::ErrorKind::OutOfMemory)?;
    }
    Ok(())
}

/// The kernel's descriptors of requests, one for each tag, mapped.
struct Descriptors {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: memory that this program only reads; a descriptor stays as it is from the fetch's
// completion until its answer.
unsafe impl Send for Descriptors {}
// SAFETY: as above.
unsafe impl Sync for Descriptors {}

impl Descriptors {
    /// Maps the descriptors of a queue. Queues lie one after another, each with space for the
    /// deepest (`UBLKSRV_CMD_BUF_OFFSET`, `ublk_max_cmd_buf_size`).
    fn map(channel: &OwnedFd, queue: u16) -> io::Result<Descriptors> {
        // mmap(2) rounds up to whole pages, as the driver requires.
        let bytes = usize::from(DEPTH) * DESCRIPTOR;
        let offset = u64::from(queue) * MOST_DEPTH * DESCRIPTOR as u64;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing that Rust
        // knows of.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ,
                MapFlags::SHARED,
                channel,
                offset,
            )
        }?;
        Ok(Descriptors { base: NonNull::new(base.cast()).ok_or(io::Errno::NOMEM)?, bytes })
    }

    /// The descriptor of `tag`, which must be below [`DEPTH`].
    fn read(&self, tag: u16) -> [u8; DESCRIPTOR] {
        let at = usize::from(tag) * DESCRIPTOR;
        assert!(at + DESCRIPTOR <= self.bytes, "a tag is one of the queue's");
        // SAFETY: inside the mapping, as just asserted; the kernel writes it between requests,
        // hence volatile.
        unsafe { self.base.add(at).cast::<[u8; DESCRIPTOR]>().read_volatile() }
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, with this length, and nothing borrows from it.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
