//! Memory that a kernel reads into and writes from: page-aligned, with a place for each request,
//! filled once with incompressible bytes.

#![allow(
    unsafe_code,
    reason = "memory that lives outside Rust's allocator, because the kernel keeps its address"
)]

use crate::random;
use rustix::io;
use rustix::mm::{MapFlags, ProtFlags};
use std::ptr::NonNull;
use trueline_geom::base::size::PAGE;
use trueline_geom::base::topology::round_up;

/// A mapping of anonymous memory, divided into places of equal size.
#[derive(Debug)]
pub struct Buffers {
    base: NonNull<u8>,
    bytes: usize,
    place: usize,
}

impl Buffers {
    /// A mapping of `count` places of at least `length` bytes each.
    pub fn new(count: usize, length: u64) -> io::Result<Buffers> {
        let mut buffers = Buffers::map(count, length, MapFlags::PRIVATE)?;
        fill(buffers.bytes_mut(0, buffers.bytes));
        Ok(buffers)
    }

    /// A mapping of one place of `length` zeros, which takes memory only as it is written.
    pub fn zeros(length: u64) -> io::Result<Buffers> {
        Buffers::map(1, length, MapFlags::PRIVATE | MapFlags::NORESERVE)
    }

    fn map(count: usize, length: u64, flags: MapFlags) -> io::Result<Buffers> {
        let place = round_up(length.max(1), PAGE)
            .and_then(|place| usize::try_from(place).ok())
            .ok_or(io::Errno::NOMEM)?;
        let bytes = place
            .checked_mul(count.max(1))
            .filter(|&bytes| bytes <= isize::MAX.unsigned_abs())
            .ok_or(io::Errno::NOMEM)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing that Rust
        // knows of.
        let base =
            unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags) }?;
        let base = NonNull::new(base.cast()).ok_or(io::Errno::NOMEM)?;
        Ok(Buffers { base, bytes, place })
    }

    /// The size of one place in bytes.
    pub fn place(&self) -> usize {
        self.place
    }

    /// The number of places.
    pub fn count(&self) -> usize {
        self.bytes / self.place
    }

    /// The size of all places in bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// True only after the mapping was leaked: there is always one place.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// True if `length` bytes from `at` are all inside the mapping.
    fn holds(&self, at: usize, length: usize) -> bool {
        at.checked_add(length).is_some_and(|end| end <= self.bytes)
    }

    /// Leaks the mapping, because the kernel may still use it.
    pub(crate) fn forget(&mut self) {
        self.bytes = 0;
    }

    /// The address of byte `at` of a place, for the kernel. Both must be inside.
    #[inline]
    pub(crate) fn address(&self, place: usize, at: u32) -> *mut u8 {
        let at = place * self.place + at as usize;
        debug_assert!(at <= self.bytes);
        self.base.as_ptr().wrapping_add(at)
    }

    /// The bytes of one place; `None` if there is no such place. The caller knows that no request
    /// on them is in flight.
    pub(crate) fn of_place(&mut self, place: usize) -> Option<&mut [u8]> {
        (place < self.count()).then(|| self.bytes_mut(place * self.place, self.place))
    }

    /// The bytes `length` from `at` on. The caller knows that no request on them is in flight.
    pub fn bytes(&self, at: usize, length: usize) -> &[u8] {
        assert!(self.holds(at, length), "{length} bytes at {at} of {}", self.bytes);
        // SAFETY: inside the mapping, which lives as long as `self`, was initialised when it was
        // made and is written only through `bytes_mut`, which borrows all of it, or by a request in
        // flight, of which there is none.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(at), length) }
    }

    /// As [`Buffers::bytes`], but mutable.
    pub fn bytes_mut(&mut self, at: usize, length: usize) -> &mut [u8] {
        assert!(self.holds(at, length), "{length} bytes at {at} of {}", self.bytes);
        // SAFETY: as above, and `self` is borrowed for as long.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(at), length) }
    }
}

// SAFETY: it owns its mapping, which belongs to the process and not to a thread.
unsafe impl Send for Buffers {}
// SAFETY: a shared reference only reads; `crate::disk::shared`, which hands addresses out, writes
// through them with atomic stores alone.
unsafe impl Sync for Buffers {}

impl Drop for Buffers {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        // SAFETY: made by mmap with this length; nothing borrows it any more, and an engine drops
        // it after its last request.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// Fills `bytes` with xorshift64* from a random seed: no drive can compress it.
fn fill(bytes: &mut [u8]) {
    // Without the system's randomness the bytes are the same every time, and no less
    // incompressible.
    let seed = random::bytes::<8>().map_or(0x9e37_79b9_7f4a_7c15, u64::from_le_bytes);
    let mut state = seed | 1;
    for word in bytes.chunks_mut(8) {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let eight = state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes();
        word.copy_from_slice(&eight[..word.len()]);
    }
}
