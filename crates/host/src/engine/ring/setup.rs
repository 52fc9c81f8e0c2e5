//! The setup of a ring: the flags that this kernel has, its registered memory, and the call that
//! drives it.

use crate::disk::buffers::Buffers;
use io_uring::IoUring;
use rustix::io;
use rustix::io_uring::{
    IoringEnterFlags, IoringRegisterOp, io_uring_enter, io_uring_ptr, io_uring_register,
    io_uring_rsrc_update,
};
use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

/// The most memory in bytes that can be registered at once (`io_buffer_validate` in Linux
/// `io_uring/rsrc.c`).
const REGISTERED: usize = 1 << 30;

/// A ring of `entries`, with the best set of flags that this kernel has.
pub(super) fn set_up(entries: u32) -> io::Result<IoUring> {
    let mut refused = io::Errno::INVAL;
    for level in 0..4 {
        let mut builder = IoUring::builder();
        builder.dontfork();
        if level < 3 {
            // One bad request does not hold back the others (5.18); completions interrupt no thread
            // (5.19).
            builder.setup_submit_all();
            match level {
                2 => builder.setup_coop_taskrun(),
                // Completions are processed when the one thread asks for them (6.1).
                _ => builder.setup_single_issuer().setup_defer_taskrun(),
            };
            if level == 0 {
                // No indirection between queue and entries (6.6).
                builder.setup_no_sqarray();
            }
        }
        match builder.build(entries) {
            Ok(ring) => return Ok(ring),
            Err(e) => match io::Errno::from_io_error(&e) {
                Some(io::Errno::INVAL) => refused = io::Errno::INVAL,
                from => return Err(from.unwrap_or(io::Errno::IO)),
            },
        }
    }
    Err(refused)
}

/// Registers all of the memory. False if that is impossible: more than may be locked, or than can
/// be registered at once.
pub(super) fn register(ring: &IoUring, buffers: &mut Buffers) -> bool {
    if buffers.len() > REGISTERED {
        return false;
    }
    let all = [IoSliceMut::new(buffers.bytes_mut(0, buffers.len()))];
    // SAFETY: std promises that an IoSliceMut is an iovec. The mapping outlives the ring's use of
    // it: `Ring::drop` waits for transfers in flight, and if it cannot wait, it leaks the mapping.
    unsafe { ring.submitter().register_buffers(&*std::ptr::from_ref(&all).cast::<[_; 1]>()) }
        .is_ok()
}

/// The way to enter the kernel: by the ring's index among the thread's registered rings, which
/// saves a lookup of the descriptor in every call (5.18), or else by its descriptor.
pub(super) struct Entrance {
    fd: RawFd,
    flags: IoringEnterFlags,
    /// The ring's own descriptor, if the ring is registered.
    ring: Option<RawFd>,
}

impl Entrance {
    /// The fastest way to enter `ring`.
    pub(super) fn new(ring: &IoUring) -> Entrance {
        let fd = ring.as_raw_fd();
        let data = io_uring_ptr::new(
            usize::try_from(fd).map_or(std::ptr::null_mut(), std::ptr::without_provenance_mut),
        );
        let mut update = io_uring_rsrc_update::default();
        (update.offset, update.data) = (u32::MAX, data);
        // SAFETY: one update, which the kernel reads and whose `offset` it sets to the place that
        // it chose.
        let registered = unsafe {
            let ring = BorrowedFd::borrow_raw(fd);
            io_uring_register(
                ring,
                IoringRegisterOp::RegisterRingFds,
                std::ptr::from_mut(&mut update).cast(),
                1,
            )
        };
        match (registered, RawFd::try_from(update.offset)) {
            (Ok(1), Ok(place)) => {
                Entrance { fd: place, flags: IoringEnterFlags::REGISTERED_RING, ring: Some(fd) }
            }
            _ => Entrance { fd, flags: IoringEnterFlags::empty(), ring: None },
        }
    }

    /// True if the ring is registered with the thread.
    #[cfg(test)]
    pub(super) fn is_registered(&self) -> bool {
        self.ring.is_some()
    }

    /// Unregisters the ring: a thread has 16 such entries. An entry keeps the ring after its
    /// descriptor is closed, and with it its files and memory, until the thread ends
    /// (`io_ringfd_unregister` in Linux `io_uring/tctx.c`). The ring is still open.
    pub(super) fn give_back(&mut self) {
        let (Some(fd), Ok(place)) = (self.ring.take(), u32::try_from(self.fd)) else { return };
        let mut update = io_uring_rsrc_update::default();
        update.offset = place;
        // SAFETY: one update, which the kernel reads, of the place that it chose; `fd` is open
        // until `Ring`'s fields are dropped.
        let _ = unsafe {
            let ring = BorrowedFd::borrow_raw(fd);
            io_uring_register(
                ring,
                IoringRegisterOp::UnregisterRingFds,
                std::ptr::from_mut(&mut update).cast(),
                1,
            )
        };
        (self.fd, self.flags) = (fd, IoringEnterFlags::empty());
    }

    /// Sends `count` requests and waits for `want` completions.
    pub(super) fn enter(&self, count: u32, want: u32) -> io::Result<u32> {
        let events = if want > 0 { IoringEnterFlags::GETEVENTS } else { IoringEnterFlags::empty() };
        // SAFETY: `fd` is this ring's, open as long as the ring, or its index among the registered
        // ones, as the flag says; the memory that the requests point to was checked when they were
        // put into the queue.
        unsafe {
            io_uring_enter(
                BorrowedFd::borrow_raw(self.fd).as_fd(),
                count,
                want,
                self.flags | events,
            )
        }
    }
}
