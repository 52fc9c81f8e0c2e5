//! A range of a store as a store: bytes before and behind it are out of reach.

use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::{Properties, Run, Store};

/// The `length` bytes of a store from byte `start` on.
pub struct Offset {
    below: Arc<dyn Store>,
    start: u64,
    length: u64,
}

impl Offset {
    /// The range of `below`; [`None`] if it is not inside.
    pub fn new(below: Arc<dyn Store>, start: u64, length: u64) -> Option<Offset> {
        start.checked_add(length).filter(|&end| end <= below.length())?;
        Some(Offset { below, start, length })
    }

    /// The offset below of `length` bytes at `offset`. [`Errno::Range`] if they are not inside.
    fn below_offset(&self, offset: u64, length: u64) -> Result<u64, Errno> {
        let inside = offset.checked_add(length).is_some_and(|end| end <= self.length);
        if inside { Ok(self.start + offset) } else { Err(Errno::Range) }
    }

    fn buffer_offset(&self, offset: u64, length: usize) -> Result<u64, Errno> {
        self.below_offset(offset, u64::try_from(length).map_err(|_| Errno::Range)?)
    }
}

impl Store for Offset {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        self.below.read_at(buffer, self.buffer_offset(offset, buffer.len())?)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.below.write_at(bytes, self.buffer_offset(offset, bytes.len())?)
    }

    fn zero(&self, offset: u64, length: u64) -> Result<(), Errno> {
        self.below.zero(self.below_offset(offset, length)?, length)
    }

    fn start_writeback(&self, offset: u64, length: u64) {
        // A hint: what is outside is not to be written.
        let _ = self.below_offset(offset, length).map(|at| self.below.start_writeback(at, length));
    }

    fn prefetch(&self, offset: u64, length: u64) {
        let _ = self.below_offset(offset, length).map(|at| self.below.prefetch(at, length));
    }

    fn flush(&self) -> Result<(), Errno> {
        self.below.flush()
    }

    fn try_read(&self, buffer: &mut [u8], offset: u64) -> Result<bool, Errno> {
        self.below.try_read(buffer, self.buffer_offset(offset, buffer.len())?)
    }

    fn properties(&self) -> Properties {
        self.below.properties()
    }

    fn borrow(&self, offset: u64, length: u64) -> Result<Option<&[AtomicU8]>, Errno> {
        self.below.borrow(self.below_offset(offset, length)?, length)
    }

    fn write_through(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.below.write_through(bytes, self.buffer_offset(offset, bytes.len())?)
    }

    fn discard(&self, offset: u64, length: u64) -> Result<(), Errno> {
        self.below.discard(self.below_offset(offset, length)?, length)
    }

    fn try_zero(&self, offset: u64, length: u64, keep: bool) -> Result<(), Errno> {
        self.below.try_zero(self.below_offset(offset, length)?, length, keep)
    }

    fn extent(&self, offset: u64, length: u64) -> Result<Run, Errno> {
        self.below.extent(self.below_offset(offset, length)?, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueline_host::disk::memory::Memory;

    #[test]
    fn nothing_outside_is_reached() {
        let below = Arc::new(Memory::new(1 << 20).unwrap());
        below.write_at(&[7; 4096], 1000).unwrap();
        let range = Offset::new(below.clone(), 1000, 4096).unwrap();
        let mut read = [0; 4096];
        range.read_at(&mut read, 0).unwrap();
        assert!(range.length() == 4096 && read == [7; 4096]);
        range.write_at(&[1; 10], 4086).unwrap();
        range.try_zero(0, 4086, false).unwrap();
        let mut around = [9; 4098];
        below.read_at(&mut around, 999).unwrap();
        assert!(around[..4087] == [0; 4087] && around[4087..4097] == [1; 10] && around[4097] == 0);
        for (offset, length) in [(4087, 10), (4096, 1), (u64::MAX, 1), (0, 4097)] {
            let bytes = vec![5; length];
            assert_eq!(range.write_at(&bytes, offset), Err(Errno::Range));
            assert_eq!(range.try_read(&mut bytes.clone(), offset), Err(Errno::Range));
            assert_eq!(range.try_zero(offset, length as u64, false), Err(Errno::Range));
            assert!(range.borrow(offset, length as u64).is_err());
        }
        assert!(
            Offset::new(below.clone(), 1 << 20, 1).is_none()
                && Offset::new(below, u64::MAX, 2).is_none()
        );
    }
}
