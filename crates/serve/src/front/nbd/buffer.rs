//! Temporary memory of a connection.

use std::ops::{Deref, DerefMut};
use trueline_host::disk::buffers::Buffers;

/// The least bytes of a buffer with a mapping of its own. A mapping is freed completely, while an
/// allocator may keep memory for later, and takes memory only as it is written.
const LARGE: usize = 512 << 10;

/// A buffer of bytes, zeros at first.
pub(super) enum Buffer {
    /// Memory of the allocator.
    Heap(Vec<u8>),
    /// A mapping, and the number of its bytes in use.
    Map(Buffers, usize),
}

impl Buffer {
    pub(super) fn new(length: usize) -> Buffer {
        let mapped = u64::try_from(length)
            .ok()
            .filter(|_| length >= LARGE)
            .and_then(|length| Buffers::zeros(length).ok());
        match mapped {
            Some(map) => Buffer::Map(map, length),
            None => Buffer::Heap(vec![0; length]),
        }
    }

    pub(super) fn none() -> Buffer {
        Buffer::Heap(Vec::new())
    }

    /// Cuts the buffer to its first `length` bytes.
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
