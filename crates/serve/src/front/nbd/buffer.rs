//! Memory of a connection that comes and goes.

use std::ops::{Deref, DerefMut};
use trueline_host::disk::buffers::Buffers;

/// From how many bytes on a buffer is a mapping of its own: all of it is gone when it goes, which is not so of what an allocator
/// keeps for the next one, and only what is written of it takes room.
const LARGE: usize = 512 << 10;

/// Bytes, zeros at first.
pub(super) enum Buffer {
    /// From the allocator.
    Heap(Vec<u8>),
    /// From the kernel; as many of its bytes are used.
    Map(Buffers, usize),
}

impl Buffer {
    pub(super) fn new(length: usize) -> Buffer {
        let mapped = u64::try_from(length).ok().filter(|_| length >= LARGE).and_then(|length| Buffers::zeros(length).ok());
        match mapped {
            Some(map) => Buffer::Map(map, length),
            None => Buffer::Heap(vec![0; length]),
        }
    }

    pub(super) fn none() -> Buffer {
        Buffer::Heap(Vec::new())
    }

    /// The first `length` bytes alone, of which there are as many.
    pub(super) fn truncate(&mut self, length: usize) {
        match self {
            Buffer::Heap(bytes) => bytes.truncate(length),
            Buffer::Map(_, used) => *used = length.min(*used),
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Buffer::Heap(bytes) => bytes,
            Buffer::Map(map, used) => map.bytes(0, *used),
        }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Buffer::Heap(bytes) => bytes,
            Buffer::Map(map, used) => map.bytes_mut(0, *used),
        }
    }
}
